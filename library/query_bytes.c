#include "query_bytes.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const uint64_t kNan = 0x7ff8000000000000u;

/* Numbers ------------------------------------------------------------------------------------- */

static void put(unsigned char* to, uint64_t number, size_t size) {
  size_t i;
  for (i = 0; i < size; ++i) to[i] = (unsigned char)(number >> (8 * i) & 0xff);
}

static uint64_t get(const unsigned char* from, size_t size) {
  uint64_t number = 0;
  size_t i;
  for (i = 0; i < size; ++i) number |= (uint64_t)from[i] << (8 * i);
  return number;
}

static uint64_t bits_of(double number) {
  uint64_t bits = kNan;
  if (number == number) memcpy(&bits, &number, sizeof bits);
  return bits;
}

static double double_of(uint64_t bits) {
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

/* The first form that holds it; 0: none. The same as FormOf of src/predicate/number_form.cc. */
static int form_of(long double number) {
  const long double two_to_63 = 9223372036854775808.0L;
  double nearest, rest;
  if (!isfinite(number)) return TL_TAG_DOUBLE;
  if (number >= -two_to_63 && number < two_to_63) {
    if ((long double)(int64_t)number == number && !(number == 0 && signbit(number))) {
      return TL_TAG_INT64;
    }
  } else if (number > 0 && number < 2 * two_to_63) {
    if ((long double)(uint64_t)number == number) return TL_TAG_UINT64;
  }
  if (number > (long double)DBL_MAX || number < -(long double)DBL_MAX) return 0;
  nearest = (double)number;
  rest = (double)(number - (long double)nearest);
  if ((long double)nearest == number) return TL_TAG_DOUBLE;
  return (long double)nearest + (long double)rest == number ? TL_TAG_TWO_DOUBLES : 0;
}

/* Writes tag and number; how many bytes: 0: it has no form. */
static size_t put_number(unsigned char* to, long double number) {
  const int form = form_of(number);
  double nearest;
  to[0] = (unsigned char)form;
  switch (form) {
    case TL_TAG_INT64: put(to + 1, (uint64_t)(int64_t)number, 8); return 9;
    case TL_TAG_UINT64: put(to + 1, (uint64_t)number, 8); return 9;
    case TL_TAG_DOUBLE: put(to + 1, bits_of((double)number), 8); return 9;
    case TL_TAG_TWO_DOUBLES:
      nearest = (double)number;
      put(to + 1, bits_of(nearest), 8);
      put(to + 9, bits_of((double)(number - (long double)nearest)), 8);
      return 17;
    default: return 0;
  }
}

/* Reading ------------------------------------------------------------------------------------- */

struct reader {
  const unsigned char* bytes;
  size_t size;
  size_t at;
  size_t left; /* nodes */
  const char* why;
};

static int refuse(struct reader* reader, const char* why) {
  if (reader->why == NULL) reader->why = why;
  return 0;
}

static const unsigned char* take(struct reader* reader, size_t count) {
  const unsigned char* from = reader->bytes + reader->at;
  if (count > reader->size - reader->at) {
    refuse(reader, "the bytes end too early");
    return NULL;
  }
  reader->at += count;
  return from;
}

static int take_number(struct reader* reader, size_t size, uint64_t* number) {
  const unsigned char* from = take(reader, size);
  if (from == NULL) return 0;
  *number = get(from, size);
  return 1;
}

/* What follows its own length. */
static int take_counted(struct reader* reader, size_t length_size, const unsigned char** to,
                        size_t* size) {
  uint64_t length;
  if (!take_number(reader, length_size, &length)) return 0;
  *size = (size_t)length;
  *to = take(reader, *size);
  return *to != NULL;
}

static int read_constant(struct reader* reader, struct tl_query_constant* constant) {
  const unsigned char* begin = reader->bytes + reader->at;
  unsigned char again[TL_QUERY_MOST_NUMBER];
  uint64_t tag, first, second;
  size_t size;
  if (!take_number(reader, 1, &tag)) return 0;
  constant->tag = (int)tag;
  if (tag == TL_TAG_STRING) return take_counted(reader, 4, &constant->text, &constant->size);
  if (tag < TL_TAG_INT64 || tag > TL_TAG_STRING) {
    return refuse(reader, "a constant of unknown kind");
  }
  if (!take_number(reader, 8, &first)) return 0;
  if (tag == TL_TAG_INT64) {
    constant->number = (long double)(int64_t)first;
  } else if (tag == TL_TAG_UINT64) {
    constant->number = (long double)first;
  } else {
    constant->number = (long double)double_of(first);
    if (tag == TL_TAG_TWO_DOUBLES) {
      if (!take_number(reader, 8, &second)) return 0;
      constant->number += (long double)double_of(second);
    }
  }
  /* The same number has one form, so that equal queries have equal bytes. */
  size = put_number(again, constant->number);
  if (size != (size_t)(reader->bytes + reader->at - begin) || memcmp(again, begin, size) != 0) {
    return refuse(reader, "a number in another form than its own");
  }
  return 1;
}

/* What src/predicate/query.cc asks of a condition. */
static const char* not_a_condition(const struct tl_query_condition* condition) {
  const int texts = condition->constant[0].tag == TL_TAG_STRING;
  const int name = condition->subject == 2 || condition->subject == 3;
  if (condition->subject > 3) return "an unknown subject";
  if (condition->comparison > 6) return "an unknown comparison";
  if (condition->constants != (condition->comparison == 6 ? 2 : 1)) {
    return "not as many constants as the comparison has";
  }
  if (condition->constants == 2 && texts != (condition->constant[1].tag == TL_TAG_STRING)) {
    return "numbers and strings are not compared with each other";
  }
  if (name && !texts) return "a name is compared with a string";
  if (name && condition->name_size != 0) return "a condition on names has no name";
  return NULL;
}

static int read_condition(struct reader* reader, struct tl_query_condition* condition) {
  uint64_t subject, comparison, constants;
  const char* why;
  int i;
  if (!take_number(reader, 1, &subject) || !take_number(reader, 1, &comparison)) return 0;
  if (subject > 3) return refuse(reader, "an unknown subject");
  if (comparison > 6) return refuse(reader, "an unknown comparison");
  condition->subject = (unsigned)subject;
  condition->comparison = (unsigned)comparison;
  if (!take_counted(reader, 2, &condition->name, &condition->name_size)) return 0;
  if (!take_number(reader, 1, &constants)) return 0;
  if (constants < 1 || constants > 2) {
    return refuse(reader, "a number of constants that no comparison has");
  }
  condition->constants = (int)constants;
  for (i = 0; i < condition->constants; ++i) {
    if (!read_constant(reader, &condition->constant[i])) return 0;
  }
  if (!take_counted(reader, 4, &condition->type, &condition->type_size)) return 0;
  why = not_a_condition(condition);
  return why == NULL || refuse(reader, why);
}

/* How deep the node is that comes next; 0: there is none. Recursive at most TL_QUERY_MOST_DEPTH times. */
static size_t skip_node(struct reader* reader, size_t depth) {
  struct tl_query_condition condition;
  uint64_t kind;
  size_t first, second;
  if (depth > TL_QUERY_MOST_DEPTH) return refuse(reader, "deeper than a query is at most");
  if (reader->left == 0) return refuse(reader, "more nodes than were announced");
  --reader->left;
  if (!take_number(reader, 1, &kind)) return 0;
  if (kind == TL_NODE_CONDITION) return read_condition(reader, &condition) ? 1 : 0;
  if (kind != TL_NODE_AND && kind != TL_NODE_OR && kind != TL_NODE_NOT) {
    return refuse(reader, "a node of unknown kind");
  }
  first = skip_node(reader, depth + 1);
  if (first == 0 || kind == TL_NODE_NOT) return first == 0 ? 0 : first + 1;
  second = skip_node(reader, depth + 1);
  if (second == 0) return 0;
  return 1 + (first > second ? first : second);
}

static int read_query(struct reader* reader) {
  const unsigned char* magic = take(reader, 4);
  uint64_t nodes;
  if (magic == NULL) return 0;
  if (memcmp(magic, "H5Q1", 4) != 0) {
    reader->at = 0;
    return refuse(reader, "no encoded query, or one of a version that is not known here");
  }
  if (!take_number(reader, 4, &nodes)) return 0;
  if (nodes == 0 || nodes > TL_QUERY_MOST_NODES) {
    return refuse(reader, "a number of nodes that no query has");
  }
  reader->left = (size_t)nodes;
  if (skip_node(reader, 1) == 0) return 0;
  return reader->left == 0 || refuse(reader, "fewer nodes than were announced");
}

size_t tl_query_check(const unsigned char* bytes, size_t size, const char** why, size_t* place) {
  struct reader reader = {bytes, size, 0, 0, NULL};
  if (size > TL_QUERY_MOST_BYTES) reader.size = TL_QUERY_MOST_BYTES;
  if (read_query(&reader)) return reader.at;
  *why = reader.why;
  *place = reader.at;
  return 0;
}

void tl_query_read_node(const unsigned char* bytes, size_t size, size_t at,
                        struct tl_query_node* node) {
  struct reader reader = {bytes, size, at, TL_QUERY_MOST_NODES, NULL};
  node->kind = bytes[at];
  node->depth = skip_node(&reader, 1);
  node->size = reader.at - at;
  node->nodes = TL_QUERY_MOST_NODES - reader.left;
  if (node->kind != TL_NODE_CONDITION) return;
  reader.at = at + 1;
  read_condition(&reader, &node->condition);
}

/* Writing ------------------------------------------------------------------------------------- */

void tl_query_write_head(unsigned char* to, size_t nodes) {
  memcpy(to, "H5Q1", 4);
  put(to + 4, nodes, 4);
}

static size_t put_bytes(unsigned char* to, size_t length_size, const unsigned char* bytes,
                        size_t size) {
  if (to != NULL) {
    put(to, size, length_size);
    if (size != 0) memcpy(to + length_size, bytes, size);
  }
  return length_size + size;
}

size_t tl_query_write(unsigned char* to, const struct tl_query_condition* condition,
                      const char** why) {
  unsigned char number[TL_QUERY_MOST_NUMBER];
  size_t at = TL_QUERY_HEAD;
  int i;
  *why = not_a_condition(condition);
  if (*why != NULL) return 0;
  if (condition->name_size > TL_QUERY_MOST_NAME) {
    *why = "the name is longer than 65535 bytes";
    return 0;
  }
  if (to != NULL) {
    tl_query_write_head(to, 1);
    to[at] = TL_NODE_CONDITION;
    to[at + 1] = (unsigned char)condition->subject;
    to[at + 2] = (unsigned char)condition->comparison;
  }
  at += 3;
  at += put_bytes(to == NULL ? NULL : to + at, 2, condition->name, condition->name_size);
  if (to != NULL) to[at] = (unsigned char)condition->constants;
  at += 1;
  for (i = 0; i < condition->constants; ++i) {
    const struct tl_query_constant* constant = &condition->constant[i];
    size_t size;
    if (constant->tag == TL_TAG_STRING) {
      if (constant->size > TL_QUERY_MOST_BYTES) break;
      if (to != NULL) to[at] = TL_TAG_STRING;
      at += 1 + put_bytes(to == NULL ? NULL : to + at + 1, 4, constant->text, constant->size);
      continue;
    }
    size = put_number(number, constant->number);
    if (size == 0) {
      *why = "a number that no double, nor the sum of two, holds";
      return 0;
    }
    if (to != NULL) memcpy(to + at, number, size);
    at += size;
  }
  if (i < condition->constants || condition->type_size > TL_QUERY_MOST_BYTES) {
    *why = "the query is too large";
    return 0;
  }
  at += put_bytes(to == NULL ? NULL : to + at, 4, condition->type, condition->type_size);
  if (at <= TL_QUERY_MOST_BYTES) return at;
  *why = "the query is too large";
  return 0;
}
