/// \file
/// Queries as bytes, as src/predicate/encoding.h describes them: written and checked, without HDF5. Not installed.
///
/// Invariant: what tl_query_check lets pass is what the plugin reads, and the other way round; limits are those of
/// src/predicate/query.h.
/// Thread safety: pure functions.
#ifndef TIDELANE_QUERY_BYTES_H
#define TIDELANE_QUERY_BYTES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TL_QUERY_API __attribute__((visibility("hidden")))

enum {
  TL_QUERY_HEAD = 8,
  TL_QUERY_MOST_DEPTH = 256,
  TL_QUERY_MOST_NODES = 65536,
  TL_QUERY_MOST_NAME = 65535,
  TL_QUERY_MOST_BYTES = 16 << 20,
  TL_QUERY_MOST_NUMBER = 17 /* bytes of one */
};

enum { TL_NODE_CONDITION = 1, TL_NODE_AND = 2, TL_NODE_OR = 3, TL_NODE_NOT = 4 };
enum {
  TL_TAG_INT64 = 1,
  TL_TAG_UINT64 = 2,
  TL_TAG_DOUBLE = 3,
  TL_TAG_TWO_DOUBLES = 4,
  TL_TAG_STRING = 5
};

struct tl_query_constant {
  int tag;
  long double number;
  const unsigned char* text; /* of a string */
  size_t size;
};

struct tl_query_condition {
  unsigned subject;
  unsigned comparison;
  const unsigned char* name;
  size_t name_size;
  int constants;
  struct tl_query_constant constant[2];
  const unsigned char* type;
  size_t type_size;
};

struct tl_query_node {
  unsigned kind;
  size_t size; /* bytes from its first one on, its parts included */
  size_t nodes;
  size_t depth;
  struct tl_query_condition condition; /* of TL_NODE_CONDITION */
};

/* Of bytes that may be anything, the query at their beginning: how many bytes it has; 0: there is none, because of `*why`, at `*place`. */
TL_QUERY_API size_t tl_query_check(const unsigned char* bytes, size_t size, const char** why,
                                   size_t* place);

/* Of a query that has been checked, the node at `at`. */
TL_QUERY_API void tl_query_read_node(const unsigned char* bytes, size_t size, size_t at,
                                     struct tl_query_node* node);

/* The bytes of a condition's query, `to` being NULL or large enough; 0: no query has such a condition (`*why`). */
TL_QUERY_API size_t tl_query_write(unsigned char* to, const struct tl_query_condition* condition,
                                   const char** why);

/* "H5Q1" and the number of nodes. */
TL_QUERY_API void tl_query_write_head(unsigned char* to, size_t nodes);

#ifdef __cplusplus
}
#endif

#endif
