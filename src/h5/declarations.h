/// \file
/// HDF5's interface as far as src/ uses it, for machines without HDF5's headers: layouts and values that are the same in
/// 1.14.1 to 2.2. Written by scripts/check/hdf5_declarations.py, which also says when it is out of date; not by hand.
///
/// Invariant: what the same names mean in HDF5 1.14.6's headers. Include h5/hdf5.h, never this. Thread safety:
/// declarations only.
// clang-format off
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

extern "C" {

#define H5ES_WAIT_FOREVER (UINT64_MAX)
#define H5FD_CLASS_VERSION 0x01
#define H5FD_CTL_FAIL_IF_UNKNOWN_FLAG 0x0001
#define H5FD_CTL_GET_MPI_COMMUNICATOR_OPCODE 2
#define H5FD_CTL_GET_MPI_FILE_SYNC_OPCODE 8
#define H5FD_CTL_GET_MPI_INFO_OPCODE 9
#define H5FD_CTL_GET_MPI_RANK_OPCODE 3
#define H5FD_CTL_GET_MPI_SIZE_OPCODE 4
#define H5FD_FEAT_ACCUMULATE_METADATA (H5FD_FEAT_ACCUMULATE_METADATA_WRITE | H5FD_FEAT_ACCUMULATE_METADATA_READ)
#define H5FD_FEAT_ACCUMULATE_METADATA_READ 0x00000004
#define H5FD_FEAT_ACCUMULATE_METADATA_WRITE 0x00000002
#define H5FD_FEAT_AGGREGATE_METADATA 0x00000001
#define H5FD_FEAT_AGGREGATE_SMALLDATA 0x00000010
#define H5FD_FEAT_DATA_SIEVE 0x00000008
#define H5FD_FEAT_DEFAULT_VFD_COMPATIBLE 0x00008000
#define H5FD_FEAT_HAS_MPI 0x00000100
#define H5FD_FEAT_IGNORE_DRVRINFO 0x00000020
#define H5FD_FEAT_POSIX_COMPAT_HANDLE 0x00000080
#define H5FD_FEAT_SUPPORTS_SWMR_IO 0x00001000
#define H5FD_FLMAP_DICHOTOMY { H5FD_MEM_SUPER, H5FD_MEM_SUPER, H5FD_MEM_SUPER, H5FD_MEM_DRAW, H5FD_MEM_DRAW, H5FD_MEM_SUPER, H5FD_MEM_SUPER }
#define H5F_ACC_CREAT (H5CHECK H5OPEN 0x0010u)
#define H5F_ACC_EXCL (H5CHECK H5OPEN 0x0004u)
#define H5F_ACC_RDWR (H5CHECK H5OPEN 0x0001u)
#define H5F_ACC_TRUNC (H5CHECK H5OPEN 0x0002u)
#define H5F_OBJ_ALL (H5F_OBJ_FILE | H5F_OBJ_DATASET | H5F_OBJ_GROUP | H5F_OBJ_DATATYPE | H5F_OBJ_ATTR)
#define H5F_OBJ_ATTR (0x0010u)
#define H5F_OBJ_DATASET (0x0002u)
#define H5F_OBJ_DATATYPE (0x0008u)
#define H5F_OBJ_FILE (0x0001u)
#define H5F_OBJ_GROUP (0x0004u)
#define H5L_LINK_CLASS_T_VERS 1
#define H5O_INFO_BASIC 0x0001u
#define H5O_INFO_NUM_ATTRS 0x0004u
#define H5O_INFO_TIME 0x0002u
#define H5P_FILE_ACCESS (H5OPEN H5P_CLS_FILE_ACCESS_ID_g)
#define H5S_ALL 0
#define H5S_MAX_RANK 32
#define H5S_PLIST 2
#define H5S_UNLIMITED HSIZE_UNDEF
#define H5T_C_S1 (H5OPEN H5T_C_S1_g)
#define H5T_NATIVE_INT (H5OPEN H5T_NATIVE_INT_g)
#define H5T_NATIVE_UINT64 (H5OPEN H5T_NATIVE_UINT64_g)
#define H5VL_CAP_FLAG_ASYNC 0x0000000000000002
#define H5VL_NATIVE_DATASET_CHUNK_ITER 10
#define H5VL_NATIVE_DATASET_CHUNK_READ 6
#define H5VL_NATIVE_DATASET_CHUNK_WRITE 7
#define H5VL_NATIVE_DATASET_GET_CHUNK_INDEX_TYPE 1
#define H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_COORD 5
#define H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_IDX 4
#define H5VL_NATIVE_DATASET_GET_CHUNK_STORAGE_SIZE 2
#define H5VL_NATIVE_DATASET_GET_NUM_CHUNKS 3
#define H5VL_NATIVE_DATASET_GET_OFFSET 9
#define H5VL_NATIVE_FILE_GET_VFD_HANDLE 9
#define H5VL_NATIVE_FILE_START_SWMR_WRITE 13
#define H5VL_OPT_QUERY_NO_ASYNC 0x0040
#define H5VL_OPT_QUERY_SUPPORTED 0x0001
#define H5Z_CLASS_T_VERS (1)
#define H5Z_FILTER_DEFLATE 1
#define H5Z_FILTER_RESERVED 256
#define H5Z_FLAG_OPTIONAL 0x0001
#define H5Z_FLAG_REVERSE 0x0100
#define H5_ITER_CONT (0)
#define H5_ITER_STOP (1)
#define HADDR_UNDEF UINT64_MAX
#define HDF5_PLUGIN_PATH "HDF5_PLUGIN_PATH"
#define HDF5_USE_FILE_LOCKING "HDF5_USE_FILE_LOCKING"
#define HDF5_VOL_CONNECTOR "HDF5_VOL_CONNECTOR"
#define HSIZE_UNDEF UINT64_MAX

typedef int herr_t;
typedef bool hbool_t;
typedef int htri_t;
typedef uint64_t hsize_t;
typedef int64_t hssize_t;
typedef uint64_t haddr_t;
typedef enum { H5_ITER_UNKNOWN = -1, H5_ITER_INC, H5_ITER_DEC, H5_ITER_NATIVE, H5_ITER_N }
  H5_iter_order_t;
typedef enum H5_index_t { H5_INDEX_UNKNOWN = -1, H5_INDEX_NAME, H5_INDEX_CRT_ORDER, H5_INDEX_N }
  H5_index_t;
typedef struct H5_ih_info_t { hsize_t index_size; hsize_t heap_size; } H5_ih_info_t;
typedef struct H5O_token_t { uint8_t __data[16]; } H5O_token_t;
typedef void (*H5_atclose_func_t)(void *);
herr_t H5open();
herr_t H5atclose(H5_atclose_func_t, void *);
herr_t H5get_libversion(unsigned *, unsigned *, unsigned *);
herr_t H5is_library_threadsafe(hbool_t *);
herr_t H5free_memory(void *);
void *H5allocate_memory(size_t, hbool_t);
void *H5resize_memory(void *, size_t);
enum H5C_cache_incr_mode { H5C_incr__off, H5C_incr__threshold };
enum H5C_cache_flash_incr_mode { H5C_flash_incr__off, H5C_flash_incr__add_space };
enum H5C_cache_decr_mode { H5C_decr__off, H5C_decr__threshold, H5C_decr__age_out,
  H5C_decr__age_out_with_threshold };
typedef struct H5AC_cache_config_t { int version; hbool_t rpt_fcn_enabled; hbool_t open_trace_file;
  hbool_t close_trace_file; char trace_file_name[1024 + 1]; hbool_t evictions_enabled; hbool_t
  set_initial_size; size_t initial_size; double min_clean_fraction; size_t max_size; size_t
  min_size; long int epoch_length; enum H5C_cache_incr_mode incr_mode; double lower_hr_threshold;
  double increment; hbool_t apply_max_increment; size_t max_increment; enum
  H5C_cache_flash_incr_mode flash_incr_mode; double flash_multiple; double flash_threshold; enum
  H5C_cache_decr_mode decr_mode; double upper_hr_threshold; double decrement; hbool_t
  apply_max_decrement; size_t max_decrement; int epochs_before_eviction; hbool_t
  apply_empty_reserve; double empty_reserve; size_t dirty_bytes_threshold; int
  metadata_write_strategy; } H5AC_cache_config_t;
typedef enum H5I_type_t { H5I_UNINIT = -2, H5I_BADID = -1, H5I_FILE = 1, H5I_GROUP, H5I_DATATYPE,
  H5I_DATASPACE, H5I_DATASET, H5I_MAP, H5I_ATTR, H5I_VFL, H5I_VOL, H5I_GENPROP_CLS, H5I_GENPROP_LST,
  H5I_ERROR_CLASS, H5I_ERROR_MSG, H5I_ERROR_STACK, H5I_SPACE_SEL_ITER, H5I_EVENTSET, H5I_NTYPES }
  H5I_type_t;
typedef int64_t hid_t;
typedef herr_t (*H5I_iterate_func_t)(hid_t, void *);
H5I_type_t H5Iget_type(hid_t);
ssize_t H5Iget_name(hid_t, char *, size_t);
int H5Iinc_ref(hid_t);
int H5Idec_ref(hid_t);
herr_t H5Iiterate(H5I_type_t, H5I_iterate_func_t, void *);
typedef enum H5F_scope_t { H5F_SCOPE_LOCAL = 0, H5F_SCOPE_GLOBAL = 1 } H5F_scope_t;
typedef enum H5F_close_degree_t { H5F_CLOSE_DEFAULT = 0, H5F_CLOSE_WEAK = 1, H5F_CLOSE_SEMI = 2,
  H5F_CLOSE_STRONG = 3 } H5F_close_degree_t;
typedef struct H5F_info2_t { struct { unsigned version; hsize_t super_size; hsize_t super_ext_size;
  } super; struct { unsigned version; hsize_t meta_size; hsize_t tot_space; } free; struct {
  unsigned version; hsize_t hdr_size; H5_ih_info_t msgs_info; } sohm; } H5F_info2_t;
typedef enum H5F_mem_t { H5FD_MEM_NOLIST = -1, H5FD_MEM_DEFAULT = 0, H5FD_MEM_SUPER = 1,
  H5FD_MEM_BTREE = 2, H5FD_MEM_DRAW = 3, H5FD_MEM_GHEAP = 4, H5FD_MEM_LHEAP = 5, H5FD_MEM_OHDR = 6,
  H5FD_MEM_NTYPES } H5F_mem_t;
typedef struct H5F_sect_info_t { haddr_t addr; hsize_t size; } H5F_sect_info_t;
typedef enum H5F_libver_t { H5F_LIBVER_ERROR = -1, H5F_LIBVER_EARLIEST = 0, H5F_LIBVER_V18 = 1,
  H5F_LIBVER_V110 = 2, H5F_LIBVER_V112 = 3, H5F_LIBVER_V114 = 4, H5F_LIBVER_NBOUNDS } H5F_libver_t;
typedef struct H5F_retry_info_t { unsigned nbins; uint32_t *retries[21]; } H5F_retry_info_t;
htri_t H5Fis_accessible(const char *, hid_t);
hid_t H5Fcreate(const char *, unsigned, hid_t, hid_t);
hid_t H5Fopen(const char *, unsigned, hid_t);
herr_t H5Fflush(hid_t, H5F_scope_t);
herr_t H5Fclose(hid_t);
herr_t H5Fclose_async(const char *, const char *, unsigned, hid_t, hid_t);
ssize_t H5Fget_name(hid_t, char *, size_t);
herr_t H5Fstart_swmr_write(hid_t);
typedef int H5FD_class_value_t;
typedef enum H5F_mem_t H5FD_mem_t;
herr_t H5FDdriver_query(hid_t, unsigned long *);
typedef struct H5FD_t H5FD_t;
typedef struct H5FD_class_t { unsigned version; H5FD_class_value_t value; const char *name; haddr_t
  maxaddr; H5F_close_degree_t fc_degree; herr_t (*terminate)(); hsize_t (*sb_size)(H5FD_t *);
  herr_t (*sb_encode)(H5FD_t *, char *, unsigned char *); herr_t (*sb_decode)(H5FD_t *, const char
  *, const unsigned char *); size_t fapl_size; void *(*fapl_get)(H5FD_t *); void *(*fapl_copy)(const
  void *); herr_t (*fapl_free)(void *); size_t dxpl_size; void *(*dxpl_copy)(const void *); herr_t
  (*dxpl_free)(void *); H5FD_t *(*open)(const char *, unsigned, hid_t, haddr_t); herr_t
  (*close)(H5FD_t *); int (*cmp)(const H5FD_t *, const H5FD_t *); herr_t (*query)(const H5FD_t *,
  unsigned long *); herr_t (*get_type_map)(const H5FD_t *, H5FD_mem_t *); haddr_t (*alloc)(H5FD_t *,
  H5FD_mem_t, hid_t, hsize_t); herr_t (*free)(H5FD_t *, H5FD_mem_t, hid_t, haddr_t, hsize_t);
  haddr_t (*get_eoa)(const H5FD_t *, H5FD_mem_t); herr_t (*set_eoa)(H5FD_t *, H5FD_mem_t, haddr_t);
  haddr_t (*get_eof)(const H5FD_t *, H5FD_mem_t); herr_t (*get_handle)(H5FD_t *, hid_t, void **);
  herr_t (*read)(H5FD_t *, H5FD_mem_t, hid_t, haddr_t, size_t, void *); herr_t (*write)(H5FD_t *,
  H5FD_mem_t, hid_t, haddr_t, size_t, const void *); herr_t (*read_vector)(H5FD_t *, hid_t,
  uint32_t, H5FD_mem_t [], haddr_t [], size_t [], void *[]); herr_t (*write_vector)(H5FD_t *, hid_t,
  uint32_t, H5FD_mem_t [], haddr_t [], size_t [], const void *[]); herr_t (*read_selection)(H5FD_t
  *, H5FD_mem_t, hid_t, size_t, hid_t [], hid_t [], haddr_t [], size_t [], void *[]); herr_t
  (*write_selection)(H5FD_t *, H5FD_mem_t, hid_t, size_t, hid_t [], hid_t [], haddr_t [], size_t [],
  const void *[]); herr_t (*flush)(H5FD_t *, hid_t, hbool_t); herr_t (*truncate)(H5FD_t *, hid_t,
  hbool_t); herr_t (*lock)(H5FD_t *, hbool_t); herr_t (*unlock)(H5FD_t *); herr_t (*del)(const char
  *, hid_t); herr_t (*ctl)(H5FD_t *, uint64_t, uint64_t, const void *, void **); H5FD_mem_t
  fl_map[H5FD_MEM_NTYPES]; } H5FD_class_t;
struct H5FD_t { hid_t driver_id; const H5FD_class_t *cls; unsigned long fileno; unsigned
  access_flags; unsigned long feature_flags; haddr_t maxaddr; haddr_t base_addr; hsize_t threshold;
  hsize_t alignment; hbool_t paged_aggr; };
hid_t H5FDregister(const H5FD_class_t *);
H5FD_t *H5FDopen(const char *, unsigned, hid_t, haddr_t);
herr_t H5FDclose(H5FD_t *);
typedef enum H5O_type_t { H5O_TYPE_UNKNOWN = -1, H5O_TYPE_GROUP, H5O_TYPE_DATASET,
  H5O_TYPE_NAMED_DATATYPE, H5O_TYPE_MAP, H5O_TYPE_NTYPES } H5O_type_t;
typedef struct H5O_info2_t { unsigned long fileno; H5O_token_t token; H5O_type_t type; unsigned rc;
  time_t atime; time_t mtime; time_t ctime; time_t btime; hsize_t num_attrs; } H5O_info2_t;
typedef uint32_t H5O_msg_crt_idx_t;
typedef herr_t (*H5O_iterate2_t)(hid_t, const char *, const H5O_info2_t *, void *);
hid_t H5Oopen(hid_t, const char *, hid_t);
hid_t H5Oopen_by_token(hid_t, H5O_token_t);
herr_t H5Oget_info3(hid_t, H5O_info2_t *, unsigned);
typedef enum H5T_class_t { H5T_NO_CLASS = -1, H5T_INTEGER = 0, H5T_FLOAT = 1, H5T_TIME = 2,
  H5T_STRING = 3, H5T_BITFIELD = 4, H5T_OPAQUE = 5, H5T_COMPOUND = 6, H5T_REFERENCE = 7, H5T_ENUM =
  8, H5T_VLEN = 9, H5T_ARRAY = 10, H5T_NCLASSES } H5T_class_t;
typedef enum H5T_order_t { H5T_ORDER_ERROR = -1, H5T_ORDER_LE = 0, H5T_ORDER_BE = 1, H5T_ORDER_VAX =
  2, H5T_ORDER_MIXED = 3, H5T_ORDER_NONE = 4 } H5T_order_t;
typedef enum H5T_sign_t { H5T_SGN_ERROR = -1, H5T_SGN_NONE = 0, H5T_SGN_2 = 1, H5T_NSGN = 2 }
  H5T_sign_t;
typedef enum H5T_norm_t { H5T_NORM_ERROR = -1, H5T_NORM_IMPLIED = 0, H5T_NORM_MSBSET = 1,
  H5T_NORM_NONE = 2 } H5T_norm_t;
typedef enum H5T_cset_t { H5T_CSET_ERROR = -1, H5T_CSET_ASCII = 0, H5T_CSET_UTF8 = 1,
  H5T_CSET_RESERVED_2 = 2, H5T_CSET_RESERVED_3 = 3, H5T_CSET_RESERVED_4 = 4, H5T_CSET_RESERVED_5 =
  5, H5T_CSET_RESERVED_6 = 6, H5T_CSET_RESERVED_7 = 7, H5T_CSET_RESERVED_8 = 8, H5T_CSET_RESERVED_9
  = 9, H5T_CSET_RESERVED_10 = 10, H5T_CSET_RESERVED_11 = 11, H5T_CSET_RESERVED_12 = 12,
  H5T_CSET_RESERVED_13 = 13, H5T_CSET_RESERVED_14 = 14, H5T_CSET_RESERVED_15 = 15 } H5T_cset_t;
typedef enum H5T_str_t { H5T_STR_ERROR = -1, H5T_STR_NULLTERM = 0, H5T_STR_NULLPAD = 1,
  H5T_STR_SPACEPAD = 2, H5T_STR_RESERVED_3 = 3, H5T_STR_RESERVED_4 = 4, H5T_STR_RESERVED_5 = 5,
  H5T_STR_RESERVED_6 = 6, H5T_STR_RESERVED_7 = 7, H5T_STR_RESERVED_8 = 8, H5T_STR_RESERVED_9 = 9,
  H5T_STR_RESERVED_10 = 10, H5T_STR_RESERVED_11 = 11, H5T_STR_RESERVED_12 = 12, H5T_STR_RESERVED_13
  = 13, H5T_STR_RESERVED_14 = 14, H5T_STR_RESERVED_15 = 15 } H5T_str_t;
typedef enum H5T_direction_t { H5T_DIR_DEFAULT = 0, H5T_DIR_ASCEND = 1, H5T_DIR_DESCEND = 2 }
  H5T_direction_t;
extern hid_t H5T_C_S1_g;
extern hid_t H5T_NATIVE_INT_g;
extern hid_t H5T_NATIVE_INT32_g;
extern hid_t H5T_NATIVE_UINT64_g;
hid_t H5Tcreate(H5T_class_t, size_t);
hid_t H5Tcopy(hid_t);
htri_t H5Tequal(hid_t, hid_t);
htri_t H5Tcommitted(hid_t);
herr_t H5Tinsert(hid_t, const char *, size_t, hid_t);
hid_t H5Tget_super(hid_t);
H5T_class_t H5Tget_class(hid_t);
htri_t H5Tdetect_class(hid_t, H5T_class_t);
size_t H5Tget_size(hid_t);
H5T_order_t H5Tget_order(hid_t);
size_t H5Tget_precision(hid_t);
int H5Tget_offset(hid_t);
H5T_sign_t H5Tget_sign(hid_t);
herr_t H5Tget_fields(hid_t, size_t *, size_t *, size_t *, size_t *, size_t *);
size_t H5Tget_ebias(hid_t);
H5T_norm_t H5Tget_norm(hid_t);
H5T_str_t H5Tget_strpad(hid_t);
int H5Tget_nmembers(hid_t);
char *H5Tget_member_name(hid_t, unsigned);
int H5Tget_member_index(hid_t, const char *);
size_t H5Tget_member_offset(hid_t, unsigned);
hid_t H5Tget_member_type(hid_t, unsigned);
htri_t H5Tis_variable_str(hid_t);
hid_t H5Tget_native_type(hid_t, H5T_direction_t);
herr_t H5Tset_size(hid_t, size_t);
herr_t H5Tset_order(hid_t, H5T_order_t);
herr_t H5Tset_cset(hid_t, H5T_cset_t);
herr_t H5Tconvert(hid_t, hid_t, size_t, void *, void *, hid_t);
herr_t H5Treclaim(hid_t, hid_t, hid_t, void *);
typedef struct { hbool_t corder_valid; H5O_msg_crt_idx_t corder; H5T_cset_t cset; hsize_t data_size;
  } H5A_info_t;
typedef herr_t (*H5A_operator2_t)(hid_t, const char *, const H5A_info_t *, void *);
hid_t H5Acreate2(hid_t, const char *, hid_t, hid_t, hid_t, hid_t);
hid_t H5Aget_space(hid_t);
hid_t H5Aget_type(hid_t);
herr_t H5Aiterate2(hid_t, H5_index_t, H5_iter_order_t, hsize_t *, H5A_operator2_t, void *);
hid_t H5Aopen(hid_t, const char *, hid_t);
herr_t H5Aread(hid_t, hid_t, void *);
herr_t H5Awrite(hid_t, hid_t, const void *);
typedef enum H5D_layout_t { H5D_LAYOUT_ERROR = -1, H5D_COMPACT = 0, H5D_CONTIGUOUS = 1, H5D_CHUNKED
  = 2, H5D_VIRTUAL = 3, H5D_NLAYOUTS = 4 } H5D_layout_t;
typedef enum H5D_chunk_index_t { H5D_CHUNK_IDX_BTREE = 0, H5D_CHUNK_IDX_SINGLE = 1,
  H5D_CHUNK_IDX_NONE = 2, H5D_CHUNK_IDX_FARRAY = 3, H5D_CHUNK_IDX_EARRAY = 4, H5D_CHUNK_IDX_BT2 = 5,
  H5D_CHUNK_IDX_NTYPES } H5D_chunk_index_t;
typedef enum H5D_alloc_time_t { H5D_ALLOC_TIME_ERROR = -1, H5D_ALLOC_TIME_DEFAULT = 0,
  H5D_ALLOC_TIME_EARLY = 1, H5D_ALLOC_TIME_LATE = 2, H5D_ALLOC_TIME_INCR = 3 } H5D_alloc_time_t;
typedef enum H5D_space_status_t { H5D_SPACE_STATUS_ERROR = -1, H5D_SPACE_STATUS_NOT_ALLOCATED = 0,
  H5D_SPACE_STATUS_PART_ALLOCATED = 1, H5D_SPACE_STATUS_ALLOCATED = 2 } H5D_space_status_t;
typedef enum H5D_fill_time_t { H5D_FILL_TIME_ERROR = -1, H5D_FILL_TIME_ALLOC = 0,
  H5D_FILL_TIME_NEVER = 1, H5D_FILL_TIME_IFSET = 2 } H5D_fill_time_t;
typedef enum H5D_fill_value_t { H5D_FILL_VALUE_ERROR = -1, H5D_FILL_VALUE_UNDEFINED = 0,
  H5D_FILL_VALUE_DEFAULT = 1, H5D_FILL_VALUE_USER_DEFINED = 2 } H5D_fill_value_t;
typedef int (*H5D_chunk_iter_op_t)(const hsize_t *, unsigned, haddr_t, hsize_t, void *);
hid_t H5Dcreate2(hid_t, const char *, hid_t, hid_t, hid_t, hid_t, hid_t);
hid_t H5Dopen2(hid_t, const char *, hid_t);
hid_t H5Dget_space(hid_t);
hid_t H5Dget_type(hid_t);
hid_t H5Dget_create_plist(hid_t);
herr_t H5Dread(hid_t, hid_t, hid_t, hid_t, hid_t, void *);
herr_t H5Dwrite(hid_t, hid_t, hid_t, hid_t, hid_t, const void *);
herr_t H5Dwrite_async(const char *, const char *, unsigned, hid_t, hid_t, hid_t, hid_t, hid_t, const
  void *, hid_t);
herr_t H5Dset_extent(hid_t, const hsize_t []);
herr_t H5Dflush(hid_t);
herr_t H5Dclose(hid_t);
typedef enum H5E_type_t { H5E_MAJOR, H5E_MINOR } H5E_type_t;
typedef struct H5E_error2_t { hid_t cls_id; hid_t maj_num; hid_t min_num; unsigned line; const char
  *func_name; const char *file_name; const char *desc; } H5E_error2_t;
typedef enum H5E_direction_t { H5E_WALK_UPWARD = 0, H5E_WALK_DOWNWARD = 1 } H5E_direction_t;
typedef herr_t (*H5E_walk2_t)(unsigned, const H5E_error2_t *, void *);
typedef herr_t (*H5E_auto2_t)(hid_t, void *);
hid_t H5Eregister_class(const char *, const char *, const char *);
hid_t H5Ecreate_msg(hid_t, H5E_type_t, const char *);
hid_t H5Ecreate_stack();
hid_t H5Eget_current_stack();
ssize_t H5Eget_class_name(hid_t, char *, size_t);
herr_t H5Eset_current_stack(hid_t);
herr_t H5Epush2(hid_t, const char *, const char *, unsigned, hid_t, hid_t, hid_t, const char *,
  ...);
herr_t H5Ewalk2(hid_t, H5E_direction_t, H5E_walk2_t, void *);
herr_t H5Eget_auto2(hid_t, H5E_auto2_t *, void **);
herr_t H5Eset_auto2(hid_t, H5E_auto2_t, void *);
herr_t H5Eclear2(hid_t);
ssize_t H5Eget_msg(hid_t, H5E_type_t *, char *, size_t);
ssize_t H5Eget_num(hid_t);
herr_t H5ESwait(hid_t, uint64_t, size_t *, hbool_t *);
typedef enum { H5L_TYPE_ERROR = -1, H5L_TYPE_HARD = 0, H5L_TYPE_SOFT = 1, H5L_TYPE_EXTERNAL = 64,
  H5L_TYPE_MAX = 255 } H5L_type_t;
typedef struct { H5L_type_t type; hbool_t corder_valid; int64_t corder; H5T_cset_t cset; union {
  H5O_token_t token; size_t val_size; } u; } H5L_info2_t;
typedef herr_t (*H5L_iterate2_t)(hid_t, const char *, const H5L_info2_t *, void *);
typedef herr_t (*H5L_elink_traverse_t)(const char *, const char *, const char *, const char *,
  unsigned *, hid_t, void *);
htri_t H5Lexists(hid_t, const char *, hid_t);
herr_t H5Literate2(hid_t, H5_index_t, H5_iter_order_t, hsize_t *, H5L_iterate2_t, void *);
herr_t H5Lvisit2(hid_t, H5_index_t, H5_iter_order_t, H5L_iterate2_t, void *);
typedef enum H5G_storage_type_t { H5G_STORAGE_TYPE_UNKNOWN = -1, H5G_STORAGE_TYPE_SYMBOL_TABLE,
  H5G_STORAGE_TYPE_COMPACT, H5G_STORAGE_TYPE_DENSE } H5G_storage_type_t;
typedef struct H5G_info_t { H5G_storage_type_t storage_type; hsize_t nlinks; int64_t max_corder;
  hbool_t mounted; } H5G_info_t;
typedef int H5VL_class_value_t;
typedef enum H5VL_subclass_t { H5VL_SUBCLS_NONE, H5VL_SUBCLS_INFO, H5VL_SUBCLS_WRAP,
  H5VL_SUBCLS_ATTR, H5VL_SUBCLS_DATASET, H5VL_SUBCLS_DATATYPE, H5VL_SUBCLS_FILE, H5VL_SUBCLS_GROUP,
  H5VL_SUBCLS_LINK, H5VL_SUBCLS_OBJECT, H5VL_SUBCLS_REQUEST, H5VL_SUBCLS_BLOB, H5VL_SUBCLS_TOKEN }
  H5VL_subclass_t;
hid_t H5VLregister_connector_by_name(const char *, hid_t);
hid_t H5VLget_connector_id(hid_t);
hid_t H5VLget_connector_id_by_value(H5VL_class_value_t);
herr_t H5VLobject_is_native(hid_t, hbool_t *);
typedef haddr_t hobj_ref_t;
typedef enum H5VL_loc_type_t { H5VL_OBJECT_BY_SELF, H5VL_OBJECT_BY_NAME, H5VL_OBJECT_BY_IDX,
  H5VL_OBJECT_BY_TOKEN } H5VL_loc_type_t;
typedef struct H5VL_loc_by_name { const char *name; hid_t lapl_id; } H5VL_loc_by_name_t;
typedef struct H5VL_loc_by_idx { const char *name; H5_index_t idx_type; H5_iter_order_t order;
  hsize_t n; hid_t lapl_id; } H5VL_loc_by_idx_t;
typedef struct H5VL_loc_by_token { H5O_token_t *token; } H5VL_loc_by_token_t;
typedef struct H5VL_loc_params_t { H5I_type_t obj_type; H5VL_loc_type_t type; union {
  H5VL_loc_by_token_t loc_by_token; H5VL_loc_by_name_t loc_by_name; H5VL_loc_by_idx_t loc_by_idx; }
  loc_data; } H5VL_loc_params_t;
typedef struct H5VL_optional_args_t { int op_type; void *args; } H5VL_optional_args_t;
typedef enum H5VL_attr_get_t { H5VL_ATTR_GET_ACPL, H5VL_ATTR_GET_INFO, H5VL_ATTR_GET_NAME,
  H5VL_ATTR_GET_SPACE, H5VL_ATTR_GET_STORAGE_SIZE, H5VL_ATTR_GET_TYPE } H5VL_attr_get_t;
typedef struct H5VL_attr_get_name_args_t { H5VL_loc_params_t loc_params; size_t buf_size; char *buf;
  size_t *attr_name_len; } H5VL_attr_get_name_args_t;
typedef struct H5VL_attr_get_info_args_t { H5VL_loc_params_t loc_params; const char *attr_name;
  H5A_info_t *ainfo; } H5VL_attr_get_info_args_t;
typedef struct H5VL_attr_get_args_t { H5VL_attr_get_t op_type; union { struct { hid_t acpl_id; }
  get_acpl; H5VL_attr_get_info_args_t get_info; H5VL_attr_get_name_args_t get_name; struct { hid_t
  space_id; } get_space; struct { hsize_t *data_size; } get_storage_size; struct { hid_t type_id; }
  get_type; } args; } H5VL_attr_get_args_t;
typedef enum H5VL_attr_specific_t { H5VL_ATTR_DELETE, H5VL_ATTR_DELETE_BY_IDX, H5VL_ATTR_EXISTS,
  H5VL_ATTR_ITER, H5VL_ATTR_RENAME } H5VL_attr_specific_t;
typedef struct H5VL_attr_iterate_args_t { H5_index_t idx_type; H5_iter_order_t order; hsize_t *idx;
  H5A_operator2_t op; void *op_data; } H5VL_attr_iterate_args_t;
typedef struct H5VL_attr_delete_by_idx_args_t { H5_index_t idx_type; H5_iter_order_t order; hsize_t
  n; } H5VL_attr_delete_by_idx_args_t;
typedef struct H5VL_attr_specific_args_t { H5VL_attr_specific_t op_type; union { struct { const char
  *name; } del; H5VL_attr_delete_by_idx_args_t delete_by_idx; struct { const char *name; hbool_t
  *exists; } exists; H5VL_attr_iterate_args_t iterate; struct { const char *old_name; const char
  *new_name; } rename; } args; } H5VL_attr_specific_args_t;
typedef enum H5VL_dataset_get_t { H5VL_DATASET_GET_DAPL, H5VL_DATASET_GET_DCPL,
  H5VL_DATASET_GET_SPACE, H5VL_DATASET_GET_SPACE_STATUS, H5VL_DATASET_GET_STORAGE_SIZE,
  H5VL_DATASET_GET_TYPE } H5VL_dataset_get_t;
typedef struct H5VL_dataset_get_args_t { H5VL_dataset_get_t op_type; union { struct { hid_t dapl_id;
  } get_dapl; struct { hid_t dcpl_id; } get_dcpl; struct { hid_t space_id; } get_space; struct {
  H5D_space_status_t *status; } get_space_status; struct { hsize_t *storage_size; }
  get_storage_size; struct { hid_t type_id; } get_type; } args; } H5VL_dataset_get_args_t;
typedef enum H5VL_dataset_specific_t { H5VL_DATASET_SET_EXTENT, H5VL_DATASET_FLUSH,
  H5VL_DATASET_REFRESH } H5VL_dataset_specific_t;
typedef struct H5VL_dataset_specific_args_t { H5VL_dataset_specific_t op_type; union { struct {
  const hsize_t *size; } set_extent; struct { hid_t dset_id; } flush; struct { hid_t dset_id; }
  refresh; } args; } H5VL_dataset_specific_args_t;
typedef enum H5VL_datatype_get_t { H5VL_DATATYPE_GET_BINARY_SIZE, H5VL_DATATYPE_GET_BINARY,
  H5VL_DATATYPE_GET_TCPL } H5VL_datatype_get_t;
typedef struct H5VL_datatype_get_args_t { H5VL_datatype_get_t op_type; union { struct { size_t
  *size; } get_binary_size; struct { void *buf; size_t buf_size; } get_binary; struct { hid_t
  tcpl_id; } get_tcpl; } args; } H5VL_datatype_get_args_t;
typedef enum H5VL_datatype_specific_t { H5VL_DATATYPE_FLUSH, H5VL_DATATYPE_REFRESH }
  H5VL_datatype_specific_t;
typedef struct H5VL_datatype_specific_args_t { H5VL_datatype_specific_t op_type; union { struct {
  hid_t type_id; } flush; struct { hid_t type_id; } refresh; } args; }
  H5VL_datatype_specific_args_t;
typedef struct H5VL_file_cont_info_t { unsigned version; uint64_t feature_flags; size_t token_size;
  size_t blob_id_size; } H5VL_file_cont_info_t;
typedef enum H5VL_file_get_t { H5VL_FILE_GET_CONT_INFO, H5VL_FILE_GET_FAPL, H5VL_FILE_GET_FCPL,
  H5VL_FILE_GET_FILENO, H5VL_FILE_GET_INTENT, H5VL_FILE_GET_NAME, H5VL_FILE_GET_OBJ_COUNT,
  H5VL_FILE_GET_OBJ_IDS } H5VL_file_get_t;
typedef struct H5VL_file_get_name_args_t { H5I_type_t type; size_t buf_size; char *buf; size_t
  *file_name_len; } H5VL_file_get_name_args_t;
typedef struct H5VL_file_get_obj_ids_args_t { unsigned types; size_t max_objs; hid_t *oid_list;
  size_t *count; } H5VL_file_get_obj_ids_args_t;
typedef struct H5VL_file_get_args_t { H5VL_file_get_t op_type; union { struct {
  H5VL_file_cont_info_t *info; } get_cont_info; struct { hid_t fapl_id; } get_fapl; struct { hid_t
  fcpl_id; } get_fcpl; struct { unsigned long *fileno; } get_fileno; struct { unsigned *flags; }
  get_intent; H5VL_file_get_name_args_t get_name; struct { unsigned types; size_t *count; }
  get_obj_count; H5VL_file_get_obj_ids_args_t get_obj_ids; } args; } H5VL_file_get_args_t;
typedef enum H5VL_file_specific_t { H5VL_FILE_FLUSH, H5VL_FILE_REOPEN, H5VL_FILE_IS_ACCESSIBLE,
  H5VL_FILE_DELETE, H5VL_FILE_IS_EQUAL } H5VL_file_specific_t;
typedef struct H5VL_file_specific_args_t { H5VL_file_specific_t op_type; union { struct { H5I_type_t
  obj_type; H5F_scope_t scope; } flush; struct { void **file; } reopen; struct { const char
  *filename; hid_t fapl_id; hbool_t *accessible; } is_accessible; struct { const char *filename;
  hid_t fapl_id; } del; struct { void *obj2; hbool_t *same_file; } is_equal; } args; }
  H5VL_file_specific_args_t;
typedef enum H5VL_group_get_t { H5VL_GROUP_GET_GCPL, H5VL_GROUP_GET_INFO } H5VL_group_get_t;
typedef struct H5VL_group_get_info_args_t { H5VL_loc_params_t loc_params; H5G_info_t *ginfo; }
  H5VL_group_get_info_args_t;
typedef struct H5VL_group_get_args_t { H5VL_group_get_t op_type; union { struct { hid_t gcpl_id; }
  get_gcpl; H5VL_group_get_info_args_t get_info; } args; } H5VL_group_get_args_t;
typedef enum H5VL_group_specific_t { H5VL_GROUP_MOUNT, H5VL_GROUP_UNMOUNT, H5VL_GROUP_FLUSH,
  H5VL_GROUP_REFRESH } H5VL_group_specific_t;
typedef struct H5VL_group_spec_mount_args_t { const char *name; void *child_file; hid_t fmpl_id; }
  H5VL_group_spec_mount_args_t;
typedef struct H5VL_group_specific_args_t { H5VL_group_specific_t op_type; union {
  H5VL_group_spec_mount_args_t mount; struct { const char *name; } unmount; struct { hid_t grp_id; }
  flush; struct { hid_t grp_id; } refresh; } args; } H5VL_group_specific_args_t;
typedef enum H5VL_link_create_t { H5VL_LINK_CREATE_HARD, H5VL_LINK_CREATE_SOFT, H5VL_LINK_CREATE_UD
  } H5VL_link_create_t;
typedef struct H5VL_link_create_args_t { H5VL_link_create_t op_type; union { struct { void
  *curr_obj; H5VL_loc_params_t curr_loc_params; } hard; struct { const char *target; } soft; struct
  { H5L_type_t type; const void *buf; size_t buf_size; } ud; } args; } H5VL_link_create_args_t;
typedef enum H5VL_link_get_t { H5VL_LINK_GET_INFO, H5VL_LINK_GET_NAME, H5VL_LINK_GET_VAL }
  H5VL_link_get_t;
typedef struct H5VL_link_get_args_t { H5VL_link_get_t op_type; union { struct { H5L_info2_t *linfo;
  } get_info; struct { size_t name_size; char *name; size_t *name_len; } get_name; struct { size_t
  buf_size; void *buf; } get_val; } args; } H5VL_link_get_args_t;
typedef enum H5VL_link_specific_t { H5VL_LINK_DELETE, H5VL_LINK_EXISTS, H5VL_LINK_ITER }
  H5VL_link_specific_t;
typedef struct H5VL_link_iterate_args_t { hbool_t recursive; H5_index_t idx_type; H5_iter_order_t
  order; hsize_t *idx_p; H5L_iterate2_t op; void *op_data; } H5VL_link_iterate_args_t;
typedef struct H5VL_link_specific_args_t { H5VL_link_specific_t op_type; union { struct { hbool_t
  *exists; } exists; H5VL_link_iterate_args_t iterate; } args; } H5VL_link_specific_args_t;
typedef enum H5VL_object_get_t { H5VL_OBJECT_GET_FILE, H5VL_OBJECT_GET_NAME, H5VL_OBJECT_GET_TYPE,
  H5VL_OBJECT_GET_INFO } H5VL_object_get_t;
typedef struct H5VL_object_get_args_t { H5VL_object_get_t op_type; union { struct { void **file; }
  get_file; struct { size_t buf_size; char *buf; size_t *name_len; } get_name; struct { H5O_type_t
  *obj_type; } get_type; struct { unsigned fields; H5O_info2_t *oinfo; } get_info; } args; }
  H5VL_object_get_args_t;
typedef enum H5VL_object_specific_t { H5VL_OBJECT_CHANGE_REF_COUNT, H5VL_OBJECT_EXISTS,
  H5VL_OBJECT_LOOKUP, H5VL_OBJECT_VISIT, H5VL_OBJECT_FLUSH, H5VL_OBJECT_REFRESH }
  H5VL_object_specific_t;
typedef struct H5VL_object_visit_args_t { H5_index_t idx_type; H5_iter_order_t order; unsigned
  fields; H5O_iterate2_t op; void *op_data; } H5VL_object_visit_args_t;
typedef struct H5VL_object_specific_args_t { H5VL_object_specific_t op_type; union { struct { int
  delta; } change_rc; struct { hbool_t *exists; } exists; struct { H5O_token_t *token_ptr; } lookup;
  H5VL_object_visit_args_t visit; struct { hid_t obj_id; } flush; struct { hid_t obj_id; } refresh;
  } args; } H5VL_object_specific_args_t;
typedef enum H5VL_request_status_t { H5VL_REQUEST_STATUS_IN_PROGRESS, H5VL_REQUEST_STATUS_SUCCEED,
  H5VL_REQUEST_STATUS_FAIL, H5VL_REQUEST_STATUS_CANT_CANCEL, H5VL_REQUEST_STATUS_CANCELED }
  H5VL_request_status_t;
typedef enum H5VL_request_specific_t { H5VL_REQUEST_GET_ERR_STACK, H5VL_REQUEST_GET_EXEC_TIME }
  H5VL_request_specific_t;
typedef struct H5VL_request_specific_args_t { H5VL_request_specific_t op_type; union { struct {
  hid_t err_stack_id; } get_err_stack; struct { uint64_t *exec_ts; uint64_t *exec_time; }
  get_exec_time; } args; } H5VL_request_specific_args_t;
typedef enum H5VL_blob_specific_t { H5VL_BLOB_DELETE, H5VL_BLOB_ISNULL, H5VL_BLOB_SETNULL }
  H5VL_blob_specific_t;
typedef struct H5VL_blob_specific_args_t { H5VL_blob_specific_t op_type; union { struct { hbool_t
  *isnull; } is_null; } args; } H5VL_blob_specific_args_t;
typedef struct H5VL_info_class_t { size_t size; void *(*copy)(const void *); herr_t (*cmp)(int *,
  const void *, const void *); herr_t (*free)(void *); herr_t (*to_str)(const void *, char **);
  herr_t (*from_str)(const char *, void **); } H5VL_info_class_t;
typedef struct H5VL_wrap_class_t { void *(*get_object)(const void *); herr_t (*get_wrap_ctx)(const
  void *, void **); void *(*wrap_object)(void *, H5I_type_t, void *); void *(*unwrap_object)(void
  *); herr_t (*free_wrap_ctx)(void *); } H5VL_wrap_class_t;
typedef struct H5VL_attr_class_t { void *(*create)(void *, const H5VL_loc_params_t *, const char *,
  hid_t, hid_t, hid_t, hid_t, hid_t, void **); void *(*open)(void *, const H5VL_loc_params_t *,
  const char *, hid_t, hid_t, void **); herr_t (*read)(void *, hid_t, void *, hid_t, void **);
  herr_t (*write)(void *, hid_t, const void *, hid_t, void **); herr_t (*get)(void *,
  H5VL_attr_get_args_t *, hid_t, void **); herr_t (*specific)(void *, const H5VL_loc_params_t *,
  H5VL_attr_specific_args_t *, hid_t, void **); herr_t (*optional)(void *, H5VL_optional_args_t *,
  hid_t, void **); herr_t (*close)(void *, hid_t, void **); } H5VL_attr_class_t;
typedef struct H5VL_dataset_class_t { void *(*create)(void *, const H5VL_loc_params_t *, const char
  *, hid_t, hid_t, hid_t, hid_t, hid_t, hid_t, void **); void *(*open)(void *, const
  H5VL_loc_params_t *, const char *, hid_t, hid_t, void **); herr_t (*read)(size_t, void *[], hid_t
  [], hid_t [], hid_t [], hid_t, void *[], void **); herr_t (*write)(size_t, void *[], hid_t [],
  hid_t [], hid_t [], hid_t, const void *[], void **); herr_t (*get)(void *, H5VL_dataset_get_args_t
  *, hid_t, void **); herr_t (*specific)(void *, H5VL_dataset_specific_args_t *, hid_t, void **);
  herr_t (*optional)(void *, H5VL_optional_args_t *, hid_t, void **); herr_t (*close)(void *, hid_t,
  void **); } H5VL_dataset_class_t;
typedef struct H5VL_datatype_class_t { void *(*commit)(void *, const H5VL_loc_params_t *, const char
  *, hid_t, hid_t, hid_t, hid_t, hid_t, void **); void *(*open)(void *, const H5VL_loc_params_t *,
  const char *, hid_t, hid_t, void **); herr_t (*get)(void *, H5VL_datatype_get_args_t *, hid_t,
  void **); herr_t (*specific)(void *, H5VL_datatype_specific_args_t *, hid_t, void **); herr_t
  (*optional)(void *, H5VL_optional_args_t *, hid_t, void **); herr_t (*close)(void *, hid_t, void
  **); } H5VL_datatype_class_t;
typedef struct H5VL_file_class_t { void *(*create)(const char *, unsigned, hid_t, hid_t, hid_t, void
  **); void *(*open)(const char *, unsigned, hid_t, hid_t, void **); herr_t (*get)(void *,
  H5VL_file_get_args_t *, hid_t, void **); herr_t (*specific)(void *, H5VL_file_specific_args_t *,
  hid_t, void **); herr_t (*optional)(void *, H5VL_optional_args_t *, hid_t, void **); herr_t
  (*close)(void *, hid_t, void **); } H5VL_file_class_t;
typedef struct H5VL_group_class_t { void *(*create)(void *, const H5VL_loc_params_t *, const char *,
  hid_t, hid_t, hid_t, hid_t, void **); void *(*open)(void *, const H5VL_loc_params_t *, const char
  *, hid_t, hid_t, void **); herr_t (*get)(void *, H5VL_group_get_args_t *, hid_t, void **); herr_t
  (*specific)(void *, H5VL_group_specific_args_t *, hid_t, void **); herr_t (*optional)(void *,
  H5VL_optional_args_t *, hid_t, void **); herr_t (*close)(void *, hid_t, void **); }
  H5VL_group_class_t;
typedef struct H5VL_link_class_t { herr_t (*create)(H5VL_link_create_args_t *, void *, const
  H5VL_loc_params_t *, hid_t, hid_t, hid_t, void **); herr_t (*copy)(void *, const H5VL_loc_params_t
  *, void *, const H5VL_loc_params_t *, hid_t, hid_t, hid_t, void **); herr_t (*move)(void *, const
  H5VL_loc_params_t *, void *, const H5VL_loc_params_t *, hid_t, hid_t, hid_t, void **); herr_t
  (*get)(void *, const H5VL_loc_params_t *, H5VL_link_get_args_t *, hid_t, void **); herr_t
  (*specific)(void *, const H5VL_loc_params_t *, H5VL_link_specific_args_t *, hid_t, void **);
  herr_t (*optional)(void *, const H5VL_loc_params_t *, H5VL_optional_args_t *, hid_t, void **); }
  H5VL_link_class_t;
typedef struct H5VL_object_class_t { void *(*open)(void *, const H5VL_loc_params_t *, H5I_type_t *,
  hid_t, void **); herr_t (*copy)(void *, const H5VL_loc_params_t *, const char *, void *, const
  H5VL_loc_params_t *, const char *, hid_t, hid_t, hid_t, void **); herr_t (*get)(void *, const
  H5VL_loc_params_t *, H5VL_object_get_args_t *, hid_t, void **); herr_t (*specific)(void *, const
  H5VL_loc_params_t *, H5VL_object_specific_args_t *, hid_t, void **); herr_t (*optional)(void *,
  const H5VL_loc_params_t *, H5VL_optional_args_t *, hid_t, void **); } H5VL_object_class_t;
typedef herr_t (*H5VL_request_notify_t)(void *, H5VL_request_status_t);
typedef enum H5VL_get_conn_lvl_t { H5VL_GET_CONN_LVL_CURR, H5VL_GET_CONN_LVL_TERM }
  H5VL_get_conn_lvl_t;
struct H5VL_class_t;
typedef struct H5VL_introspect_class_t { herr_t (*get_conn_cls)(void *, H5VL_get_conn_lvl_t, const
  struct H5VL_class_t **); herr_t (*get_cap_flags)(const void *, uint64_t *); herr_t
  (*opt_query)(void *, H5VL_subclass_t, int, uint64_t *); } H5VL_introspect_class_t;
typedef struct H5VL_request_class_t { herr_t (*wait)(void *, uint64_t, H5VL_request_status_t *);
  herr_t (*notify)(void *, H5VL_request_notify_t, void *); herr_t (*cancel)(void *,
  H5VL_request_status_t *); herr_t (*specific)(void *, H5VL_request_specific_args_t *); herr_t
  (*optional)(void *, H5VL_optional_args_t *); herr_t (*free)(void *); } H5VL_request_class_t;
typedef struct H5VL_blob_class_t { herr_t (*put)(void *, const void *, size_t, void *, void *);
  herr_t (*get)(void *, const void *, void *, size_t, void *); herr_t (*specific)(void *, void *,
  H5VL_blob_specific_args_t *); herr_t (*optional)(void *, void *, H5VL_optional_args_t *); }
  H5VL_blob_class_t;
typedef struct H5VL_token_class_t { herr_t (*cmp)(void *, const H5O_token_t *, const H5O_token_t *,
  int *); herr_t (*to_str)(void *, H5I_type_t, const H5O_token_t *, char **); herr_t
  (*from_str)(void *, H5I_type_t, const char *, H5O_token_t *); } H5VL_token_class_t;
typedef struct H5VL_class_t { unsigned version; H5VL_class_value_t value; const char *name; unsigned
  conn_version; uint64_t cap_flags; herr_t (*initialize)(hid_t); herr_t (*terminate)();
  H5VL_info_class_t info_cls; H5VL_wrap_class_t wrap_cls; H5VL_attr_class_t attr_cls;
  H5VL_dataset_class_t dataset_cls; H5VL_datatype_class_t datatype_cls; H5VL_file_class_t file_cls;
  H5VL_group_class_t group_cls; H5VL_link_class_t link_cls; H5VL_object_class_t object_cls;
  H5VL_introspect_class_t introspect_cls; H5VL_request_class_t request_cls; H5VL_blob_class_t
  blob_cls; H5VL_token_class_t token_cls; herr_t (*optional)(void *, H5VL_optional_args_t *, hid_t,
  void **); } H5VL_class_t;
void *H5VLobject(hid_t);
herr_t H5VLregister_opt_operation(H5VL_subclass_t, const char *, int *);
herr_t H5VLfind_opt_operation(H5VL_subclass_t, const char *, int *);
typedef enum H5S_class_t { H5S_NO_CLASS = -1, H5S_SCALAR = 0, H5S_SIMPLE = 1, H5S_NULL = 2 }
  H5S_class_t;
typedef enum H5S_seloper_t { H5S_SELECT_NOOP = -1, H5S_SELECT_SET = 0, H5S_SELECT_OR,
  H5S_SELECT_AND, H5S_SELECT_XOR, H5S_SELECT_NOTB, H5S_SELECT_NOTA, H5S_SELECT_APPEND,
  H5S_SELECT_PREPEND, H5S_SELECT_INVALID } H5S_seloper_t;
typedef enum { H5S_SEL_ERROR = -1, H5S_SEL_NONE = 0, H5S_SEL_POINTS = 1, H5S_SEL_HYPERSLABS = 2,
  H5S_SEL_ALL = 3, H5S_SEL_N } H5S_sel_type;
herr_t H5Sclose(hid_t);
hid_t H5Scombine_select(hid_t, H5S_seloper_t, hid_t);
hid_t H5Scopy(hid_t);
hid_t H5Screate_simple(int, const hsize_t [], const hsize_t []);
htri_t H5Sget_regular_hyperslab(hid_t, hsize_t [], hsize_t [], hsize_t [], hsize_t []);
herr_t H5Sget_select_bounds(hid_t, hsize_t [], hsize_t []);
herr_t H5Sget_select_hyper_blocklist(hid_t, hsize_t, hsize_t, hsize_t []);
hssize_t H5Sget_select_hyper_nblocks(hid_t);
hssize_t H5Sget_select_npoints(hid_t);
H5S_sel_type H5Sget_select_type(hid_t);
int H5Sget_simple_extent_dims(hid_t, hsize_t [], hsize_t []);
hssize_t H5Sget_simple_extent_npoints(hid_t);
H5S_class_t H5Sget_simple_extent_type(hid_t);
htri_t H5Sis_regular_hyperslab(hid_t);
herr_t H5Ssel_iter_close(hid_t);
hid_t H5Ssel_iter_create(hid_t, size_t, unsigned);
herr_t H5Ssel_iter_get_seq_list(hid_t, size_t, size_t, size_t *, size_t *, hsize_t *, size_t *);
herr_t H5Sselect_all(hid_t);
herr_t H5Sselect_elements(hid_t, H5S_seloper_t, size_t, const hsize_t *);
herr_t H5Sselect_hyperslab(hid_t, H5S_seloper_t, const hsize_t [], const hsize_t [], const hsize_t
  [], const hsize_t []);
herr_t H5Sselect_none(hid_t);
htri_t H5Sselect_valid(hid_t);
typedef int H5Z_filter_t;
htri_t H5Zfilter_avail(H5Z_filter_t);
typedef enum H5D_mpio_actual_chunk_opt_mode_t { H5D_MPIO_NO_CHUNK_OPTIMIZATION = 0,
  H5D_MPIO_LINK_CHUNK, H5D_MPIO_MULTI_CHUNK } H5D_mpio_actual_chunk_opt_mode_t;
typedef enum H5D_mpio_actual_io_mode_t { H5D_MPIO_NO_COLLECTIVE = 0x0, H5D_MPIO_CHUNK_INDEPENDENT =
  0x1, H5D_MPIO_CHUNK_COLLECTIVE = 0x2, H5D_MPIO_CHUNK_MIXED = 0x1 | 0x2,
  H5D_MPIO_CONTIGUOUS_COLLECTIVE = 0x4 } H5D_mpio_actual_io_mode_t;
typedef enum H5D_selection_io_mode_t { H5D_SELECTION_IO_MODE_DEFAULT = 0, H5D_SELECTION_IO_MODE_OFF,
  H5D_SELECTION_IO_MODE_ON } H5D_selection_io_mode_t;
extern hid_t H5P_CLS_FILE_ACCESS_ID_g;
herr_t H5Pclose(hid_t);
herr_t H5Pclose_class(hid_t);
hid_t H5Pcopy(hid_t);
hid_t H5Pcreate(hid_t);
htri_t H5Pequal(hid_t, hid_t);
htri_t H5Pexist(hid_t, const char *);
herr_t H5Pget(hid_t, const char *, void *);
hid_t H5Pget_class(hid_t);
herr_t H5Pget_nprops(hid_t, size_t *);
herr_t H5Pget_size(hid_t, const char *, size_t *);
herr_t H5Premove(hid_t, const char *);
herr_t H5Pset(hid_t, const char *, const void *);
H5Z_filter_t H5Pget_filter2(hid_t, unsigned, unsigned int *, size_t *, unsigned [], size_t, char [],
  unsigned *);
int H5Pget_nfilters(hid_t);
hid_t H5Pget_driver(hid_t);
herr_t H5Pget_page_buffer_size(hid_t, size_t *, unsigned *, unsigned *);
herr_t H5Pget_sieve_buf_size(hid_t, size_t *);
herr_t H5Pget_vol_id(hid_t, hid_t *);
herr_t H5Pget_vol_info(hid_t, void **);
herr_t H5Pset_driver(hid_t, hid_t, const void *);
herr_t H5Pfill_value_defined(hid_t, H5D_fill_value_t *);
herr_t H5Pget_alloc_time(hid_t, H5D_alloc_time_t *);
int H5Pget_chunk(hid_t, int, hsize_t []);
herr_t H5Pget_chunk_opts(hid_t, unsigned *);
int H5Pget_external_count(hid_t);
herr_t H5Pget_fill_time(hid_t, H5D_fill_time_t *);
herr_t H5Pget_fill_value(hid_t, hid_t, void *);
H5D_layout_t H5Pget_layout(hid_t);
herr_t H5Pset_chunk(hid_t, int, const hsize_t []);
herr_t H5Pget_chunk_cache(hid_t, size_t *, size_t *, double *);
herr_t H5Pset_selection_io(hid_t, H5D_selection_io_mode_t);
herr_t H5Pset_create_intermediate_group(hid_t, unsigned);
herr_t H5Pset_char_encoding(hid_t, H5T_cset_t);
herr_t H5Pget_elink_cb(hid_t, H5L_elink_traverse_t *, void **);
hid_t H5Pget_elink_fapl(hid_t);
herr_t H5Pset_elink_cb(hid_t, H5L_elink_traverse_t, void *);
herr_t H5Pset_elink_fapl(hid_t, hid_t);
typedef enum H5PL_type_t { H5PL_TYPE_ERROR = -1, H5PL_TYPE_FILTER = 0, H5PL_TYPE_VOL = 1,
  H5PL_TYPE_VFD = 2, H5PL_TYPE_NONE = 3 } H5PL_type_t;
typedef herr_t (*H5L_create_func_t)(const char *, hid_t, const void *, size_t, hid_t);
typedef herr_t (*H5L_move_func_t)(const char *, hid_t, const void *, size_t);
typedef herr_t (*H5L_copy_func_t)(const char *, hid_t, const void *, size_t);
typedef hid_t (*H5L_traverse_func_t)(const char *, hid_t, const void *, size_t, hid_t, hid_t);
typedef herr_t (*H5L_delete_func_t)(const char *, hid_t, const void *, size_t);
typedef ssize_t (*H5L_query_func_t)(const char *, const void *, size_t, void *, size_t);
typedef struct { int version; H5L_type_t id; const char *comment; H5L_create_func_t create_func;
  H5L_move_func_t move_func; H5L_copy_func_t copy_func; H5L_traverse_func_t trav_func;
  H5L_delete_func_t del_func; H5L_query_func_t query_func; } H5L_class_t;
herr_t H5Lregister(const H5L_class_t *);
herr_t H5TSmutex_acquire(unsigned int, bool *);
herr_t H5TSmutex_release(unsigned int *);
typedef htri_t (*H5Z_can_apply_func_t)(hid_t, hid_t, hid_t);
typedef herr_t (*H5Z_set_local_func_t)(hid_t, hid_t, hid_t);
typedef size_t (*H5Z_func_t)(unsigned int, size_t, const unsigned int [], size_t, size_t *, void
  **);
typedef struct H5Z_class2_t { int version; H5Z_filter_t id; unsigned encoder_present; unsigned
  decoder_present; const char *name; H5Z_can_apply_func_t can_apply; H5Z_set_local_func_t set_local;
  H5Z_func_t filter; } H5Z_class2_t;
herr_t H5VLget_value(hid_t, H5VL_class_value_t *);
herr_t H5VLconnector_str_to_info(const char *, hid_t, void **);
herr_t H5VLintrospect_get_conn_cls(void *, hid_t, H5VL_get_conn_lvl_t, const H5VL_class_t **);
typedef struct H5VL_native_dataset_chunk_read_t { const hsize_t *offset; uint32_t filters; void
  *buf; } H5VL_native_dataset_chunk_read_t;
typedef struct H5VL_native_dataset_chunk_write_t { const hsize_t *offset; uint32_t filters; uint32_t
  size; const void *buf; } H5VL_native_dataset_chunk_write_t;
typedef struct H5VL_native_dataset_get_vlen_buf_size_t { hid_t type_id; hid_t space_id; hsize_t
  *size; } H5VL_native_dataset_get_vlen_buf_size_t;
typedef struct H5VL_native_dataset_get_chunk_storage_size_t { const hsize_t *offset; hsize_t *size;
  } H5VL_native_dataset_get_chunk_storage_size_t;
typedef struct H5VL_native_dataset_get_num_chunks_t { hid_t space_id; hsize_t *nchunks; }
  H5VL_native_dataset_get_num_chunks_t;
typedef struct H5VL_native_dataset_get_chunk_info_by_idx_t { hid_t space_id; hsize_t chk_index;
  hsize_t *offset; unsigned *filter_mask; haddr_t *addr; hsize_t *size; }
  H5VL_native_dataset_get_chunk_info_by_idx_t;
typedef struct H5VL_native_dataset_get_chunk_info_by_coord_t { const hsize_t *offset; unsigned
  *filter_mask; haddr_t *addr; hsize_t *size; } H5VL_native_dataset_get_chunk_info_by_coord_t;
typedef union H5VL_native_dataset_optional_args_t { struct { H5D_chunk_index_t *idx_type; }
  get_chunk_idx_type; H5VL_native_dataset_get_chunk_storage_size_t get_chunk_storage_size;
  H5VL_native_dataset_get_num_chunks_t get_num_chunks; H5VL_native_dataset_get_chunk_info_by_idx_t
  get_chunk_info_by_idx; H5VL_native_dataset_get_chunk_info_by_coord_t get_chunk_info_by_coord;
  H5VL_native_dataset_chunk_read_t chunk_read; H5VL_native_dataset_chunk_write_t chunk_write;
  H5VL_native_dataset_get_vlen_buf_size_t get_vlen_buf_size; struct { haddr_t *offset; } get_offset;
  struct { H5D_chunk_iter_op_t op; void *op_data; } chunk_iter; }
  H5VL_native_dataset_optional_args_t;
typedef struct H5VL_native_file_get_file_image_t { size_t buf_size; void *buf; size_t *image_len; }
  H5VL_native_file_get_file_image_t;
typedef struct H5VL_native_file_get_free_sections_t { H5F_mem_t type; H5F_sect_info_t *sect_info;
  size_t nsects; size_t *sect_count; } H5VL_native_file_get_free_sections_t;
typedef struct H5VL_native_file_get_freespace_t { hsize_t *size; } H5VL_native_file_get_freespace_t;
typedef struct H5VL_native_file_get_info_t { H5I_type_t type; H5F_info2_t *finfo; }
  H5VL_native_file_get_info_t;
typedef struct H5VL_native_file_get_mdc_size_t { size_t *max_size; size_t *min_clean_size; size_t
  *cur_size; uint32_t *cur_num_entries; } H5VL_native_file_get_mdc_size_t;
typedef struct H5VL_native_file_get_vfd_handle_t { hid_t fapl_id; void **file_handle; }
  H5VL_native_file_get_vfd_handle_t;
typedef struct H5VL_native_file_get_mdc_logging_status_t { hbool_t *is_enabled; hbool_t
  *is_currently_logging; } H5VL_native_file_get_mdc_logging_status_t;
typedef struct H5VL_native_file_get_page_buffering_stats_t { unsigned *accesses; unsigned *hits;
  unsigned *misses; unsigned *evictions; unsigned *bypasses; }
  H5VL_native_file_get_page_buffering_stats_t;
typedef struct H5VL_native_file_get_mdc_image_info_t { haddr_t *addr; hsize_t *len; }
  H5VL_native_file_get_mdc_image_info_t;
typedef struct H5VL_native_file_set_libver_bounds_t { H5F_libver_t low; H5F_libver_t high; }
  H5VL_native_file_set_libver_bounds_t;
typedef union H5VL_native_file_optional_args_t { H5VL_native_file_get_file_image_t get_file_image;
  H5VL_native_file_get_free_sections_t get_free_sections; H5VL_native_file_get_freespace_t
  get_freespace; H5VL_native_file_get_info_t get_info; struct { H5AC_cache_config_t *config; }
  get_mdc_config; struct { double *hit_rate; } get_mdc_hit_rate; H5VL_native_file_get_mdc_size_t
  get_mdc_size; struct { hsize_t *size; } get_size; H5VL_native_file_get_vfd_handle_t
  get_vfd_handle; struct { const H5AC_cache_config_t *config; } set_mdc_config; struct {
  H5F_retry_info_t *info; } get_metadata_read_retry_info; H5VL_native_file_get_mdc_logging_status_t
  get_mdc_logging_status; H5VL_native_file_get_page_buffering_stats_t get_page_buffering_stats;
  H5VL_native_file_get_mdc_image_info_t get_mdc_image_info; struct { haddr_t *eoa; } get_eoa; struct
  { hsize_t increment; } increment_filesize; H5VL_native_file_set_libver_bounds_t set_libver_bounds;
  struct { hbool_t *minimize; } get_min_dset_ohdr_flag; struct { hbool_t minimize; }
  set_min_dset_ohdr_flag; } H5VL_native_file_optional_args_t;
typedef enum H5FD_mpio_xfer_t { H5FD_MPIO_INDEPENDENT = 0, H5FD_MPIO_COLLECTIVE } H5FD_mpio_xfer_t;
typedef enum H5FD_mpio_chunk_opt_t { H5FD_MPIO_CHUNK_DEFAULT = 0, H5FD_MPIO_CHUNK_ONE_IO,
  H5FD_MPIO_CHUNK_MULTI_IO } H5FD_mpio_chunk_opt_t;
herr_t H5Pset_fapl_sec2(hid_t);
H5PL_type_t H5PLget_plugin_type();
const void *H5PLget_plugin_info();
}  // extern "C"
// clang-format on
