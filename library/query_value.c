/// \file
/// Constants of queries: read in the types of HDF5 that they are given in, and given back so.
///
/// Invariant: what is given back is what was given, or nothing: it is read again before.
/// Thread safety: as tidelane_query.h.
#define TIDELANE_QUERY_MODULE

#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "query_bytes.h"
#include "query_object.h"
#include "tidelane_query.h"

/* Reading -------------------------------------------------------------------------------------- */

/* Every call of HDF5 takes what earlier ones left from the stack of errors: also one that only tidies up. */
static void close_type(hid_t type, int failed) {
  const hid_t errors = failed ? H5Eget_current_stack() : H5I_INVALID_HID;
  H5Tclose(type);
  if (failed) H5Eset_current_stack(errors);
}

/* A copy of a type; of an enumeration, of the integers that it is made of. */
static hid_t plain_type(const char* function, hid_t type_id) {
  H5T_class_t kind = H5T_NO_CLASS;
  H5I_type_t is = H5I_BADID;
  H5E_BEGIN_TRY {
    is = H5Iget_type(type_id);
    if (is == H5I_DATATYPE) kind = H5Tget_class(type_id);
  }
  H5E_END_TRY
  if (is != H5I_DATATYPE) return tl_fail(function, "not a datatype");
  return kind == H5T_ENUM ? H5Tget_super(type_id) : H5Tcopy(type_id);
}

/* Converts `count` values to another type; the result, to be freed, has room for either. */
static void* converted(const void* values, hid_t from, hid_t to, int count) {
  const size_t from_size = H5Tget_size(from);
  const size_t to_size = H5Tget_size(to);
  const size_t size = (from_size > to_size ? from_size : to_size) * (size_t)count;
  void* buffer = calloc(1, size);
  if (buffer == NULL) return NULL;
  memcpy(buffer, values, from_size * (size_t)count);
  if (H5Tconvert(from, to, (size_t)count, buffer, NULL, H5P_DEFAULT) < 0) {
    free(buffer);
    return NULL;
  }
  return buffer;
}

static herr_t read_integers(const char* function, hid_t type, const void* value, int count,
                            struct tl_query_constant* constant) {
  const int is_signed = H5Tget_sign(type) != H5T_SGN_NONE;
  void* numbers;
  int i;
  if (H5Tget_size(type) > 8) return tl_fail(function, "an integer has at most 64 bits");
  numbers = converted(value, type, is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64, count);
  if (numbers == NULL) return -1;
  for (i = 0; i < count; ++i) {
    constant[i].tag = TL_TAG_INT64;
    constant[i].number = is_signed ? (long double)((const int64_t*)numbers)[i]
                                   : (long double)((const uint64_t*)numbers)[i];
  }
  free(numbers);
  return 0;
}

static herr_t read_floats(const char* function, hid_t type, const void* value, int count,
                          struct tl_query_constant* constant) {
  void* numbers;
  int i;
  if (H5Tget_size(type) > sizeof(long double) ||
      H5Tget_precision(type) > H5Tget_precision(H5T_NATIVE_LDOUBLE)) {
    return tl_fail(function, "a floating type that is wider than long double");
  }
  numbers = converted(value, type, H5T_NATIVE_LDOUBLE, count);
  if (numbers == NULL) return -1;
  for (i = 0; i < count; ++i) {
    constant[i].tag = TL_TAG_DOUBLE;
    constant[i].number = ((const long double*)numbers)[i];
  }
  free(numbers);
  return 0;
}

/* How long a string is that has so much room. */
static size_t string_size(hid_t type, const char* text, size_t size) {
  const H5T_str_t padding = H5Tget_strpad(type);
  const void* end;
  if (padding == H5T_STR_NULLTERM) {
    end = memchr(text, '\0', size);
    return end == NULL ? size : (size_t)((const char*)end - text);
  }
  while (size > 0 && text[size - 1] == (padding == H5T_STR_SPACEPAD ? ' ' : '\0')) --size;
  return size;
}

static herr_t read_strings(hid_t type, const void* value, int count,
                           struct tl_query_constant* constant) {
  const htri_t variable = H5Tis_variable_str(type);
  const size_t size = H5Tget_size(type);
  int i;
  if (variable < 0) return -1;
  for (i = 0; i < count; ++i) {
    const char* text =
        variable ? ((const char* const*)value)[i] : (const char*)value + size * (size_t)i;
    if (text == NULL) text = "";
    constant[i].tag = TL_TAG_STRING;
    constant[i].text = (const unsigned char*)text;
    constant[i].size = variable ? strlen(text) : string_size(type, text, size);
  }
  return 0;
}

static herr_t read_constants(const char* function, hid_t type, const void* value, int count,
                             struct tl_query_constant* constant) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: return read_integers(function, type, value, count, constant);
    case H5T_FLOAT: return read_floats(function, type, value, count, constant);
    case H5T_STRING: return read_strings(type, value, count, constant);
    default: return tl_fail(function, "a constant is a number or a string");
  }
}

