/// \file
/// Queries: made, combined, asked, encoded.
///
/// Invariant: a query's identifier is of a type that is registered with HDF5 when the first one is made, and forgotten when HDF5 closes.
/// Thread safety: as tidelane_query.h; of two threads that register the type at once, one takes its own back.
#define TIDELANE_QUERY_MODULE

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "query_bytes.h"
#include "query_object.h"
#include "tidelane_query.h"

/* Identifiers ---------------------------------------------------------------------------------- */

static H5I_type_t type_of_queries = H5I_BADID;

static herr_t free_query(void* object, void** request) {
  (void)request;
  free(object);
  return 0;
}

/* Queries that the program has left open end before HDF5 closes, which waits for the identifiers of types that are not its own, in vain
   ("infinite loop closing library"). And it may give the type's number to somebody else afterwards. */
static void forget_type(void* context) {
  const H5I_type_t type = __atomic_exchange_n(&type_of_queries, H5I_BADID, __ATOMIC_ACQ_REL);
  (void)context;
  if (type != H5I_BADID) H5Idestroy_type(type);
}

static H5I_type_t register_type(void) {
#if H5_VERS_MAJOR >= 2
  return H5Iregister_type2(0, free_query);
#else
  return H5Iregister_type(64, 0, free_query);
#endif
}

