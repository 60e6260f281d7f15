/* Ranks that write one dataset together, each a few pieces of every part of it, between which the other ranks' lie. For run.py:
 *   <file> onward|pausing
 * Storage is slow, for MPI-IO and for lanes: a request costs more than its bytes. A program that goes on at once waits longer for lanes, which store each piece
 * by itself, than for MPI-IO, which joins those of all ranks; one that pauses waits for neither, but in its first step.
 * It pauses for some times as long as a write takes: that is more than lanes need, however busy the machine is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <hdf5.h>

#include "rank.h"

enum {
  kPiece = 32768,
  kPieces = 4,
  kSteps = 6,
  kJoinedUs = 40000,
  kLaneUs = 2000,
  kTimesLonger = 6,
  kLongestUs = 3000000,
  kAlone = 4096,
  kTimes = 8
};

/* MPI-IO's requests, and lanes'. Those are few: were they quick, a machine that is busy would seem a pause. */
__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* bytes, size_t size,
                                                      off_t at) {
  usleep(kJoinedUs);
  return pwrite64(fd, bytes, size, at);
}
static ssize_t late(int fd, const struct iovec* parts, int count, off_t at, unsigned us) {
  typedef ssize_t (*Write)(int, const struct iovec*, int, off_t);
  usleep(us);
  return ((Write)dlsym(RTLD_NEXT, "pwritev64"))(fd, parts, count, at);
}
__attribute__((visibility("default"))) ssize_t pwritev(int fd, const struct iovec* parts, int count,
                                                       off_t at) {
  return late(fd, parts, count, at, kJoinedUs);
}
__attribute__((visibility("default"))) ssize_t pwritev64(int fd, const struct iovec* parts,
                                                         int count, off64_t at) {
  return late(fd, parts, count, at, kLaneUs);
}

/* That storage is slow is known by the time that it counts. */
static void write_alone(hid_t file, int ranks) {
  static int values[kAlone];
  const hsize_t all = (hsize_t)ranks * kTimes * 2 * kAlone, count = kAlone;
  const hid_t space = H5Screate_simple(1, &all, NULL), memory = H5Screate_simple(1, &count, NULL);
  const hid_t set =
      must(H5Dcreate2(file, "alone", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
           "alone");
  for (int i = 0; i < kTimes; ++i) {
    const hsize_t start = (hsize_t)(rank * kTimes + i) * 2 * kAlone;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
    must(H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values), "writing alone");
  }
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(set);
  must(H5Fflush(file, H5F_SCOPE_LOCAL), "flushing");
}

/* Returns what the write took, in seconds. */
static double write_step(hid_t file, hid_t together, int ranks, int step) {
  static int values[kPieces * kPiece];
  char name[16];
  const hsize_t all[] = {kPieces, (hsize_t)ranks * kPiece}, start[] = {0, (hsize_t)rank * kPiece},
                count[] = {kPieces, kPiece};
  const hid_t space = H5Screate_simple(2, all, NULL), memory = H5Screate_simple(2, count, NULL);
  snprintf(name, sizeof name, "step%d", step);
  const hid_t set = must(
      H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), name);
  for (int i = 0; i < kPieces * kPiece; ++i) values[i] = (step * ranks + rank) * 1000000 + i;
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
  const double begin = MPI_Wtime();
  must(H5Dwrite(set, H5T_NATIVE_INT, memory, space, together, values), "writing");
  const double seconds = MPI_Wtime() - begin;
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(set);
  return seconds;
}

int main(int argc, char** argv) {
  int ranks = 0;
  double longest = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int pauses = argc > 2 && strcmp(argv[2], "pausing") == 0;
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS), together = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE);
  const hid_t file = must(H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access), "creating");
  write_alone(file, ranks);
  for (int step = 0; step < kSteps; ++step) {
    const double seconds = write_step(file, together, ranks, step);
    if (seconds > longest) longest = seconds;
    if (!pauses) continue;
    MPI_Allreduce(MPI_IN_PLACE, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const double us = kTimesLonger * longest * 1e6;
    usleep((useconds_t)(us < kLongestUs ? us : kLongestUs));
  }
  must(H5Fclose(file), "closing");
  H5Pclose(together);
  H5Pclose(access);
  MPI_Finalize();
  return 0;
}