herr_t tl_query_read_values(const char* function, hid_t type_id, const void* value, int count,
                            struct tl_query_values* values) {
  hid_t type;
  herr_t result = -1;
  memset(values, 0, sizeof *values);
  if (value == NULL) return tl_fail(function, "no value");
  type = plain_type(function, type_id);
  if (type < 0) return -1;
  if (read_constants(function, type, value, count, values->constant) >= 0 &&
      H5Tencode(type, NULL, &values->type_size) >= 0) {
    values->type = (unsigned char*)malloc(values->type_size);
    result = values->type == NULL ? tl_fail(function, "no memory")
                                  : H5Tencode(type, values->type, &values->type_size);
  }
  if (result < 0) tl_query_free_values(values);
  close_type(type, result < 0);
  return result;
}

void tl_query_free_values(struct tl_query_values* values) {
  free(values->type);
  values->type = NULL;
}

/* Giving back ---------------------------------------------------------------------------------- */

static unsigned two_bytes(const unsigned char* at) { return at[0] | (unsigned)at[1] << 8; }

/* Whether bytes are those of an integer, a floating number or a string, whose form H5Tdecode can read without running over their end:
   it is not told where that is, and a query's bytes may come from anywhere. */
static int is_plain_type(const unsigned char* bytes, size_t size) {
  const unsigned char* message =
      bytes + 2; /* after the message's number and the encoding's version */
  const unsigned char* fields = message + 8;
  unsigned kind, bits;
  if (size < 10 || bytes[0] != 3 || bytes[1] != 0) return 0;
  kind = message[0] & 15;
  bits = message[5] == 0 && message[6] == 0 && message[7] == 0 ? 8u * message[4] : 0;
  if (kind == H5T_STRING) return size == 10;
  if (kind == H5T_VLEN) {
    /* Of characters, as HDF5 has them: integers of one byte. */
    return (message[1] & 15) == 1 && bits == 8 * sizeof(char*) && size == 22 &&
           (fields[0] & 15) == H5T_INTEGER && fields[4] == 1 && fields[5] == 0 && fields[6] == 0 &&
           fields[7] == 0 && two_bytes(fields + 8) == 0 && two_bytes(fields + 10) == 8;
  }
  if (bits == 0 || (kind != H5T_INTEGER && kind != H5T_FLOAT)) return 0;
  if (size != (kind == H5T_INTEGER ? 14u : 22u)) return 0;
  if (two_bytes(fields + 2) == 0 || two_bytes(fields) + two_bytes(fields + 2) > bits) return 0;
  if (kind == H5T_INTEGER) return bits <= 64;
  return bits <= 8 * sizeof(long double) && message[2] < bits && fields[5] != 0 && fields[7] != 0 &&
         (unsigned)fields[4] + fields[5] <= bits && (unsigned)fields[6] + fields[7] <= bits;
}

/* The type that a condition's constants were given in; where it does not say, one that has room for them. */
static hid_t type_of_constants(const char* function, const struct tl_query_condition* condition) {
  unsigned char bytes[64] = {0};
  int i;
  hid_t type = H5T_NATIVE_INT64;
  if (condition->type_size != 0) {
    if (condition->type_size > sizeof bytes / 2 ||
        !is_plain_type(condition->type, condition->type_size)) {
      return tl_fail(function, "the constants' type is none that a query is created with");
    }
    memcpy(bytes, condition->type, condition->type_size);
#if H5_VERS_MAJOR >= 2
    return H5Tdecode2(bytes, condition->type_size);
#else
    return H5Tdecode(bytes);
#endif
  }
  if (condition->constant[0].tag == TL_TAG_STRING) {
    type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && H5Tset_size(type, H5T_VARIABLE) < 0) {
      H5Tclose(type);
      type = H5I_INVALID_HID;
    }
    return type;
  }
  for (i = 0; i < condition->constants; ++i) {
    const int tag = condition->constant[i].tag;
    if (tag != TL_TAG_INT64)
      type = tag == TL_TAG_DOUBLE && condition->constants == 1 ? H5T_NATIVE_DOUBLE
                                                               : H5T_NATIVE_LDOUBLE;
  }
  if (condition->constants == 1 && condition->constant[0].tag == TL_TAG_UINT64) {
    type = H5T_NATIVE_UINT64;
  }
  return H5Tcopy(type);
}

static herr_t write_string(const char* function, hid_t type, const struct tl_query_constant* from,
                           char* to) {
  const size_t size = H5Tget_size(type);
  const htri_t variable = H5Tis_variable_str(type);
  char* text;
  if (variable < 0) return -1;
  if (!variable) {
    if (from->size > size) return tl_fail(function, "a constant is longer than its type");
    memset(to, H5Tget_strpad(type) == H5T_STR_SPACEPAD ? ' ' : '\0', size);
    memcpy(to, from->text, from->size);
    return 0;
  }
  text = (char*)H5allocate_memory(from->size + 1, 0);
  if (text == NULL) return tl_fail(function, "no memory");
  memcpy(text, from->text, from->size);
  text[from->size] = '\0';
  memcpy(to, &text, sizeof text);
  return 0;
}

