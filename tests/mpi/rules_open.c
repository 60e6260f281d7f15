/* Programs for run.py, one for each way to have a file open several times at once: <file> <rule>. mpio takes no locks: natively
 * what one rank has written before a barrier is there for all, whatever they opened the file with. Each rule ends with elements that
 * are wrong if they do not wait for one another; that is no matter of luck: what the last rank wrote stays with it (TIDELANE_LINGER).
 *
 * Exits with 1, and says so, if a rank found something else than was written. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hdf5.h>

#include "rank.h"

enum { kPiece = 4096, kElements = 4 * kPiece, kLingerS = 3, kGiveUpS = 100 };

static int ranks, last, wrong;
static const char* name;
static hid_t together;

static hid_t open_on(MPI_Comm communicator, unsigned flags) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, communicator, MPI_INFO_NULL);
  const hid_t file = flags == H5F_ACC_TRUNC ? H5Fcreate(name, flags, H5P_DEFAULT, access)
                                            : H5Fopen(name, flags, access);
  H5Pclose(access);
  return must(file, "opening");
}

static hid_t set_of(hid_t file) { return must(H5Dopen2(file, "set", H5P_DEFAULT), "set"); }

static void put_from(hid_t set, int first, int elements, int value, hid_t transfer) {
  static int values[kElements];
  const hsize_t start = (hsize_t)first, count = (hsize_t)elements;
  const hid_t space = H5Dget_space(set), memory = H5Screate_simple(1, &count, NULL);
  for (int i = 0; i < elements; ++i) values[i] = value;
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
  must(H5Dwrite(set, H5T_NATIVE_INT, memory, space, transfer, values), "writing");
  H5Sclose(memory);
  H5Sclose(space);
}
static void put(hid_t set, int value) { put_from(set, 0, kElements, value, H5P_DEFAULT); }

static void check(hid_t set, int value, hid_t transfer, const char* how) {
  static int values[kElements];
  memset(values, 0, sizeof values);
  must(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, transfer, values), "reading");
  for (int i = 0; i < kElements && !wrong; ++i) {
    if (values[i] == value) continue;
    fprintf(stderr, "wrong: rank %d found %d in element %d for %d, %s\n", rank, values[i], i, value,
            how);
    wrong = 1;
  }
}

static void close_both(hid_t set, hid_t file) {
  must(H5Dclose(set), "closing a dataset");
  must(H5Fclose(file), "closing");
}

/* Each rank has it open on a communicator of its own. Anew for each way: who was awaited once lets nobody wait again. */
static void rule_selfs(void) {
  for (int way = 0; way < 3; ++way) {
    const hid_t file = open_on(MPI_COMM_SELF, H5F_ACC_RDWR), set = set_of(file);
    barrier();
    if (rank == last) put(set, 1 + way);
    barrier();
    if (rank == 0 && way < 2) check(set, 1 + way, way == 0 ? H5P_DEFAULT : together, "its own way");
    if (rank == 0 && way == 2) put(set, 4); /* the last to write is the last to be stored */
    barrier();
    if (way == 2) check(set, 4, H5P_DEFAULT, "what was written over another one's");
    barrier();
    close_both(set, file);
    barrier();
  }
}

/* Who only reads, natively or serially, waits as well. */
static void rule_readers(void) {
  for (int way = 0; way < 3; ++way) {
    hid_t file = H5I_INVALID_HID, set = H5I_INVALID_HID;
    if (rank == 0 && way < 2) {
      file = open_on(MPI_COMM_SELF, H5F_ACC_RDONLY);
      set = set_of(file);
    }
    barrier();
    if (rank == last) {
      file = open_on(MPI_COMM_SELF, H5F_ACC_RDWR);
      put(set = set_of(file), 10 + way);
    }
    barrier();
    if (rank == 0 && way == 2) {
      file = must(H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT), "opening");
      set = set_of(file);
    }
    if (rank == 0) check(set, 10 + way, way == 1 ? together : H5P_DEFAULT, "by who only reads");
    barrier();
    if (file >= 0) close_both(set, file);
    barrier();
  }
}

