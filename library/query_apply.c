/// \file
/// Queries applied: handed to the plugin, which is in charge of the file, by an operation (TL_FILE_QUERY of src/h5/protocol.h).
///
/// Invariant: nothing is found here. Where no plugin answers, the call fails: an empty view would say that there is nothing.
/// Thread safety: as tidelane_query.h.
#define TIDELANE_QUERY_MODULE

#include <stdlib.h>
#include <string.h>

#include "h5/protocol.h"
#include "internal.h"
#include "query_object.h"
#include "query_view.h"
#include "tidelane_query.h"

/* Where in the program it was called, for event sets. */
struct source {
  const char* file;
  const char* function;
  unsigned line;
};

static int is_place(hid_t id) {
  H5I_type_t type = H5I_BADID;
  H5E_BEGIN_TRY { type = H5Iget_type(id); }
  H5E_END_TRY
  return type == H5I_FILE || type == H5I_GROUP || type == H5I_DATASET;
}

/* Every call of HDF5 forgets why the one before has failed: around those that tidy up. */
static hid_t keep_errors(void) { return H5Eget_current_stack(); }
static void restore_errors(hid_t errors) {
  if (errors >= 0) H5Eset_current_stack(errors);
}

static herr_t no_plugin(const char* function) {
  return tl_fail(function,
                 "queries are applied by the plugin tidelane, which is not in charge of this "
                 "file (or is one that knows no queries)");
}

/* Past HDF5's macro, which would say that this source is the program's. */
static herr_t operate(const struct source* source, hid_t file, int number, void* args, hid_t set) {
  H5VL_optional_args_t operation;
  operation.op_type = number;
  operation.args = args;
  return (H5VLfile_optional_op)(source->file, source->function, source->line, file, &operation,
                                H5P_DEFAULT, set);
}

/* An identifier of the file that `place` is in, to be given back. */
static hid_t file_of(const char* function, hid_t place) {
  return is_place(place) ? H5Iget_file_id(place)
                         : tl_fail(function, "neither a file, a group nor a dataset");
}

static void give_back(hid_t file) {
  const hid_t errors = keep_errors();
  H5Fclose(file);
  restore_errors(errors);
}

/* Asks the file that `place` is in. */
static herr_t ask(const struct source* source, const char* function, hid_t place,
                  struct tl_query_args* args) {
  const hid_t file = file_of(function, place);
  herr_t done = -1;
  int number;
  if (file < 0) return -1;
  args->place = place;
  if (tl_find_operation(file, H5VL_SUBCLS_FILE, TL_FILE_QUERY, &number)) {
    done = operate(source, file, number, args, H5ES_NONE);
  } else {
    done = no_plugin(function);
  }
  give_back(file);
  return done;
}

static const struct tl_query* query_to_apply(const char* function, size_t count,
                                             const hid_t* places, hid_t query_id,
                                             const unsigned* result) {
  const struct tl_query* query = tl_query_of(function, query_id);
  if (query != NULL && result != NULL && count != 0 && places != NULL) return query;
  if (query != NULL) tl_fail(function, result == NULL ? "no place for the result" : "no location");
  return NULL;
}

/* A tl_query_args.found: of the object itself. */
static int note(void* view, const struct tl_query_found* found) {
  return tl_view_note((struct tl_view*)view, found, ".");
}

static hid_t apply(const struct source* source, const char* function, size_t count,
                   const hid_t* places, hid_t query_id, unsigned* result, hid_t vcpl_id) {
  const struct tl_query* query = query_to_apply(function, count, places, query_id, result);
  struct tl_view view = {0};
  struct tl_query_args args = {0};
  hid_t group = H5I_INVALID_HID;
  hid_t errors;
  size_t i;
  if (query == NULL) return H5I_INVALID_HID;
  args.query = query->bytes;
  args.size = query->size;
  args.found = note;
  args.context = &view;
  *result = 0;
  for (i = 0; i < count; ++i) {
    if (ask(source, function, places[i], &args) < 0) break;
  }
  if (i == count) group = tl_view_make(vcpl_id);
  if (group >= 0 && tl_view_write(&view, group) < 0) {
    errors = keep_errors();
    H5Gclose(group);
    restore_errors(errors);
    group = H5I_INVALID_HID;
  }
  if (group >= 0) *result = tl_view_bits(&view);
  errors = keep_errors();
  tl_view_free(&view);
  restore_errors(errors);
  return group;
}

/* A view whose places tell what they have found after the call, each all at once: what it has found is written then, because references keep their file open.
   Of malloc. */
struct late_view {
  struct tl_view view;
  hid_t group; /* the program's, who may have closed it */
  int several; /* places */
  unsigned* result;
  unsigned bits;
  size_t left; /* places that have not told everything, and the call as long as it goes on */
  int failed;
};

static int late_note(void* context, const struct tl_query_found* found) {
  return tl_view_note(&((struct late_view*)context)->view, found, found->path);
}

static int late_note_itself(void* context, const struct tl_query_found* found) {
  return tl_view_note(&((struct late_view*)context)->view, found, ".");
}

static herr_t late_write(struct late_view* late) {
  if (H5Iis_valid(late->group) <= 0) return 0;
  return late->several ? tl_view_append(&late->view, late->group)
                       : tl_view_write(&late->view, late->group);
}

