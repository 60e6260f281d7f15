/// \file
/// Views: what a query has found, as references in an anonymous group of a file in memory. Not installed.
///
/// Invariant: nothing is written into the files that were asked.
/// Thread safety: as tidelane_query.h; a view belongs to who makes it.
#ifndef TIDELANE_QUERY_VIEW_H
#define TIDELANE_QUERY_VIEW_H

#include "h5/protocol.h"
#include "internal.h"

/* References of one kind; memory of malloc. */
struct tl_references {
  H5R_ref_t* at;
  size_t count;
  size_t room;
};

/* Begins as zeros. By the kinds of h5/protocol.h. */
struct tl_view {
  struct tl_references found[3];
};

/* What `name` leads to from `found`'s object; -1: HDF5 says why, or there is no memory. */
TL_HIDDEN int tl_view_note(struct tl_view* view, const struct tl_query_found* found,
                           const char* name);

/* The bits H5Q_REF_* of what it has. */
TL_HIDDEN unsigned tl_view_bits(const struct tl_view* view);

/* An empty group; `list`: how it is made, or H5P_DEFAULT. H5I_INVALID_HID: HDF5 says why. */
TL_HIDDEN hid_t tl_view_make(hid_t list);
/* A dataset in it for each kind that was found; -1: HDF5 says why. */
TL_HIDDEN herr_t tl_view_write(const struct tl_view* view, hid_t group);
/* The same, behind what is there already: such datasets have chunks. */
TL_HIDDEN herr_t tl_view_append(const struct tl_view* view, hid_t group);
/* An empty group again. */
TL_HIDDEN void tl_view_empty(hid_t group);

/* It has nothing afterwards. */
TL_HIDDEN void tl_view_free(struct tl_view* view);

#endif
