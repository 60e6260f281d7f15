/// \file
/// The library for programs, linked to the program's HDF5. It knows the plugin by names only
/// (h5/protocol.h): properties that it leaves on lists, operations that it asks of files.
///
/// Invariant: nothing is remembered here, so nothing can be out of date: whether the plugin is there
/// is asked of HDF5 in each call.
///
/// Thread safety: as tidelane.h; `told_once` is at worst told twice.
#include "tidelane.h"

#include <stdio.h>

#include "h5/protocol.h"
#include "internal.h"

herr_t tl_fail(const char* function, const char* text) {
  H5E_auto2_t show = NULL;
  void* context = NULL;
  H5Eclear2(H5E_DEFAULT);
  H5Epush2(H5E_DEFAULT, __FILE__, function, __LINE__, H5E_ERR_CLS, H5E_ARGS, H5E_BADTYPE, "%s",
           text);
  if (H5Eget_auto2(H5E_DEFAULT, &show, &context) >= 0 && show != NULL) show(H5E_DEFAULT, context);
  return -1;
}

/* Properties of lists ------------------------------------------------------------------------ */

static herr_t check_list(const char* function, hid_t list, hid_t list_class) {
  htri_t right = -1;
  H5E_BEGIN_TRY { right = H5Pisa_class(list, list_class); }
  H5E_END_TRY
  if (right > 0) return 0;
  return tl_fail(function, list_class == H5P_FILE_ACCESS
                               ? "not a file access list (H5P_DEFAULT cannot be changed: make one)"
                               : "not a transfer list (H5P_DEFAULT cannot be changed: make one)");
}

static herr_t set(const char* function, hid_t list, hid_t list_class, const char* name,
                  const void* value, size_t size) {
  htri_t there;
  if (check_list(function, list, list_class) < 0) return -1;
  if (list == H5P_FILE_ACCESS_DEFAULT || list == H5P_DATASET_XFER_DEFAULT) {
    return tl_fail(function, "the default list cannot be changed: make one");
  }
  there = H5Pexist(list, name);
  if (there < 0) return -1;
  if (there > 0) return H5Pset(list, name, value);
  return H5Pinsert2(list, name, size, (void*)value, NULL, NULL, NULL, NULL, NULL, NULL);
}

/* `value` holds what it is when nobody has set it. */
static herr_t get(const char* function, hid_t list, hid_t list_class, const char* name,
                  void* value) {
  htri_t there;
  if (value == NULL) return tl_fail(function, "no place for the answer");
  if (list == H5P_DEFAULT) return 0;
  if (check_list(function, list, list_class) < 0) return -1;
  there = H5Pexist(list, name);
  return there > 0 ? H5Pget(list, name, value) : (there < 0 ? -1 : 0);
}

static herr_t set_switch(const char* function, hid_t list, hid_t list_class, const char* name,
                         hbool_t value) {
  return set(function, list, list_class, name, &value, sizeof value);
}

static herr_t get_switch(const char* function, hid_t list, hid_t list_class, const char* name,
                         hbool_t* value) {
  if (value != NULL) *value = 0;
  return get(function, list, list_class, name, value);
}

static herr_t set_number(const char* function, hid_t list, hid_t list_class, const char* name,
                         uint64_t value) {
  return set(function, list, list_class, name, &value, sizeof value);
}

static herr_t get_number(const char* function, hid_t list, hid_t list_class, const char* name,
                         uint64_t* value, uint64_t otherwise) {
  if (value != NULL) *value = otherwise;
  return get(function, list, list_class, name, value);
}

herr_t H5Pset_fapl_pause(hid_t fapl_id, hbool_t is_pause) {
  return set_switch(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_PAUSE, is_pause);
}

herr_t H5Pget_fapl_pause(hid_t fapl_id, hbool_t* is_pause) {
  return get_switch(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_PAUSE, is_pause);
}

herr_t H5Pset_dxpl_pause(hid_t dxpl_id, hbool_t is_pause) {
  return set_switch(__func__, dxpl_id, H5P_DATASET_XFER, TL_PROPERTY_PAUSE, is_pause);
}

herr_t H5Pget_dxpl_pause(hid_t dxpl_id, hbool_t* is_pause) {
  return get_switch(__func__, dxpl_id, H5P_DATASET_XFER, TL_PROPERTY_PAUSE, is_pause);
}

herr_t H5Pset_fapl_delay(hid_t fapl_id, uint64_t time_us) {
  return set_number(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_DELAY, time_us);
}

herr_t H5Pget_fapl_delay(hid_t fapl_id, uint64_t* time_us) {
  return get_number(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_DELAY, time_us, 0);
}