/* In pieces that HDF5 writes, together. */
static void put_pieces(hid_t set, int value) {
  enum { kFew = 64 };
  static int values[kElements];
  const hsize_t start = (hsize_t)rank * kFew, step = (hsize_t)last * kFew, few = kFew;
  const hsize_t times = kElements / step, count = times * kFew;
  const hid_t space = H5Dget_space(set), memory = H5Screate_simple(1, &count, NULL);
  for (hsize_t i = 0; i < count; ++i) values[i] = value;
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &step, &times, &few);
  must(H5Dwrite(set, H5T_NATIVE_INT, memory, space, together, values), "writing pieces");
  H5Sclose(memory);
  H5Sclose(space);
}

/* All ranks but the last one have it open together: what they do together waits for that one, too. */
static void rule_meeting(void) {
  MPI_Comm communicator;
  const int inside = rank != last;
  MPI_Comm_split(MPI_COMM_WORLD, !inside, rank, &communicator);
  for (int way = 0; way < 3; ++way) {
    const hid_t file = open_on(communicator, H5F_ACC_RDWR), set = set_of(file);
    barrier();
    if (!inside) put(set, 1 + way);
    barrier();
    if (inside && way == 0) check(set, 1, together, "together");
    if (inside && way == 1) put_from(set, rank * kElements / last, kElements / last, 10, together);
    if (inside && way == 2) put_pieces(set, 20);
    barrier();
    if (way > 0) check(set, 10 * way, H5P_DEFAULT, "what was written together over another one's");
    barrier();
    close_both(set, file);
    barrier();
  }
  MPI_Comm_free(&communicator);
}

/* A rank has it open twice. */
static void rule_doubly(void) {
  const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_RDWR), set = set_of(file);
  const hid_t second = rank == 0 ? open_on(MPI_COMM_SELF, H5F_ACC_RDWR) : H5I_INVALID_HID;
  const hid_t its_set = rank == 0 ? set_of(second) : H5I_INVALID_HID;
  barrier();
  if (rank == last) put(set, 1);
  barrier();
  if (rank == 0) check(its_set, 1, H5P_DEFAULT, "through the second one");
  barrier();
  if (rank == last) put(set, 2);
  barrier();
  if (rank == 0) {
    put(its_set, 3);
    check(set, 3, H5P_DEFAULT, "through the first one");
    close_both(its_set, second);
  }
  barrier();
  check(set, 3, H5P_DEFAULT, "after the second one was closed");
  barrier();
  close_both(set, file);
}

/* Who is awaited does not let its bytes linger: nor the first time. */
static void rule_soon(void) {
  for (int time = 0; time < 3; ++time) {
    const hid_t file = open_on(time == 0 ? MPI_COMM_WORLD : MPI_COMM_SELF, H5F_ACC_RDWR);
    const hid_t set = set_of(file);
    barrier();
    if (rank == last) put(set, time);
    barrier();
    const double begin = MPI_Wtime();
    if (rank == 0) check(set, time, H5P_DEFAULT, "soon");
    if (rank == 0 && MPI_Wtime() - begin > kLingerS / 2.) {
      fprintf(stderr, "wrong: rank %d waited for %.3f s\n", rank, MPI_Wtime() - begin);
      wrong = 1;
    }
    barrier();
    close_both(set, file);
    barrier();
  }
}

static const struct {
  const char* name;
  void (*run)(void);
} kRules[] = {{"selfs", rule_selfs},
              {"soon", rule_soon},
              {"readers", rule_readers},
              {"meeting", rule_meeting},
              {"doubly", rule_doubly}};

int main(int argc, char** argv) {
  const hsize_t extent = kElements;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  last = ranks - 1;
  name = argv[1];
  give_up_in(kGiveUpS);
  setenv("TIDELANE_LINGER", rank == last ? "3s" : "0", 1);
  together = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &extent, NULL);
  H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
  const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_TRUNC);
  close_both(H5Dcreate2(file, "set", H5T_NATIVE_INT, space, H5P_DEFAULT, creation, H5P_DEFAULT),
             file);
  barrier();
  for (size_t i = 0; i < sizeof kRules / sizeof *kRules; ++i) {
    if (argc > 2 && strcmp(argv[2], kRules[i].name) == 0) kRules[i].run();
  }
  H5Sclose(space);
  H5Pclose(creation);
  H5Pclose(together);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return wrong;
}