/* A tl_query_later_args.done. */
static int late_done(void* context, int failed) {
  struct late_view* const late = (struct late_view*)context;
  int done = 0;
  if (!failed && !late->failed && late_write(late) < 0) failed = done = -1;
  if (failed) late->failed = 1;
  late->bits |= tl_view_bits(&late->view);
  tl_view_free(&late->view);
  if (--late->left != 0) return done;
  if (!late->failed) {
    *late->result = late->bits;
  } else if (H5Iis_valid(late->group) > 0) {
    tl_view_empty(late->group);
  }
  free(late);
  return done;
}

static herr_t ask_later(const struct source* source, const char* function, hid_t place,
                        const struct tl_query* query, struct late_view* late, hid_t set) {
  const hid_t file = file_of(function, place);
  struct tl_query_later_args args;
  herr_t done = -1;
  int number;
  if (file < 0) return -1;
  memset(&args, 0, sizeof args);
  args.query.place = place;
  args.query.query = query->bytes;
  args.query.size = query->size;
  args.query.found = late_note;
  args.query.context = late;
  args.done = late_done;
  ++late->left;
  /* Where the program has no identifier of the file any more, this one's close would have it answered, when references could not be made any more. */
  if (H5Iget_ref(file) > 1 &&
      tl_find_operation(file, H5VL_SUBCLS_FILE, TL_FILE_QUERY_LATER, &number)) {
    done = operate(source, file, number, &args, set);
  } else if (tl_find_operation(file, H5VL_SUBCLS_FILE, TL_FILE_QUERY, &number)) {
    args.query.found = late_note_itself; /* also an older plugin's */
    done = operate(source, file, number, &args.query, H5ES_NONE);
  } else {
    done = no_plugin(function);
  }
  if (!args.accepted) --late->left;
  give_back(file);
  return done;
}

static hid_t apply_later(const struct source* source, const char* function, size_t count,
                         const hid_t* places, hid_t query_id, unsigned* result, hid_t vcpl_id,
                         hid_t set) {
  const struct tl_query* query = query_to_apply(function, count, places, query_id, result);
  struct late_view* late = NULL;
  hid_t group = H5I_INVALID_HID;
  hid_t errors;
  int failed;
  size_t i;
  if (query == NULL) return H5I_INVALID_HID;
  *result = 0;
  late = (struct late_view*)calloc(1, sizeof *late);
  if (late == NULL) return tl_fail(function, "no memory");
  late->left = 1;
  late->result = result;
  late->several = count > 1;
  late->group = group = tl_view_make(vcpl_id);
  if (group < 0) late->failed = 1;
  for (i = 0; i < count && !late->failed; ++i) {
    if (ask_later(source, function, places[i], query, late, set) < 0) late->failed = 1;
  }
  failed = late->failed;
  errors = failed ? keep_errors() : H5I_INVALID_HID;
  if (late_done(late, failed) >= 0 && !failed) return group;
  if (!failed) errors = keep_errors();
  if (group >= 0) H5Gclose(group);
  restore_errors(errors);
  return H5I_INVALID_HID;
}

hid_t H5Qapply(hid_t loc_id, hid_t query_id, unsigned* result, hid_t vcpl_id) {
  const struct source here = {__FILE__, __func__, __LINE__};
  return apply(&here, __func__, 1, &loc_id, query_id, result, vcpl_id);
}

hid_t H5Qapply_multi(size_t loc_count, hid_t* loc_ids, hid_t query_id, unsigned* result,
                     hid_t vcpl_id) {
  const struct source here = {__FILE__, __func__, __LINE__};
  return apply(&here, __func__, loc_count, loc_ids, query_id, result, vcpl_id);
}

hid_t H5Qapply_async(const char* app_file, const char* app_func, unsigned app_line, hid_t loc_id,
                     hid_t query_id, unsigned* result, hid_t vcpl_id, hid_t es_id) {
  const struct source there = {app_file, app_func, app_line};
  return apply_later(&there, __func__, 1, &loc_id, query_id, result, vcpl_id, es_id);
}

hid_t H5Qapply_multi_async(const char* app_file, const char* app_func, unsigned app_line,
                           size_t loc_count, hid_t* loc_ids, hid_t query_id, unsigned* result,
                           hid_t vcpl_id, hid_t es_id) {
  const struct source there = {app_file, app_func, app_line};
  return apply_later(&there, __func__, loc_count, loc_ids, query_id, result, vcpl_id, es_id);
}

/* Of the dataset itself; what is found below it there is not. */
static int keep_space(void* context, const struct tl_query_found* found) {
  hid_t* const space = (hid_t*)context;
  if (found->kind != TL_FOUND_REGION)
    return tl_fail("tidelane_query_select", "no query on elements");
  *space = H5Scopy(found->space);
  return *space < 0 ? -1 : 0;
}

hid_t tidelane_query_select(hid_t dset_id, hid_t query_id) {
  const struct source here = {__FILE__, __func__, __LINE__};
  const struct tl_query* query = tl_query_of(__func__, query_id);
  struct tl_query_args args = {0};
  hid_t space = H5I_INVALID_HID;
  if (query == NULL) return H5I_INVALID_HID;
  if (!is_place(dset_id) || H5Iget_type(dset_id) != H5I_DATASET) {
    return tl_fail(__func__, "no dataset");
  }
  args.query = query->bytes;
  args.size = query->size;
  args.found = keep_space;
  args.context = &space;
  if (ask(&here, __func__, dset_id, &args) < 0) return H5I_INVALID_HID;
  if (space >= 0) return space;
  space = H5Dget_space(dset_id);
  if (space >= 0 && H5Sselect_none(space) < 0) {
    H5Sclose(space);
    return H5I_INVALID_HID;
  }
  return space;
}