herr_t H5Pset_dxpl_delay(hid_t dxpl_id, uint64_t time_us) {
  return set_number(__func__, dxpl_id, H5P_DATASET_XFER, TL_PROPERTY_DELAY, time_us);
}

herr_t H5Pget_dxpl_delay(hid_t dxpl_id, uint64_t* time_us) {
  return get_number(__func__, dxpl_id, H5P_DATASET_XFER, TL_PROPERTY_DELAY, time_us, 0);
}

herr_t H5Pset_fapl_disable_async_implicit(hid_t fapl_id, hbool_t is_disable) {
  return set_switch(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_DISABLE_IMPLICIT, is_disable);
}

herr_t H5Pget_fapl_disable_async_implicit(hid_t fapl_id, hbool_t* is_disable) {
  return get_switch(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_DISABLE_IMPLICIT, is_disable);
}

herr_t H5Pset_dxpl_disable_async_implicit(hid_t dxpl_id, hbool_t is_disable) {
  return set_switch(__func__, dxpl_id, H5P_DATASET_XFER, TL_PROPERTY_DISABLE_IMPLICIT, is_disable);
}

herr_t H5Pget_dxpl_disable_async_implicit(hid_t dxpl_id, hbool_t* is_disable) {
  return get_switch(__func__, dxpl_id, H5P_DATASET_XFER, TL_PROPERTY_DISABLE_IMPLICIT, is_disable);
}

herr_t H5Pset_dxpl_async(hid_t dxpl_id, hbool_t is_async) {
  return set_switch(__func__, dxpl_id, H5P_DATASET_XFER, TL_PROPERTY_DISABLE_IMPLICIT, !is_async);
}

herr_t H5Pget_dxpl_async(hid_t dxpl_id, hbool_t* is_async) {
  const herr_t result =
      get_switch(__func__, dxpl_id, H5P_DATASET_XFER, TL_PROPERTY_DISABLE_IMPLICIT, is_async);
  if (result >= 0) *is_async = !*is_async;
  return result;
}

herr_t H5Pset_dxpl_async_cp_limit(hid_t dxpl_id, hsize_t size) {
  return set_number(__func__, dxpl_id, H5P_DATASET_XFER, TL_PROPERTY_COPY_LIMIT, size);
}

herr_t H5Pget_dxpl_async_cp_limit(hid_t dxpl_id, hsize_t* size) {
  uint64_t limit = 0;
  const herr_t result = get_number(__func__, dxpl_id, H5P_DATASET_XFER, TL_PROPERTY_COPY_LIMIT,
                                   size == NULL ? NULL : &limit, UINT64_MAX);
  if (result >= 0) *size = limit;
  return result;
}

herr_t tidelane_set_dxpl_gpu_stream(hid_t dxpl_id, void* stream) {
  return set_number(__func__, dxpl_id, H5P_DATASET_XFER, TL_PROPERTY_GPU_STREAM,
                    (uint64_t)(uintptr_t)stream);
}

herr_t tidelane_get_dxpl_gpu_stream(hid_t dxpl_id, void** stream) {
  uint64_t handle = 0;
  const herr_t result = get_number(__func__, dxpl_id, H5P_DATASET_XFER, TL_PROPERTY_GPU_STREAM,
                                   stream == NULL ? NULL : &handle, 0);
  if (result >= 0) *stream = (void*)(uintptr_t)handle;
  return result;
}

static herr_t set_when(const char* function, hid_t fapl, const char* name, tidelane_when_t when) {
  const int value = (int)when;
  if (value < TL_WHEN_AS_CONFIGURED || value > TL_WHEN_DEFERRED) {
    return tl_fail(function, "neither TIDELANE_AS_CONFIGURED, TIDELANE_WAIT nor TIDELANE_DEFERRED");
  }
  return set(function, fapl, H5P_FILE_ACCESS, name, &value, sizeof value);
}

static herr_t get_when(const char* function, hid_t fapl, const char* name, tidelane_when_t* when) {
  int value = TL_WHEN_AS_CONFIGURED;
  const herr_t result =
      get(function, fapl, H5P_FILE_ACCESS, name, when == NULL ? NULL : (void*)&value);
  if (result >= 0) *when = (tidelane_when_t)value;
  return result;
}

herr_t tidelane_set_fapl_close(hid_t fapl_id, tidelane_when_t when) {
  return set_when(__func__, fapl_id, TL_PROPERTY_CLOSE, when);
}

herr_t tidelane_get_fapl_close(hid_t fapl_id, tidelane_when_t* when) {
  return get_when(__func__, fapl_id, TL_PROPERTY_CLOSE, when);
}

herr_t tidelane_set_fapl_flush(hid_t fapl_id, tidelane_when_t when) {
  return set_when(__func__, fapl_id, TL_PROPERTY_FLUSH, when);
}