static herr_t write_numbers(const char* function, hid_t type,
                            const struct tl_query_condition* condition, void* to) {
  union {
    int64_t integer;
    uint64_t natural;
  } integers[2];
  long double floats[2];
  const int is_float = H5Tget_class(type) == H5T_FLOAT;
  const int is_signed = !is_float && H5Tget_sign(type) != H5T_SGN_NONE;
  void* buffer;
  int i;
  for (i = 0; i < condition->constants; ++i) {
    const struct tl_query_constant* constant = &condition->constant[i];
    const int natural =
        constant->tag == TL_TAG_UINT64 || (constant->tag == TL_TAG_INT64 && constant->number >= 0);
    floats[i] = constant->number;
    if (is_float) continue;
    if (is_signed ? constant->tag != TL_TAG_INT64 : !natural) {
      return tl_fail(function, "a constant does not fit its type");
    }
    if (is_signed) integers[i].integer = (int64_t)constant->number;
    if (!is_signed) integers[i].natural = (uint64_t)constant->number;
  }
  buffer = is_float ? converted(floats, H5T_NATIVE_LDOUBLE, type, condition->constants)
                    : converted(integers, is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64, type,
                                condition->constants);
  if (buffer == NULL) return -1;
  memcpy(to, buffer, H5Tget_size(type) * (size_t)condition->constants);
  free(buffer);
  return 0;
}

static int same(const struct tl_query_constant* a, const struct tl_query_constant* b) {
  if ((a->tag == TL_TAG_STRING) != (b->tag == TL_TAG_STRING)) return 0;
  if (a->tag == TL_TAG_STRING) {
    return a->size == b->size && (a->size == 0 || memcmp(a->text, b->text, a->size) == 0);
  }
  return a->number == b->number || (a->number != a->number && b->number != b->number);
}

/* After a failure, of `value`, which was made of a type: takes back the strings that it refers to. */
static void free_strings(hid_t type, void* value, int count) {
  const hid_t errors = H5Eget_current_stack();
  int i;
  if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) > 0) {
    for (i = 0; i < count; ++i) {
      char** text = (char**)value + i;
      if (*text != NULL) H5free_memory(*text);
      *text = NULL;
    }
  }
  H5Eset_current_stack(errors);
}

static herr_t write_values(const char* function, hid_t type,
                           const struct tl_query_condition* condition, void* value) {
  const size_t size = H5Tget_size(type);
  struct tl_query_constant again[2];
  herr_t result = 0;
  int i;
  memset(value, 0, size * (size_t)condition->constants);
  memset(again, 0, sizeof again);
  if (H5Tget_class(type) != H5T_STRING) {
    result = write_numbers(function, type, condition, value);
  } else {
    for (i = 0; i < condition->constants && result >= 0; ++i) {
      result =
          write_string(function, type, &condition->constant[i], (char*)value + size * (size_t)i);
    }
  }
  if (result >= 0) result = read_constants(function, type, value, condition->constants, again);
  for (i = 0; i < condition->constants && result >= 0; ++i) {
    if (!same(&condition->constant[i], &again[i])) {
      result = tl_fail(function, "a constant does not fit its type");
    }
  }
  if (result < 0) free_strings(type, value, condition->constants);
  return result;
}

static herr_t get_value(const char* function, hid_t type,
                        const struct tl_query_condition* condition, void* value, size_t* size) {
  const int texts = H5Tget_class(type) == H5T_STRING;
  const size_t needed = H5Tget_size(type) * (size_t)condition->constants;
  if (texts != (condition->constant[0].tag == TL_TAG_STRING)) {
    return tl_fail(function, "the constants are none of their type");
  }
  if (value != NULL) {
    if (*size < needed) return tl_fail(function, "the values need more room");
    if (write_values(function, type, condition, value) < 0) return -1;
  }
  if (size != NULL) *size = needed;
  return 0;
}

herr_t tidelane_query_get_value(hid_t query_id, hid_t* type_id, void* value, size_t* size) {
  struct tl_query_node node;
  hid_t type;
  herr_t result;
  if (tl_query_condition_of(__func__, query_id, &node) < 0) return -1;
  if (value != NULL && size == NULL) return tl_fail(__func__, "no size of the place for values");
  type = type_of_constants(__func__, &node.condition);
  if (type < 0) return -1;
  result = get_value(__func__, type, &node.condition, value, size);
  if (result < 0 || type_id == NULL) {
    close_type(type, result < 0);
  } else {
    *type_id = type;
  }
  return result;
}
