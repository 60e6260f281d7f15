/* Ranks that write and read from the memory of a GPU, for run.py: <file> <libcuda> <collective|alone> <plain|chunked>. The library
 * is the stand-in of tests/gpu, whose memory faults when the processor touches it.
 *
 * The copy of one rank fails once: that rank's call fails, and the others, which are in the same call, go on. Exits with 1 if a call
 * did not end as it should, or a rank read something else than was written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

typedef unsigned long long CUdeviceptr; /* as the driver has it */

enum { kElements = 300000, kSteps = 4, kFailing = 1 };

static int rank, wrong;
static int values[kElements], found[kElements];
static CUdeviceptr device;

static int (*upload)(CUdeviceptr, const void*, size_t);
static int (*download)(void*, CUdeviceptr, size_t);
static void (*fail)(const char*, int, int, int);

static void* take(void* library, const char* name) {
  void* const function = dlsym(library, name);
  if (function == NULL) {
    fprintf(stderr, "rank %d: no %s\n", rank, name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return function;
}

static void start_gpu(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  void* context = NULL;
  if (library == NULL) {
    fprintf(stderr, "rank %d: %s\n", rank, dlerror());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  ((int (*)(unsigned))take(library, "cuInit"))(0);
  ((int (*)(void**, int))take(library, "cuDevicePrimaryCtxRetain"))(&context, 0);
  ((int (*)(void*))take(library, "cuCtxSetCurrent"))(context);
  ((int (*)(CUdeviceptr*, size_t))take(library, "cuMemAlloc_v2"))(&device, sizeof values);
  upload = (int (*)(CUdeviceptr, const void*, size_t))take(library, "cuMemcpyHtoD_v2");
  download = (int (*)(void*, CUdeviceptr, size_t))take(library, "cuMemcpyDtoH_v2");
  fail = (void (*)(const char*, int, int, int))take(library, "StandInFail");
}

static void expect(int right, const char* what, int step) {
  if (right) return;
  fprintf(stderr, "rank %d, step %d: %s\n", rank, step, what);
  wrong = 1;
}

static void one_step(hid_t dataset, hid_t memory, hid_t space, hid_t transfer, int step) {
  const int fails = rank == 1 && step == kFailing;
  void* const pointer = (void*)(size_t)device;
  herr_t result;
  for (int i = 0; i < kElements; ++i) values[i] = i * 3 + rank * 1000 + step;
  upload(device, values, sizeof values);
  H5E_BEGIN_TRY {
    if (fails) fail("cuMemcpyDtoHAsync_v2", 1, 1, 700);
    result = H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, transfer, pointer);
    expect(fails ? result < 0 : result >= 0, "H5Dwrite did not end as it should", step);
    memset(found, 0, sizeof found);
    upload(device, found, sizeof found);
    if (fails) fail("cuMemcpyHtoDAsync_v2", 1, 1, 700);
    result = H5Dread(dataset, H5T_NATIVE_INT, memory, space, transfer, pointer);
    expect(fails ? result < 0 : result >= 0, "H5Dread did not end as it should", step);
  }
  H5E_END_TRY
  download(found, device, sizeof found);
  if (!fails) expect(memcmp(values, found, sizeof found) == 0, "other elements were read", step);
}

int main(int argc, char** argv) {
  int ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  start_gpu(argv[2]);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  const hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
  const hsize_t extent = (hsize_t)kElements * ranks, start = (hsize_t)kElements * rank;
  const hsize_t count = kElements, chunk = kElements / 3;
  const hid_t space = H5Screate_simple(1, &extent, NULL),
              memory = H5Screate_simple(1, &count, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), transfer = H5Pcreate(H5P_DATASET_XFER);
  if (strcmp(argv[4], "chunked") == 0) H5Pset_chunk(creation, 1, &chunk);
  H5Pset_dxpl_mpio(
      transfer, strcmp(argv[3], "collective") == 0 ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
  for (int step = 0; step < kSteps; ++step) {
    const char name[] = {'d', (char)('0' + step), 0};
    const hid_t dataset =
        H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    one_step(dataset, memory, space, transfer, step);
    H5Dclose(dataset);
  }
  const hid_t ids[] = {space, memory};
  for (int i = 0; i < 2; ++i) H5Sclose(ids[i]);
  H5Pclose(creation);
  H5Pclose(transfer);
  H5Pclose(access);
  expect(H5Fclose(file) >= 0, "H5Fclose failed", kSteps);
  MPI_Finalize();
  return wrong;
}
