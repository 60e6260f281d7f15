/* What ranks exchange in each call of HDF5, for exchanges.py: <file> <report>. Counts the collective calls of MPI that HDF5, MPI-IO above its own
 * entry points, and the plugin make, which finds MPI's functions by dlsym; rank 0 writes a line for each step: its name, and how many there were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

#include "rank.h"

enum { kColumns = 1024, kSteps = 4, kGroups = 50 };

static int calls;
static FILE* report;

#pragma GCC visibility push(default)
int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  ++calls;
  return PMPI_Allreduce(from, to, count, type, op, comm);
}
int MPI_Allgather(const void* from, int sent, MPI_Datatype type, void* to, int received,
                  MPI_Datatype as, MPI_Comm comm) {
  ++calls;
  return PMPI_Allgather(from, sent, type, to, received, as, comm);
}
int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  ++calls;
  return PMPI_Iallreduce(from, to, count, type, op, comm, request);
}
int MPI_Iallgather(const void* from, int sent, MPI_Datatype type, void* to, int received,
                   MPI_Datatype as, MPI_Comm comm, MPI_Request* request) {
  ++calls;
  return PMPI_Iallgather(from, sent, type, to, received, as, comm, request);
}
int MPI_Bcast(void* bytes, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  ++calls;
  return PMPI_Bcast(bytes, count, type, root, comm);
}
int MPI_Barrier(MPI_Comm comm) {
  ++calls;
  return PMPI_Barrier(comm);
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  ++calls;
  return PMPI_Comm_dup(comm, made);
}

void* dlsym(void* handle, const char* name) {
  static void* (*next)(void*, const char*);
  if (next == NULL) {
    void* found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (found == NULL) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (found == NULL) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
    memcpy(&next, &found, sizeof next);
  }
  static const struct {
    const char* name;
    void* counted;
  } known[] = {{"MPI_Allreduce", (void*)MPI_Allreduce},
               {"MPI_Allgather", (void*)MPI_Allgather},
               {"MPI_Iallreduce", (void*)MPI_Iallreduce},
               {"MPI_Iallgather", (void*)MPI_Iallgather}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strcmp(name, known[i].name) == 0 && next(handle, name) != NULL) return known[i].counted;
  return next(handle, name);
}

#pragma GCC visibility pop

static void step(const char* name) {
  if (rank == 0) fprintf(report, "%s\t%d\n", name, calls);
  calls = 0;
}

static hid_t together, space, memory;
static int values[kColumns];

static hid_t step_of(hid_t file, int number, int makes) {
  char name[32];
  snprintf(name, sizeof name, "step%d", number);
  const hid_t data =
      makes ? H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
            : H5Dopen2(file, name, H5P_DEFAULT);
  step(makes ? "H5Dcreate2" : "H5Dopen2");
  return must(data, name);
}

static void write_to(hid_t data, hid_t list) {
  must(H5Dwrite(data, H5T_NATIVE_INT, memory, space, list, values), "H5Dwrite");
}

static void read_from(hid_t data, hid_t list) {
  must(H5Dread(data, H5T_NATIVE_INT, memory, space, list, values), "H5Dread");
}

static void metadata(hid_t file, hid_t data) {
  const hid_t one = H5Screate(H5S_SCALAR);
  const hid_t attribute =
      must(H5Acreate2(data, "zero", H5T_NATIVE_INT, one, H5P_DEFAULT, H5P_DEFAULT), "H5Acreate2");
  const int zero = 0;
  must(H5Awrite(attribute, H5T_NATIVE_INT, &zero), "H5Awrite");
  H5Aclose(attribute);
  H5Sclose(one);
  step("an attribute");
  for (int i = 0; i < kGroups; ++i) {
    char name[32];
    snprintf(name, sizeof name, "group%d", i);
    H5Gclose(must(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), name));
  }
  step("50 groups");
}

static void write_file(const char* path, hid_t access) {
  const hid_t file = must(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate");
  step("H5Fcreate");
  hid_t data = -1;
  for (int i = 0; i < kSteps; ++i) {
    if (data >= 0) H5Dclose(data);
    data = step_of(file, i, 1);
    write_to(data, together);
    step("H5Dwrite, together");
  }
  write_to(data, together);
  step("H5Dwrite, together, over what is on its way");
  write_to(data, H5P_DEFAULT);
  step("H5Dwrite, alone");
  const hid_t chunked = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t columns = kColumns;
  H5Pset_chunk(chunked, 1, &columns);
  const hid_t chunks =
      must(H5Dcreate2(file, "chunks", H5T_NATIVE_INT, space, H5P_DEFAULT, chunked, H5P_DEFAULT),
           "H5Dcreate2");
  step("H5Dcreate2, chunks that are filled");
  write_to(chunks, together);
  step("H5Dwrite, together");
  H5Dclose(chunks);
  read_from(data, together);
  step("H5Dread, together, of a file that is written");
  must(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
  step("H5Fflush");
  metadata(file, data);
  must(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
  step("H5Fflush");
  H5Dclose(data);
  must(H5Fclose(file), "H5Fclose");
  step("H5Fclose");
}

static void read_file(const char* path, hid_t access) {
  const hid_t file = must(H5Fopen(path, H5F_ACC_RDONLY, access), "H5Fopen");
  step("H5Fopen, for reading");
  for (int i = 0; i < kSteps; ++i) {
    const hid_t data = step_of(file, i, 0);
    read_from(data, together);
    step("H5Dread, together");
    read_from(data, H5P_DEFAULT);
    step("H5Dread, alone");
    H5Dclose(data);
  }
  must(H5Fclose(file), "H5Fclose");
  step("H5Fclose, for reading");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank == 0 && (report = fopen(argv[2], "w")) == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  together = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE);
  const hsize_t all = (hsize_t)kColumns * ranks, mine = kColumns, begin = (hsize_t)kColumns * rank;
  space = H5Screate_simple(1, &all, NULL);
  memory = H5Screate_simple(1, &mine, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &begin, NULL, &mine, NULL);
  for (int i = 0; i < kColumns; ++i) values[i] = rank + i;
  step("(setup)");
  write_file(argv[1], access);
  read_file(argv[1], access);
  if (rank == 0) fclose(report);
  MPI_Finalize();
  return 0;
}
