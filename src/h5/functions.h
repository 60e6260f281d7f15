/// \file
/// Which functions of HDF5 we call. They are found at run time in the libhdf5 that calls us (h5/library.h).
///
/// Invariant: functions only, no data symbols: see h5/hdf5.h.
/// Thread safety: as HDF5's own; they are called under its lock.
#pragma once

#include "h5/hdf5.h"

namespace tidelane::h5 {

// clang-format off
// Every HDF5 function we call, without its H5 prefix.
#define TL_H5_FUNCTIONS(X) \
  X(atclose) X(allocate_memory) X(free_memory) X(get_libversion) X(is_library_threadsafe) \
    X(resize_memory) \
  X(Aget_space) X(Aget_type) X(Aiterate2) X(Aopen) X(Aread) \
  X(Dget_create_plist) X(Dget_space) X(Dget_type) X(Dread) \
  X(Eclear2) X(Ecreate_msg) X(Ecreate_stack) X(Eget_auto2) X(Eget_class_name) X(Eget_current_stack) X(Eget_msg) X(Eget_num) X(Epush2) \
    X(Eregister_class) X(Eset_auto2) X(Eset_current_stack) X(Ewalk2) \
  X(ESwait) \
  X(Fget_name) X(FDdriver_query) X(FDregister) \
  X(Idec_ref) X(Iget_name) X(Iget_type) X(Iinc_ref) X(Iiterate) \
  X(Lregister) X(Lvisit2) \
  X(Oget_info3) X(Oopen) X(Oopen_by_token) \
  X(Pclose) X(Pclose_class) X(Pcopy) X(Pcreate) X(Pequal) X(Pexist) X(Pfill_value_defined) X(Pget) X(Pget_chunk) X(Pget_alloc_time) X(Pget_class) \
    X(Pget_chunk_cache) X(Pget_chunk_opts) X(Pget_driver) X(Pget_elink_cb) X(Pget_elink_fapl) X(Pget_external_count) \
    X(Pget_fill_time) X(Pget_fill_value) X(Pget_filter2) X(Pget_layout) X(Pget_nfilters) \
    X(Pget_nprops) X(Pget_page_buffer_size) X(Pget_sieve_buf_size) X(Pget_size) X(Pget_vol_id) X(Pget_vol_info) \
    X(Premove) X(Pset) X(Pset_driver) X(Pset_elink_cb) X(Pset_elink_fapl) X(Pset_fapl_sec2) X(Pset_selection_io) \
  X(Scombine_select) X(Scopy) X(Screate_simple) X(Sget_regular_hyperslab) X(Sget_select_bounds) X(Sget_select_hyper_blocklist) X(Sget_select_hyper_nblocks) X(Sget_select_npoints) X(Sget_select_type) \
    X(Sget_simple_extent_dims) X(Sget_simple_extent_npoints) X(Sget_simple_extent_type) X(Sis_regular_hyperslab) \
    X(Sselect_all) X(Sselect_elements) X(Sselect_hyperslab) X(Sselect_none) X(Sselect_valid) X(Ssel_iter_close) X(Ssel_iter_create) \
    X(Ssel_iter_get_seq_list) \
  X(Tcommitted) X(Tconvert) X(Tcopy) X(Tcreate) X(Tdetect_class) X(Tequal) X(Tget_class) X(Tget_ebias) X(Tget_fields) X(Tget_member_index) \
    X(Tget_member_offset) X(Tget_member_type) X(Tget_native_type) X(Tget_nmembers) X(Tget_norm) X(Tget_offset) X(Tget_order) X(Tget_precision) \
    X(Tget_sign) X(Tget_size) X(Tget_strpad) X(Tget_super) X(Tinsert) \
    X(Tis_variable_str) X(Treclaim) \
  X(VLfind_opt_operation) X(VLget_connector_id) X(VLget_connector_id_by_value) X(VLget_value) \
    X(VLintrospect_get_conn_cls) X(VLobject) X(VLobject_is_native) X(VLregister_opt_operation) \
  X(Zfilter_avail)
// clang-format on

/// The functions of one libhdf5, called as `library.Pcopy(...)`.
struct Functions {
#define X(name) decltype(&::H5##name) name;
  TL_H5_FUNCTIONS(X)
#undef X
};

/// Constants of HDF5 that its headers hide behind calls.
inline constexpr hid_t kNoId = -1;      // H5I_INVALID_HID
inline constexpr hid_t kDefault = 0;    // H5P_DEFAULT, H5E_DEFAULT, H5S_ALL
inline constexpr int kNativeValue = 0;  // H5VL_NATIVE_VALUE

}  // namespace tidelane::h5