static H5I_type_t the_type(void) {
  H5I_type_t before = __atomic_load_n(&type_of_queries, __ATOMIC_ACQUIRE);
  H5I_type_t ours;
  if (before != H5I_BADID) return before;
  if (H5open() < 0) return H5I_BADID;
  ours = register_type();
  if (ours == H5I_BADID) return H5I_BADID;
  if (!__atomic_compare_exchange_n(&type_of_queries, &before, ours, 0, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    H5Idestroy_type(ours);
    return before;
  }
  if (H5atclose(forget_type, NULL) < 0) return H5I_BADID;
  return ours;
}

struct tl_query* tl_query_allocate(const char* function, size_t size) {
  struct tl_query* query = NULL;
  if (size > TL_QUERY_MOST_BYTES) {
    tl_fail(function, "the query is too large: it has at most 16 MiB of bytes");
    return NULL;
  }
  query = (struct tl_query*)malloc(sizeof *query + size);
  if (query == NULL) {
    tl_fail(function, "no memory");
    return NULL;
  }
  query->size = size;
  return query;
}

hid_t tl_query_register(struct tl_query* query) {
  const H5I_type_t type = the_type();
  const hid_t id = type == H5I_BADID ? H5I_INVALID_HID : H5Iregister(type, query);
  if (id < 0) free(query);
  return id;
}

const struct tl_query* tl_query_of(const char* function, hid_t id) {
  const H5I_type_t type = __atomic_load_n(&type_of_queries, __ATOMIC_ACQUIRE);
  const void* object = NULL;
  if (type != H5I_BADID) {
    H5E_BEGIN_TRY { object = H5Iobject_verify(id, type); }
    H5E_END_TRY
  }
  if (object == NULL) tl_fail(function, "not a query");
  return (const struct tl_query*)object;
}

static void first_node(const struct tl_query* query, struct tl_query_node* node) {
  tl_query_read_node(query->bytes, query->size, TL_QUERY_HEAD, node);
}

/* Making queries ------------------------------------------------------------------------------- */

static hid_t make(const char* function, const struct tl_query_condition* condition) {
  struct tl_query* query;
  const char* why = NULL;
  const size_t size = tl_query_write(NULL, condition, &why);
  if (size == 0) return tl_fail(function, why);
  query = tl_query_allocate(function, size);
  if (query == NULL) return H5I_INVALID_HID;
  tl_query_write(query->bytes, condition, &why);
  return tl_query_register(query);
}

static herr_t check_op(const char* function, H5Q_match_op_t match_op) {
  const int op = (int)match_op;
  if (op >= H5Q_MATCH_EQUAL && op <= H5Q_MATCH_BETWEEN) return 0;
  return tl_fail(function, "not a match operation");
}

static hid_t of_values(const char* function, H5Q_type_t query_type, const char* name,
                       H5Q_match_op_t match_op, hid_t type_id, const void* value) {
  struct tl_query_condition condition;
  struct tl_query_values values;
  hid_t query;
  memset(&condition, 0, sizeof condition);
  condition.subject = (unsigned)query_type;
  condition.comparison = (unsigned)match_op;
  condition.constants = match_op == H5Q_MATCH_BETWEEN ? 2 : 1;
  condition.name = (const unsigned char*)name;
  condition.name_size = name == NULL ? 0 : strlen(name);
  if (tl_query_read_values(function, type_id, value, condition.constants, &values) < 0) {
    return H5I_INVALID_HID;
  }
  memcpy(condition.constant, values.constant, sizeof condition.constant);
  condition.type = values.type;
  condition.type_size = values.type_size;
  query = make(function, &condition);
  tl_query_free_values(&values);
  return query;
}

static hid_t of_names(const char* function, H5Q_type_t query_type, H5Q_match_op_t match_op,
                      const char* first, const char* second) {
  struct tl_query_condition condition;
  const char* const names[2] = {first, second};
  int i;
  memset(&condition, 0, sizeof condition);
  condition.subject = (unsigned)query_type;
  condition.comparison = (unsigned)match_op;
  condition.constants = match_op == H5Q_MATCH_BETWEEN ? 2 : 1;
  for (i = 0; i < condition.constants; ++i) {
    if (names[i] == NULL) return tl_fail(function, "no name");
    condition.constant[i].tag = TL_TAG_STRING;
    condition.constant[i].text = (const unsigned char*)names[i];
    condition.constant[i].size = strlen(names[i]);
  }
  return make(function, &condition);
}

hid_t H5Qcreate(H5Q_type_t query_type, H5Q_match_op_t match_op, ...) {
  hid_t query;
  va_list arguments;
  if (check_op(__func__, match_op) < 0) return H5I_INVALID_HID;
  va_start(arguments, match_op);
  if (query_type == H5Q_TYPE_DATA_ELEM || query_type == H5Q_TYPE_ATTR_VALUE) {
    const hid_t type_id = va_arg(arguments, hid_t);
    const void* value = va_arg(arguments, const void*);
    query = of_values(__func__, query_type, NULL, match_op, type_id, value);
  } else if (query_type == H5Q_TYPE_ATTR_NAME || query_type == H5Q_TYPE_LINK_NAME) {
    const char* first = va_arg(arguments, const char*);
    const char* second = match_op == H5Q_MATCH_BETWEEN ? va_arg(arguments, const char*) : NULL;
    query = of_names(__func__, query_type, match_op, first, second);
  } else {
    query = tl_fail(__func__, "not a type of query that is created");
  }
  va_end(arguments);
  return query;
}

hid_t tidelane_query_named(H5Q_type_t query_type, const char* name, H5Q_match_op_t match_op,
                           hid_t type_id, const void* value) {
  if (check_op(__func__, match_op) < 0) return H5I_INVALID_HID;
  if (query_type != H5Q_TYPE_DATA_ELEM && query_type != H5Q_TYPE_ATTR_VALUE) {
    return tl_fail(__func__, "neither H5Q_TYPE_DATA_ELEM nor H5Q_TYPE_ATTR_VALUE");
  }
  return of_values(__func__, query_type, name, match_op, type_id, value);
}

/* One query of one or two: their nodes after the new one. */
static hid_t combine(const char* function, unsigned kind, const struct tl_query* first,
                     const struct tl_query* second) {
  const size_t first_size = first->size - TL_QUERY_HEAD;
  const size_t second_size = second == NULL ? 0 : second->size - TL_QUERY_HEAD;
  struct tl_query_node left, right;
  struct tl_query* query;
  memset(&right, 0, sizeof right);
  first_node(first, &left);
  if (second != NULL) first_node(second, &right);
  if (left.depth >= TL_QUERY_MOST_DEPTH || right.depth >= TL_QUERY_MOST_DEPTH) {
    return tl_fail(function, "the query is too deep: at most 256 combinations in each other");
  }
  if (1 + left.nodes + right.nodes > TL_QUERY_MOST_NODES) {
    return tl_fail(function, "the query is too large: it has at most 65536 parts");
  }
  query = tl_query_allocate(function, TL_QUERY_HEAD + 1 + first_size + second_size);
  if (query == NULL) return H5I_INVALID_HID;
  tl_query_write_head(query->bytes, 1 + left.nodes + right.nodes);
  query->bytes[TL_QUERY_HEAD] = (unsigned char)kind;
  memcpy(query->bytes + TL_QUERY_HEAD + 1, first->bytes + TL_QUERY_HEAD, first_size);
  if (second != NULL) {
    memcpy(query->bytes + TL_QUERY_HEAD + 1 + first_size, second->bytes + TL_QUERY_HEAD,
           second_size);
  }
  return tl_query_register(query);
}

hid_t H5Qcombine(hid_t query1_id, H5Q_combine_op_t combine_op, hid_t query2_id) {
  const struct tl_query* first = tl_query_of(__func__, query1_id);
  const struct tl_query* second = first == NULL ? NULL : tl_query_of(__func__, query2_id);
  if (second == NULL) return H5I_INVALID_HID;
  if (combine_op != H5Q_COMBINE_AND && combine_op != H5Q_COMBINE_OR) {
    return tl_fail(__func__, "neither H5Q_COMBINE_AND nor H5Q_COMBINE_OR");
  }
  return combine(__func__, combine_op == H5Q_COMBINE_AND ? TL_NODE_AND : TL_NODE_OR, first, second);
}

hid_t H5Qnegate(hid_t query_id) {
  const struct tl_query* query = tl_query_of(__func__, query_id);
  return query == NULL ? H5I_INVALID_HID : combine(__func__, TL_NODE_NOT, query, NULL);
}

herr_t H5Qclose(hid_t query_id) {
  if (tl_query_of(__func__, query_id) == NULL) return -1;
  return H5Idec_ref(query_id) < 0 ? -1 : 0;
}

/* Asking queries ------------------------------------------------------------------------------- */

static H5Q_type_t type_of(const struct tl_query* query) {
  size_t at = TL_QUERY_HEAD;
  int type = -1;
  while (at < query->size) {
    struct tl_query_node node;
    if (query->bytes[at] != TL_NODE_CONDITION) {
      ++at;
      continue;
    }
    tl_query_read_node(query->bytes, query->size, at, &node);
    if (type >= 0 && type != (int)node.condition.subject) return H5Q_TYPE_MISC;
    type = (int)node.condition.subject;
    at += node.size;
  }
  return (H5Q_type_t)type;
}

herr_t H5Qget_type(hid_t query_id, H5Q_type_t* query_type) {
  const struct tl_query* query = tl_query_of(__func__, query_id);
  if (query == NULL) return -1;
  if (query_type == NULL) return tl_fail(__func__, "no place for the type");
  *query_type = type_of(query);
  return 0;
}

herr_t H5Qget_combine_op(hid_t query_id, H5Q_combine_op_t* op_type) {
  const struct tl_query* query = tl_query_of(__func__, query_id);
  if (query == NULL) return -1;
  if (op_type == NULL) return tl_fail(__func__, "no place for the operation");
  switch (query->bytes[TL_QUERY_HEAD]) {
    case TL_NODE_AND: *op_type = H5Q_COMBINE_AND; break;
    case TL_NODE_OR: *op_type = H5Q_COMBINE_OR; break;
    case TL_NODE_NOT: *op_type = H5Q_COMBINE_NOT; break;
    default: *op_type = H5Q_SINGLETON;
  }
  return 0;
}

/* A query of its own of the node at `at`. */
static hid_t part(const char* function, const struct tl_query* whole, size_t at) {
  struct tl_query_node node;
  struct tl_query* query;
  tl_query_read_node(whole->bytes, whole->size, at, &node);
  query = tl_query_allocate(function, TL_QUERY_HEAD + node.size);
  if (query == NULL) return H5I_INVALID_HID;
  tl_query_write_head(query->bytes, node.nodes);
  memcpy(query->bytes + TL_QUERY_HEAD, whole->bytes + at, node.size);
  return tl_query_register(query);
}

herr_t H5Qget_components(hid_t query_id, hid_t* sub_query1_id, hid_t* sub_query2_id) {
  const struct tl_query* query = tl_query_of(__func__, query_id);
  const size_t first = TL_QUERY_HEAD + 1;
  struct tl_query_node node;
  hid_t left, right = H5I_INVALID_HID;
  if (query == NULL) return -1;
  if (sub_query1_id == NULL || sub_query2_id == NULL) {
    return tl_fail(__func__, "no place for the parts");
  }
  if (query->bytes[TL_QUERY_HEAD] == TL_NODE_CONDITION) {
    return tl_fail(__func__, "not a combination");
  }
  tl_query_read_node(query->bytes, query->size, first, &node);
  left = part(__func__, query, first);
  if (left < 0) return -1;
  if (query->bytes[TL_QUERY_HEAD] != TL_NODE_NOT) {
    right = part(__func__, query, first + node.size);
    if (right < 0) {
      H5Idec_ref(left);
      return -1;
    }
  }
  *sub_query1_id = left;
  *sub_query2_id = right;
  return 0;
}

herr_t tl_query_condition_of(const char* function, hid_t id, struct tl_query_node* node) {
  const struct tl_query* query = tl_query_of(function, id);
  if (query == NULL) return -1;
  first_node(query, node);
  return node->kind == TL_NODE_CONDITION ? 0 : tl_fail(function, "a combination, not a condition");
}

herr_t H5Qget_match_info(hid_t query_id, H5Q_type_t* query_type, H5Q_match_op_t* match_op) {
  struct tl_query_node node;
  if (tl_query_condition_of(__func__, query_id, &node) < 0) return -1;
  if (query_type != NULL) *query_type = (H5Q_type_t)node.condition.subject;
  if (match_op != NULL) *match_op = (H5Q_match_op_t)node.condition.comparison;
  return 0;
}

herr_t H5Qget_match_op(hid_t query_id, H5Q_match_op_t* match_op) {
  struct tl_query_node node;
  if (tl_query_condition_of(__func__, query_id, &node) < 0) return -1;
  if (match_op == NULL) return tl_fail(__func__, "no place for the operation");
  *match_op = (H5Q_match_op_t)node.condition.comparison;
  return 0;
}

ssize_t tidelane_query_get_name(hid_t query_id, char* name, size_t size) {
  struct tl_query_node node;
  if (tl_query_condition_of(__func__, query_id, &node) < 0) return -1;
  if (name != NULL && size > 0) {
    const size_t most = node.condition.name_size < size ? node.condition.name_size : size - 1;
    if (most != 0) memcpy(name, node.condition.name, most);
    name[most] = '\0';
  }
  return (ssize_t)node.condition.name_size;
}

/* Queries as bytes ------------------------------------------------------------------------------ */

herr_t H5Qencode(hid_t query_id, void* buf, size_t* nalloc) {
  const struct tl_query* query = tl_query_of(__func__, query_id);
  if (query == NULL) return -1;
  if (nalloc == NULL) return tl_fail(__func__, "no place for the size");
  if (buf != NULL && *nalloc >= query->size) memcpy(buf, query->bytes, query->size);
  *nalloc = query->size;
  return 0;
}

static hid_t decode(const char* function, const void* buf, size_t size, int whole) {
  struct tl_query* query;
  const char* why = NULL;
  char text[100];
  size_t place = 0;
  size_t used;
  if (buf == NULL) return tl_fail(function, "no bytes");
  if (whole && size > TL_QUERY_MOST_BYTES) {
    return tl_fail(function, "more bytes than a query has at most");
  }
  used = tl_query_check((const unsigned char*)buf, size, &why, &place);
  if (used == 0) {
    snprintf(text, sizeof text, "at byte %zu: %s", place, why);
    return tl_fail(function, text);
  }
  if (whole && used != size) return tl_fail(function, "bytes after the query's end");
  query = tl_query_allocate(function, used);
  if (query == NULL) return H5I_INVALID_HID;
  memcpy(query->bytes, buf, used);
  return tl_query_register(query);
}

hid_t H5Qdecode(const void* buf) { return decode(__func__, buf, TL_QUERY_MOST_BYTES, 0); }

hid_t tidelane_query_decode(const void* buf, size_t size) { return decode(__func__, buf, size, 1); }
