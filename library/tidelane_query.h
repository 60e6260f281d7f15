/// \file
/// Queries: conditions on elements, attributes and names, and what of a file fulfils them.
///
/// The functions are those of The HDF Group's prototype under their names and with their arguments where it has them; what begins
/// with tidelane_, and what is marked below, is ours. Each is described in docs/library.md.
///
/// A query is an HDF5 identifier: H5Iinc_ref and H5Idec_ref work on it, and H5close ends it. It never changes, and what it
/// was combined of may be closed before it.
///
/// Errors are HDF5's: a negative result, and the reason on the error stack.
///
/// Thread safety: as HDF5's own functions.
#ifndef TIDELANE_QUERY_H
#define TIDELANE_QUERY_H

#include <stddef.h>

#include <hdf5.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a condition is about. */
typedef enum H5Q_type_t {
  H5Q_TYPE_DATA_ELEM = 0,  /* elements of datasets */
  H5Q_TYPE_ATTR_VALUE = 1, /* elements of attributes */
  H5Q_TYPE_ATTR_NAME = 2,  /* names of attributes */
  H5Q_TYPE_LINK_NAME = 3,  /* names of links */
  H5Q_TYPE_MISC = 4        /* a combination of conditions on different things */
} H5Q_type_t;

/* How it is compared with a constant. The last three are ours. */
typedef enum H5Q_match_op_t {
  H5Q_MATCH_EQUAL = 0,
  H5Q_MATCH_NOT_EQUAL = 1,
  H5Q_MATCH_LESS_THAN = 2, /* smaller, and not equal */
  H5Q_MATCH_GREATER_THAN = 3,
  H5Q_MATCH_LESS_EQUAL = 4,
  H5Q_MATCH_GREATER_EQUAL = 5,
  H5Q_MATCH_BETWEEN = 6 /* two constants, which belong to it */
} H5Q_match_op_t;

/* How queries are combined. H5Q_COMBINE_NOT is ours, and comes from H5Qnegate alone. */
typedef enum H5Q_combine_op_t {
  H5Q_COMBINE_AND = 0,
  H5Q_COMBINE_OR = 1,
  H5Q_SINGLETON = 2, /* not at all: one condition */
  H5Q_COMBINE_NOT = 3
} H5Q_combine_op_t;

/* What H5Qapply found: bits of its result, and the datasets of the view that hold references to it. */
#define H5Q_REF_REG 0x1u
#define H5Q_REF_OBJ 0x2u
#define H5Q_REF_ATTR 0x4u
#define H5Q_VIEW_REF_REG_NAME "region_references"
#define H5Q_VIEW_REF_OBJ_NAME "object_references"
#define H5Q_VIEW_REF_ATTR_NAME "attribute_references"

/* Making queries ----------------------------------------------------------------------------- */

/* Data elements and attribute values: hid_t type_id, const void* value, an array of two for H5Q_MATCH_BETWEEN. Names: const char*
   name; for H5Q_MATCH_BETWEEN (ours) const char* low, const char* high. */
hid_t H5Qcreate(H5Q_type_t query_type, H5Q_match_op_t match_op, ...);

/* Of the elements of the column called `name`, or of attributes called so; NULL or "": of any, as H5Qcreate. */
hid_t tidelane_query_named(H5Q_type_t query_type, const char* name, H5Q_match_op_t match_op,
                           hid_t type_id, const void* value);

hid_t H5Qcombine(hid_t query1_id, H5Q_combine_op_t combine_op, hid_t query2_id);
hid_t H5Qnegate(hid_t query_id); /* ours: what the query does not find */
herr_t H5Qclose(hid_t query_id);

/* Asking queries ----------------------------------------------------------------------------- */

herr_t H5Qget_type(hid_t query_id, H5Q_type_t* query_type);
herr_t H5Qget_combine_op(hid_t query_id, H5Q_combine_op_t* op_type);
/* The parts of a combination, to be closed; of a negation the second one is H5I_INVALID_HID. */
herr_t H5Qget_components(hid_t query_id, hid_t* sub_query1_id, hid_t* sub_query2_id);
/* Of one condition; what is NULL is not wanted. */
herr_t H5Qget_match_info(hid_t query_id, H5Q_type_t* query_type, H5Q_match_op_t* match_op);
herr_t H5Qget_match_op(hid_t query_id, H5Q_match_op_t* match_op);

/* The name that a condition was given; returns its length, and writes at most `size` bytes, the null at the end included. */
ssize_t tidelane_query_get_name(hid_t query_id, char* name, size_t size);
/* The constants of a condition in the type that they were given in, which is to be closed, and how many bytes they have: two values for
   H5Q_MATCH_BETWEEN. `value` may be NULL; else `*size` says how large it is, and is set likewise. */
herr_t tidelane_query_get_value(hid_t query_id, hid_t* type_id, void* value, size_t* size);

/* Queries as bytes --------------------------------------------------------------------------- */

/* `*nalloc`: how large `buf` is; becomes how many bytes the query has. Nothing is written where they do not fit, or `buf` is NULL. */
herr_t H5Qencode(hid_t query_id, void* buf, size_t* nalloc);
/* Believes that a whole query is there: bytes that may be anything are for tidelane_query_decode. */
hid_t H5Qdecode(const void* buf);
hid_t tidelane_query_decode(const void* buf, size_t size);

/* Applying queries --------------------------------------------------------------------------- */

/* The view, an anonymous group that is to be closed (H5Gclose): of everything at and below a file, group or dataset, or several, that
   fulfils the query. `*result` says which of its datasets there are. They fail where the plugin is not in charge of the place. */
hid_t H5Qapply(hid_t loc_id, hid_t query_id, unsigned* result, hid_t vcpl_id);
hid_t H5Qapply_multi(size_t loc_count, hid_t* loc_ids, hid_t query_id, unsigned* result,
                     hid_t vcpl_id);

/* The dataspace of a dataset with the elements selected that fulfil the query, as H5Dread takes it; none, if none do. To be closed. Ours. */
hid_t tidelane_query_select(hid_t dset_id, hid_t query_id);

/* The same with an event set: elements are looked at after the call. When the set's operation is done, the view has its datasets and `*result`, which must live
   until then, its bits; before, the view is empty and `*result` 0. What is found is what H5Qapply would have found in the call. */
hid_t H5Qapply_async(const char* app_file, const char* app_func, unsigned app_line, hid_t loc_id,
                     hid_t query_id, unsigned* result, hid_t vcpl_id, hid_t es_id);
hid_t H5Qapply_multi_async(const char* app_file, const char* app_func, unsigned app_line,
                           size_t loc_count, hid_t* loc_ids, hid_t query_id, unsigned* result,
                           hid_t vcpl_id, hid_t es_id);
#ifndef TIDELANE_QUERY_MODULE
#define H5Qapply_async(...) H5Qapply_async(__FILE__, __func__, __LINE__, __VA_ARGS__)
#define H5Qapply_multi_async(...) H5Qapply_multi_async(__FILE__, __func__, __LINE__, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif
