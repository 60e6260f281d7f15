/// \file
/// Queries as HDF5's identifiers. Not installed.
///
/// Invariant: an object is a query's bytes, which have been checked, and never change.
/// Thread safety: as tidelane_query.h.
#ifndef TIDELANE_QUERY_OBJECT_H
#define TIDELANE_QUERY_OBJECT_H

#include <stddef.h>

#include "internal.h"
#include "query_bytes.h"

struct tl_query {
  size_t size;
  unsigned char bytes[];
};

/* NULL: there is no memory, or there would be more bytes than a query has. */
TL_HIDDEN struct tl_query* tl_query_allocate(const char* function, size_t size);

/* Takes the object. */
TL_HIDDEN hid_t tl_query_register(struct tl_query* query);

/* NULL, with an error: the identifier is that of something else. */
TL_HIDDEN const struct tl_query* tl_query_of(const char* function, hid_t id);

/* Constants that were given as `count` values of a type; strings stay where they are. `type`, freed by tl_query_free_values: the bytes
   that say which type it was; of an enumeration, the integers that it is made of. */
struct tl_query_values {
  struct tl_query_constant constant[2];
  unsigned char* type;
  size_t type_size;
};
TL_HIDDEN herr_t tl_query_read_values(const char* function, hid_t type_id, const void* value,
                                      int count, struct tl_query_values* values);
TL_HIDDEN void tl_query_free_values(struct tl_query_values* values);

/* The node of a query that is one condition. */
TL_HIDDEN herr_t tl_query_condition_of(const char* function, hid_t id, struct tl_query_node* node);

#endif
