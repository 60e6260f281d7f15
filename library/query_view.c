/// \file
/// References are kept in memory while a query runs, and written when it has ended: a view has the size that it needs.
///
/// Thread safety: as query_view.h.
#include "query_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tidelane_query.h"

static const char* const dataset_names[3] = {H5Q_VIEW_REF_REG_NAME, H5Q_VIEW_REF_OBJ_NAME,
                                             H5Q_VIEW_REF_ATTR_NAME};
static const unsigned bits_of[3] = {H5Q_REF_REG, H5Q_REF_OBJ, H5Q_REF_ATTR};

/* NULL: there is no memory. */
static H5R_ref_t* next_of(struct tl_references* list) {
  if (list->count == list->room) {
    const size_t room = list->room == 0 ? 16 : 2 * list->room;
    H5R_ref_t* const at = (H5R_ref_t*)realloc(list->at, room * sizeof *at);
    if (at == NULL) return NULL;
    list->at = at;
    list->room = room;
  }
  return &list->at[list->count];
}

int tl_view_note(struct tl_view* view, const struct tl_query_found* found, const char* name) {
  struct tl_references* const list = &view->found[found->kind];
  H5R_ref_t* const reference = next_of(list);
  herr_t made = -1;
  if (reference == NULL) return tl_fail("H5Qapply", "no memory for references");
  switch (found->kind) {
    case TL_FOUND_REGION:
      made = H5Rcreate_region(found->object, name, found->space, H5P_DEFAULT, reference);
      break;
    case TL_FOUND_OBJECT:
      made = H5Rcreate_object(found->object, name, H5P_DEFAULT, reference);
      break;
    default: made = H5Rcreate_attr(found->object, name, found->attribute, H5P_DEFAULT, reference);
  }
  if (made < 0) return -1;
  ++list->count;
  return 0;
}

unsigned tl_view_bits(const struct tl_view* view) {
  unsigned bits = 0;
  int kind;
  for (kind = 0; kind < 3; ++kind) {
    if (view->found[kind].count != 0) bits |= bits_of[kind];
  }
  return bits;
}

/* A file that is in memory alone, by HDF5's own connector: closed with the last of what is open in it. */
static hid_t make_file(void) {
  const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  hid_t file = H5I_INVALID_HID;
  char name[64];
  /* Files of the core driver that have one name are one file: identifiers are never given twice. */
  snprintf(name, sizeof name, "tidelane view %llu", (unsigned long long)list);
  if (list >= 0 && H5Pset_fapl_core(list, 1u << 16, 0) >= 0 &&
      H5Pset_libver_bounds(list, H5F_LIBVER_V18, H5F_LIBVER_LATEST) >= 0 &&
      H5Pset_vol(list, H5VL_NATIVE, NULL) >= 0) {
    file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, list);
  }
  if (list >= 0) H5Pclose(list);
  return file;
}

static herr_t write_references(hid_t group, const char* name, const struct tl_references* list) {
  const hsize_t count = list->count;
  const hid_t space = H5Screate_simple(1, &count, NULL);
  hid_t dataset = H5I_INVALID_HID;
  herr_t done = -1;
  if (space < 0) return -1;
  dataset = H5Dcreate2(group, name, H5T_STD_REF, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (dataset >= 0) {
    done = H5Dwrite(dataset, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, list->at);
    if (H5Dclose(dataset) < 0) done = -1;
  }
  H5Sclose(space);
  return done;
}

hid_t tl_view_make(hid_t list) {
  const hid_t file = make_file();
  hid_t group;
  if (file < 0) return H5I_INVALID_HID;
  group = H5Gcreate_anon(file, list, H5P_DEFAULT);
  H5Fclose(file);
  return group;
}

/* Of chunks, with nothing in it. */
static hid_t make_growing(hid_t group, const char* name) {
  const hsize_t none = 0, most = H5S_UNLIMITED, chunk = 256;
  const hid_t space = H5Screate_simple(1, &none, &most);
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  hid_t dataset = H5I_INVALID_HID;
  if (space >= 0 && list >= 0 && H5Pset_chunk(list, 1, &chunk) >= 0)
    dataset = H5Dcreate2(group, name, H5T_STD_REF, space, H5P_DEFAULT, list, H5P_DEFAULT);
  if (list >= 0) H5Pclose(list);
  if (space >= 0) H5Sclose(space);
  return dataset;
}

static herr_t write_behind(hid_t dataset, const struct tl_references* list) {
  const hsize_t count = list->count;
  hid_t space = H5Dget_space(dataset);
  const hid_t memory = H5Screate_simple(1, &count, NULL);
  hsize_t before = 0, all;
  herr_t done = -1;
  if (space >= 0) H5Sget_simple_extent_dims(space, &before, NULL);
  all = before + count;
  if (space >= 0 && memory >= 0 && H5Dset_extent(dataset, &all) >= 0) {
    H5Sclose(space);
    space = H5Dget_space(dataset);
    if (space >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, &before, NULL, &count, NULL) >= 0)
      done = H5Dwrite(dataset, H5T_STD_REF, memory, space, H5P_DEFAULT, list->at);
  }
  if (memory >= 0) H5Sclose(memory);
  if (space >= 0) H5Sclose(space);
  return done;
}

herr_t tl_view_append(const struct tl_view* view, hid_t group) {
  int kind;
  for (kind = 0; kind < 3; ++kind) {
    const char* const name = dataset_names[kind];
    hid_t dataset;
    herr_t done;
    if (view->found[kind].count == 0) continue;
    dataset = H5Lexists(group, name, H5P_DEFAULT) > 0 ? H5Dopen2(group, name, H5P_DEFAULT)
                                                      : make_growing(group, name);
    if (dataset < 0) return -1;
    done = write_behind(dataset, &view->found[kind]);
    if (H5Dclose(dataset) < 0 || done < 0) return -1;
  }
  return 0;
}

void tl_view_empty(hid_t group) {
  int kind;
  for (kind = 0; kind < 3; ++kind) {
    if (H5Lexists(group, dataset_names[kind], H5P_DEFAULT) > 0)
      H5Ldelete(group, dataset_names[kind], H5P_DEFAULT);
  }
}

herr_t tl_view_write(const struct tl_view* view, hid_t group) {
  int kind;
  for (kind = 0; kind < 3; ++kind) {
    if (view->found[kind].count == 0) continue;
    if (write_references(group, dataset_names[kind], &view->found[kind]) < 0) return -1;
  }
  return 0;
}

void tl_view_free(struct tl_view* view) {
  int kind;
  size_t i;
  for (kind = 0; kind < 3; ++kind) {
    for (i = 0; i < view->found[kind].count; ++i) H5Rdestroy(&view->found[kind].at[i]);
    free(view->found[kind].at);
  }
  memset(view, 0, sizeof *view);
}