herr_t tidelane_get_fapl_flush(hid_t fapl_id, tidelane_when_t* when) {
  return get_when(__func__, fapl_id, TL_PROPERTY_FLUSH, when);
}

herr_t tidelane_set_fapl_publish(hid_t fapl_id, tidelane_publish_t how) {
  const int value = (int)how;
  if (value < TL_PUBLISH_AS_CONFIGURED || value > TL_PUBLISH_ATOMIC) {
    return tl_fail(__func__,
                   "neither TIDELANE_PUBLISH_AS_CONFIGURED, TIDELANE_PUBLISH_INPLACE nor "
                   "TIDELANE_PUBLISH_ATOMIC");
  }
  return set(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_PUBLISH, &value, sizeof value);
}

herr_t tidelane_get_fapl_publish(hid_t fapl_id, tidelane_publish_t* how) {
  int value = TL_PUBLISH_AS_CONFIGURED;
  const herr_t result = get(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_PUBLISH,
                            how == NULL ? NULL : (void*)&value);
  if (result >= 0) *how = (tidelane_publish_t)value;
  return result;
}

herr_t tidelane_set_fapl_journal(hid_t fapl_id, tidelane_journal_t journal) {
  const int value = (int)journal;
  if (value < TL_JOURNAL_AS_CONFIGURED || value > TL_JOURNAL_POWER) {
    return tl_fail(__func__,
                   "neither TIDELANE_JOURNAL_AS_CONFIGURED, TIDELANE_JOURNAL_OFF, "
                   "TIDELANE_JOURNAL_PROCESS nor TIDELANE_JOURNAL_POWER");
  }
  return set(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_JOURNAL, &value, sizeof value);
}

herr_t tidelane_get_fapl_journal(hid_t fapl_id, tidelane_journal_t* journal) {
  int value = TL_JOURNAL_AS_CONFIGURED;
  const herr_t result = get(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_JOURNAL,
                            journal == NULL ? NULL : (void*)&value);
  if (result >= 0) *journal = (tidelane_journal_t)value;
  return result;
}

herr_t tidelane_set_fapl_journal_required(hid_t fapl_id, hbool_t is_required) {
  return set_switch(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_JOURNAL_REQUIRED, is_required);
}

herr_t tidelane_get_fapl_journal_required(hid_t fapl_id, hbool_t* is_required) {
  return get_switch(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_JOURNAL_REQUIRED, is_required);
}

herr_t tidelane_set_fapl_journal_commits(hid_t fapl_id, uint64_t flushes, double seconds) {
  static const double longest = 1e12; /* 30000 years; what is no number is not less, either */
  struct tl_journal_commits due = {0, 0};
  if (!(seconds >= 0 && seconds < longest)) {
    return tl_fail(__func__, "a time is a number of seconds, 0 or more");
  }
  due.flushes = flushes;
  due.time_us = (uint64_t)(seconds * 1e6 + 0.5);
  if (seconds > 0 && due.time_us == 0) due.time_us = 1;
  return set(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_JOURNAL_COMMITS, &due, sizeof due);
}

herr_t tidelane_get_fapl_journal_commits(hid_t fapl_id, uint64_t* flushes, double* seconds) {
  struct tl_journal_commits due = {0, 0};
  const herr_t result = get(__func__, fapl_id, H5P_FILE_ACCESS, TL_PROPERTY_JOURNAL_COMMITS,
                            flushes == NULL || seconds == NULL ? NULL : (void*)&due);
  if (result < 0) return result;
  *flushes = due.flushes;
  *seconds = (double)due.time_us / 1e6;
  return result;
}

/* Operations on files and datasets ------------------------------------------------------------ */

static herr_t check_type(const char* function, hid_t id, H5I_type_t type) {
  if (H5Iget_type(id) == type) return 0;
  return tl_fail(function, type == H5I_FILE ? "not a file" : "not a dataset");
}

int tl_find_operation(hid_t id, H5VL_subclass_t subclass, const char* name, int* number) {
  uint64_t flags = 0;
  herr_t found = -1;
  *number = -1;
  H5E_BEGIN_TRY {
    found = H5VLfind_opt_operation(subclass, name, number);
    if (found >= 0) found = H5VLquery_optional(id, subclass, *number, &flags);
  }
  H5E_END_TRY
  return found >= 0 && (flags & H5VL_OPT_QUERY_SUPPORTED) != 0;
}

