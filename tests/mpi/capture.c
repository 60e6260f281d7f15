/* What ranks write and read together and alone, for run.py: <file> <collective|alone>.
 *
 * Prints what HDF5 says of each collective transfer. Exits with 1 if a rank read something else than was written. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

enum { kRows = 64, kColumns = 1024, kElements = kRows * kColumns };

static int rank, ranks, wrong;
static int values[kElements], found[kElements];

static void check(herr_t result, const char* what) {
  if (result >= 0) return;
  fprintf(stderr, "rank %d: %s failed\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static hid_t rows_of(hid_t space, int who) {
  hsize_t start[2] = {(hsize_t)who * kRows, 0}, count[2] = {kRows, kColumns};
  const hid_t rows = H5Scopy(space);
  check(H5Sselect_hyperslab(rows, H5S_SELECT_SET, start, NULL, count, NULL), "selecting");
  return rows;
}

static void fill(int who, int step) {
  for (int i = 0; i < kElements; ++i) values[i] = step * 100000000 + who * kElements + i;
}

static void write_rows(hid_t dataset, hid_t memory, hid_t space, hid_t transfer, int who,
                       int step) {
  const hid_t rows = rows_of(space, who);
  fill(rank, step);
  check(H5Dwrite(dataset, H5T_NATIVE_INT, memory, rows, transfer, values), "H5Dwrite");
  memset(values, 0, sizeof values); /* the buffer is the program's again */
  H5Sclose(rows);
}

/* The rows of `who`, which `writer` wrote. */
static void read_rows(hid_t dataset, hid_t memory, hid_t space, hid_t transfer, int who, int writer,
                      int step, const char* what) {
  const hid_t rows = rows_of(space, who);
  memset(found, 0, sizeof found);
  check(H5Dread(dataset, H5T_NATIVE_INT, memory, rows, transfer, found), "H5Dread");
  fill(writer, step);
  if (memcmp(values, found, sizeof found) != 0) {
    fprintf(stderr, "rank %d: %s: other elements than were written\n", rank, what);
    wrong = 1;
  }
  H5Sclose(rows);
}

static void report(hid_t transfer) {
  H5D_mpio_actual_io_mode_t mode;
  H5D_mpio_actual_chunk_opt_mode_t chunks;
  uint32_t local = 0, global = 0, selection = 0;
  H5Pget_mpio_actual_io_mode(transfer, &mode);
  H5Pget_mpio_actual_chunk_opt_mode(transfer, &chunks);
  H5Pget_mpio_no_collective_cause(transfer, &local, &global);
  H5Pget_no_selection_io_cause(transfer, &selection);
  if (rank == 0)
    printf("mode %d chunks %d local %u global %u selection %u\n", (int)mode, (int)chunks, local,
           global, selection);
}

static void use(hid_t file, const char* name, hid_t creation, hid_t transfer) {
  hsize_t extent[2] = {(hsize_t)ranks * kRows, kColumns}, part[2] = {kRows, kColumns};
  const hid_t space = H5Screate_simple(2, extent, NULL), memory = H5Screate_simple(2, part, NULL);
  const hid_t dataset =
      H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  write_rows(dataset, memory, space, transfer, rank, 1);
  report(transfer);
  read_rows(dataset, memory, space, H5P_DEFAULT, rank, rank, 1, "own bytes");
  MPI_Barrier(MPI_COMM_WORLD);
  read_rows(dataset, memory, space, H5P_DEFAULT, next, next, 1, "another rank's after a barrier");
  MPI_Barrier(MPI_COMM_WORLD);
  write_rows(dataset, memory, space, transfer, next, 2); /* over what another rank wrote */
  MPI_Barrier(MPI_COMM_WORLD);
  read_rows(dataset, memory, space, transfer, rank, last, 2,
            "own rows, overwritten by another rank");
  check(H5Fflush(file, H5F_SCOPE_LOCAL), "H5Fflush");
  write_rows(dataset, memory, space, transfer, rank, 3);
  check(H5Dclose(dataset), "H5Dclose");
  H5Sclose(memory);
  H5Sclose(space);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
  const hid_t chunked = H5Pcreate(H5P_DATASET_CREATE);
  hsize_t chunk[2] = {16, 256};
  H5Pset_chunk(chunked, 2, chunk);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  if (argc > 2 && strcmp(argv[2], "collective") == 0)
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  const hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
  use(file, "contiguous", H5P_DEFAULT, transfer);
  use(file, "chunked", chunked, transfer);
  check(H5Fclose(file), "H5Fclose");
  H5Pclose(chunked);
  H5Pclose(transfer);
  H5Pclose(access);
  MPI_Finalize();
  return wrong;
}
