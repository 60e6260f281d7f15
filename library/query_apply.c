/// \file
/// Queries applied: handed to the plugin, which is in charge of the file, by an operation (TL_QUERY_APPLY of src/h5/protocol.h).
///
/// Invariant: nothing is found here. Where no plugin answers, the call fails: an empty view would say that there is nothing.
/// Thread safety: as tidelane_query.h.
#define TIDELANE_QUERY_MODULE

#include <stdlib.h>

#include "h5/protocol.h"
#include "internal.h"
#include "query_object.h"
#include "tidelane_query.h"

struct source {
  const char* file;
  const char* function;
  unsigned line;
};

static int subclass_of(hid_t id, H5VL_subclass_t* subclass) {
  H5I_type_t type = H5I_BADID;
  H5E_BEGIN_TRY { type = H5Iget_type(id); }
  H5E_END_TRY
  switch (type) {
    case H5I_FILE: *subclass = H5VL_SUBCLS_FILE; return 1;
    case H5I_GROUP: *subclass = H5VL_SUBCLS_GROUP; return 1;
    case H5I_DATASET: *subclass = H5VL_SUBCLS_DATASET; return 1;
    default: return 0;
  }
}

/* Past HDF5's macros, which would say that this source is the program's. */
static herr_t operate(const struct source* source, H5VL_subclass_t subclass, hid_t id,
                      H5VL_optional_args_t* operation, hid_t set) {
  const char* const file = source->file;
  const char* const function = source->function;
  const unsigned line = source->line;
  switch (subclass) {
    case H5VL_SUBCLS_FILE:
      return (H5VLfile_optional_op)(file, function, line, id, operation, H5P_DEFAULT, set);
    case H5VL_SUBCLS_GROUP:
      return (H5VLgroup_optional_op)(file, function, line, id, operation, H5P_DEFAULT, set);
    default:
      return (H5VLdataset_optional_op)(file, function, line, id, operation, H5P_DEFAULT, set);
  }
}

/* The operation's number at the first location; -1: one of them is none, or nobody's who answers. */
static int check_locations(const char* function, size_t count, const hid_t* locations,
                           H5VL_subclass_t* first) {
  int operation = -1;
  size_t i;
  if (count == 0 || locations == NULL) return tl_fail(function, "no location");
  for (i = 0; i < count; ++i) {
    H5VL_subclass_t subclass = H5VL_SUBCLS_NONE;
    int number = -1;
    if (!subclass_of(locations[i], &subclass)) {
      return tl_fail(function, "neither a file, a group nor a dataset");
    }
    if (!tl_find_operation(locations[i], subclass, TL_QUERY_APPLY, &number)) {
      return tl_fail(function,
                     "queries are applied by the plugin tidelane, which is not in charge of this "
                     "file (or is one that knows no queries)");
    }
    if (i == 0) operation = number;
    if (i == 0) *first = subclass;
  }
  return operation;
}

static hid_t apply(const struct source* source, const char* function, size_t count,
                   const hid_t* locations, hid_t query_id, unsigned* result, hid_t vcpl_id,
                   hid_t set) {
  const struct tl_query* query = tl_query_of(function, query_id);
  struct tl_query_apply_args args = {0};
  H5VL_subclass_t subclass = H5VL_SUBCLS_NONE;
  H5VL_optional_args_t operation;
  int64_t* ids;
  herr_t done;
  size_t i;
  if (query == NULL) return H5I_INVALID_HID;
  if (result == NULL) return tl_fail(function, "no place for the result");
  operation.op_type = check_locations(function, count, locations, &subclass);
  if (operation.op_type < 0) return H5I_INVALID_HID;
  ids = (int64_t*)malloc(count * sizeof *ids);
  if (ids == NULL) return tl_fail(function, "no memory");
  for (i = 0; i < count; ++i) ids[i] = locations[i];
  *result = 0;
  args.size = (uint32_t)sizeof args;
  args.query = query->bytes;
  args.query_size = query->size;
  args.locations = ids;
  args.location_count = count;
  args.view_list = vcpl_id;
  args.result = result;
  args.view = H5I_INVALID_HID;
  operation.args = &args;
  done = operate(source, subclass, locations[0], &operation, set);
  free(ids);
  return done < 0 ? H5I_INVALID_HID : (hid_t)args.view;
}

hid_t H5Qapply(hid_t loc_id, hid_t query_id, unsigned* result, hid_t vcpl_id) {
  const struct source here = {__FILE__, __func__, __LINE__};
  return apply(&here, __func__, 1, &loc_id, query_id, result, vcpl_id, H5ES_NONE);
}

hid_t H5Qapply_multi(size_t loc_count, hid_t* loc_ids, hid_t query_id, unsigned* result,
                     hid_t vcpl_id) {
  const struct source here = {__FILE__, __func__, __LINE__};
  return apply(&here, __func__, loc_count, loc_ids, query_id, result, vcpl_id, H5ES_NONE);
}

hid_t H5Qapply_async(const char* app_file, const char* app_func, unsigned app_line, hid_t loc_id,
                     hid_t query_id, unsigned* result, hid_t vcpl_id, hid_t es_id) {
  const struct source there = {app_file, app_func, app_line};
  return apply(&there, __func__, 1, &loc_id, query_id, result, vcpl_id, es_id);
}

hid_t H5Qapply_multi_async(const char* app_file, const char* app_func, unsigned app_line,
                           size_t loc_count, hid_t* loc_ids, hid_t query_id, unsigned* result,
                           hid_t vcpl_id, hid_t es_id) {
  const struct source there = {app_file, app_func, app_line};
  return apply(&there, __func__, loc_count, loc_ids, query_id, result, vcpl_id, es_id);
}