/* Nothing is done, successfully, where no connector of ours is in charge of the object. */
static herr_t operate(const char* function, hid_t id, H5I_type_t type, const char* name, void* args,
                      hid_t dxpl) {
  const H5VL_subclass_t subclass = type == H5I_FILE ? H5VL_SUBCLS_FILE : H5VL_SUBCLS_DATASET;
  H5VL_optional_args_t operation;
  if (check_type(function, id, type) < 0) return -1;
  operation.args = args;
  if (!tl_find_operation(id, subclass, name, &operation.op_type)) return 0;
  return type == H5I_FILE ? H5VLfile_optional_op(id, &operation, dxpl, H5ES_NONE)
                          : H5VLdataset_optional_op(id, &operation, dxpl, H5ES_NONE);
}

static herr_t test(const char* function, hid_t id, H5I_type_t type, const char* name,
                   int* completed) {
  struct tl_test_args args = {1};
  herr_t result;
  if (completed == NULL) return tl_fail(function, "no place for the answer");
  result = operate(function, id, type, name, &args, H5P_DEFAULT);
  *completed = args.stored;
  return result;
}

herr_t H5Fwait(hid_t file_id, hid_t dxpl_id) {
  return operate(__func__, file_id, H5I_FILE, TL_FILE_WAIT, NULL, dxpl_id);
}

herr_t H5Dwait(hid_t dset_id, hid_t dxpl_id) {
  return operate(__func__, dset_id, H5I_DATASET, TL_DATASET_WAIT, NULL, dxpl_id);
}

herr_t H5Ftest(hid_t file_id, int* completed) {
  return test(__func__, file_id, H5I_FILE, TL_FILE_TEST, completed);
}

herr_t H5Dtest(hid_t dset_id, int* completed) {
  return test(__func__, dset_id, H5I_DATASET, TL_DATASET_TEST, completed);
}

herr_t H5Fstart(hid_t file_id, hid_t dxpl_id) {
  return operate(__func__, file_id, H5I_FILE, TL_FILE_START, NULL, dxpl_id);
}

herr_t H5Dstart(hid_t dset_id, hid_t dxpl_id) {
  return operate(__func__, dset_id, H5I_DATASET, TL_DATASET_START, NULL, dxpl_id);
}

herr_t H5Fpause(hid_t file_id, hid_t dxpl_id) {
  return operate(__func__, file_id, H5I_FILE, TL_FILE_PAUSE, NULL, dxpl_id);
}

herr_t H5Dpause(hid_t dset_id, hid_t dxpl_id) {
  return operate(__func__, dset_id, H5I_DATASET, TL_DATASET_PAUSE, NULL, dxpl_id);
}

herr_t H5Fset_delay_time(hid_t file_id, hid_t dxpl_id, uint64_t time_us) {
  struct tl_delay_args args;
  args.time_us = time_us;
  return operate(__func__, file_id, H5I_FILE, TL_FILE_DELAY, &args, dxpl_id);
}

herr_t H5Dset_delay_time(hid_t dset_id, hid_t dxpl_id, uint64_t time_us) {
  struct tl_delay_args args;
  args.time_us = time_us;
  return operate(__func__, dset_id, H5I_DATASET, TL_DATASET_DELAY, &args, dxpl_id);
}

herr_t tidelane_commit(hid_t file_id) {
  H5VL_optional_args_t operation;
  if (check_type(__func__, file_id, H5I_FILE) < 0) return -1;
  operation.args = NULL;
  if (!tl_find_operation(file_id, H5VL_SUBCLS_FILE, TL_FILE_COMMIT, &operation.op_type)) {
    return H5Fflush(file_id, H5F_SCOPE_LOCAL);
  }
  return H5VLfile_optional_op(file_id, &operation, H5P_DEFAULT, H5ES_NONE);
}

/* The connector ------------------------------------------------------------------------------- */

static void told_once(void) {
  static int told = 0;
  if (told) return;
  told = 1;
  fprintf(
      stderr,
      "tidelane: H5Pset_vol_async: HDF5 finds no connector called tidelane (HDF5_PLUGIN_PATH says "
      "where to look): files are written natively\n");
}

herr_t H5Pset_vol_async(hid_t fapl_id) {
  uint64_t capabilities = 0;
  hid_t connector = H5I_INVALID_HID;
  herr_t result;
  if (check_list(__func__, fapl_id, H5P_FILE_ACCESS) < 0) return -1;
  /* HDF5_VOL_CONNECTOR may have chosen already, perhaps with settings for its connector. */
  if (H5Pget_vol_cap_flags(fapl_id, &capabilities) >= 0 &&
      (capabilities & H5VL_CAP_FLAG_ASYNC) != 0) {
    return 0;
  }
  H5E_BEGIN_TRY { connector = H5VLregister_connector_by_name("tidelane", H5P_DEFAULT); }
  H5E_END_TRY
  if (connector < 0) {
    told_once();
    return 0;
  }
  result = H5Pset_vol(fapl_id, connector, NULL);
  if (H5VLclose(connector) < 0) return -1;
  return result;
}
