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

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                               \
    }                                                                         \
  } while (0)

enum { kElements = 1 << 20 };

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
  memset(values, 0, kElements * sizeof *values);
  CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  CHECK(values[1] == 3 && values[kElements - 1] == 3 * (kElements - 1));
  CHECK(H5Dclose(dataset) >= 0 && H5Sclose(space) >= 0 && H5Fclose(file) >= 0);
  CHECK(H5Pclose(fapl) >= 0 && H5Pclose(dxpl) >= 0);
  free(values);
  return 0;
}
