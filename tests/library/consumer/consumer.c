/* A program of somebody else's, compiled against an installed Tidelane, as C and as C++.
 *
 * consumer <file> pending|stored: writes the file; what it wrote must be pending when it asks (the plugin is there) or
 * stored (it is not). Prints the first thing that is wrong and ends with status 1. */
#ifdef __cplusplus
#include <h5_async_lib.h> /* the name that existing programs know */
#else
#include <tidelane.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tidelane_query.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                               \
    }                                                                         \
  } while (0)

enum { kElements = 1 << 20 };

/* 3 <= x <= 5 of elements, or a link that is not called "spare": combined, encoded, decoded, taken apart. */
static int queries(hid_t file, int stored) {
  const int range[2] = {3, 5};
  int back[2] = {0, 0};
  size_t size = 0;
  unsigned result = 0;
  void* bytes;
  H5Q_combine_op_t op = H5Q_SINGLETON;
  H5Q_type_t type = H5Q_TYPE_MISC;
  H5Q_match_op_t match = H5Q_MATCH_EQUAL;
  hid_t value_type = H5I_INVALID_HID, first = H5I_INVALID_HID, second = H5I_INVALID_HID;
  const hid_t elements = H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_BETWEEN, H5T_NATIVE_INT, range);
  const hid_t spare = H5Qcreate(H5Q_TYPE_LINK_NAME, H5Q_MATCH_EQUAL, "spare");
  const hid_t other = H5Qnegate(spare);
  const hid_t query = H5Qcombine(elements, H5Q_COMBINE_OR, other);
  hid_t decoded;
  CHECK(query >= 0);
  CHECK(H5Qclose(elements) >= 0 && H5Qclose(spare) >= 0 && H5Idec_ref(other) >= 0);
  CHECK(H5Qencode(query, NULL, &size) >= 0 && size > 0);
  bytes = malloc(size);
  CHECK(bytes != NULL && H5Qencode(query, bytes, &size) >= 0);
  decoded = tidelane_query_decode(bytes, size);
  free(bytes);
  CHECK(H5Qget_type(decoded, &type) >= 0 && type == H5Q_TYPE_MISC);
  CHECK(H5Qget_combine_op(decoded, &op) >= 0 && op == H5Q_COMBINE_OR);
  CHECK(H5Qget_components(decoded, &first, &second) >= 0);
  CHECK(H5Qget_combine_op(second, &op) >= 0 && op == H5Q_COMBINE_NOT);
  CHECK(H5Qget_match_info(first, &type, &match) >= 0);
  CHECK(type == H5Q_TYPE_DATA_ELEM && match == H5Q_MATCH_BETWEEN);
  size = sizeof back;
  CHECK(tidelane_query_get_value(first, &value_type, back, &size) >= 0);
  CHECK(H5Tequal(value_type, H5T_NATIVE_INT) > 0 && back[0] == 3 && back[1] == 5);
  if (stored) { /* no plugin: nobody who could answer */
    hid_t view = 0;
    H5E_BEGIN_TRY { view = H5Qapply(file, query, &result, H5P_DEFAULT); }
    H5E_END_TRY
    CHECK(view < 0);
  }
  CHECK(H5Tclose(value_type) >= 0 && H5Qclose(first) >= 0 && H5Qclose(second) >= 0);
  CHECK(H5Qclose(query) >= 0 && H5Qclose(decoded) >= 0);
  return 0;
}

int main(int argc, char** argv) {
  const hsize_t extent = kElements;
  const int stored = argc == 3 && strcmp(argv[2], "stored") == 0;
  int* values = (int*)malloc(kElements * sizeof *values);
  int completed = -1;
  int i;
  tidelane_journal_t journal = TIDELANE_JOURNAL_POWER;
  uint64_t flushes = 0;
  double seconds = 0;
  hid_t fapl, dxpl, space, file, dataset;
  CHECK(argc == 3 && values != NULL);
  for (i = 0; i < kElements; ++i) values[i] = 3 * i;
  fapl = H5Pcreate(H5P_FILE_ACCESS);
  dxpl = H5Pcreate(H5P_DATASET_XFER);
  CHECK(H5Pset_vol_async(fapl) >= 0);
  CHECK(tidelane_set_fapl_close(fapl, TIDELANE_DEFERRED) >= 0);
  CHECK(tidelane_get_fapl_journal(fapl, &journal) >= 0 &&
        journal == TIDELANE_JOURNAL_AS_CONFIGURED);
  CHECK(tidelane_set_fapl_journal(fapl, TIDELANE_JOURNAL_OFF) >= 0);
  CHECK(tidelane_set_fapl_journal_required(fapl, 0) >= 0);
  CHECK(tidelane_set_fapl_journal_commits(fapl, 10, 0.5) >= 0);
  CHECK(tidelane_get_fapl_journal_commits(fapl, &flushes, &seconds) >= 0);
  CHECK(flushes == 10 && seconds == 0.5);
  CHECK(H5Pset_dxpl_pause(dxpl, 1) >= 0);
  file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
  space = H5Screate_simple(1, &extent, NULL);
  dataset = H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, values) >= 0);
  CHECK(H5Dtest(dataset, &completed) >= 0);
  CHECK(completed == stored);
  CHECK(H5Fstart(file, H5P_DEFAULT) >= 0);
  CHECK(H5Fwait(file, H5P_DEFAULT) >= 0);
  CHECK(H5Ftest(file, &completed) >= 0);
  CHECK(completed == 1);
  CHECK(tidelane_commit(file) >= 0);
  CHECK(queries(file, stored) == 0);
  memset(values, 0, kElements * sizeof *values);
  CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  CHECK(values[1] == 3 && values[kElements - 1] == 3 * (kElements - 1));
  CHECK(H5Dclose(dataset) >= 0 && H5Sclose(space) >= 0 && H5Fclose(file) >= 0);
  CHECK(H5Pclose(fapl) >= 0 && H5Pclose(dxpl) >= 0);
  free(values);
  return 0;
}
