/* Metadata of a file that all ranks open for reading only, for run.py: <file> <case>.
 *
 *   walk      a cold walk of many objects: all ranks together ask storage for what one alone does
 *   together  the same with collective metadata reads
 *   changed   somebody changes an object past HDF5, which only one rank has read
 *   held      a rank does not come back from a read that the others could wait for
 *
 * What is printed must be the same natively. Exits with 1, and says so, if a rank found something else than was written, or asked too
 * often, which is looked at with the plugin only. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <hdf5.h>

#include "rank.h"

enum { kObjects = 2000, kGroups = 20, kRounds = 6, kGiveUpS = 100, kSoonGivenUpS = 20 };
enum { kSettleUs = 60000, kPollUs = 1000 };

static int ranks, wrong;
static const char* name;

/* Storage that counts the reads of one file, MPI-IO's and the plugin's; one of them may take until all other ranks are done. */
static atomic_int requests, holding;
static dev_t device;
static ino_t inode;

static void asked(int fd) {
  struct stat found;
  if (inode == 0 || fstat(fd, &found) != 0 || found.st_ino != inode || found.st_dev != device)
    return;
  atomic_fetch_add(&requests, 1);
  if (!atomic_exchange(&holding, 0)) return;
  for (int other = 1; other < ranks; ++other) {
    int there = 0;
    while (!there) {
      MPI_Iprobe(other, 1, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
      if (!there) usleep(kPollUs);
    }
    MPI_Recv(NULL, 0, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}
__attribute__((visibility("default"))) ssize_t pread64(int fd, void* to, size_t size, off64_t at) {
  const struct iovec part = {to, size};
  asked(fd);
  return preadv2(fd, &part, 1, at, 0);
}
__attribute__((visibility("default"))) ssize_t pread(int fd, void* to, size_t size, off_t at) {
  return pread64(fd, to, size, at);
}

static hid_t open_on(MPI_Comm communicator, int metadata_together) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, communicator, MPI_INFO_NULL);
  if (metadata_together) H5Pset_all_coll_metadata_ops(access, 1);
  const hid_t file = must(H5Fopen(name, H5F_ACC_RDONLY, access), "opening");
  H5Pclose(access);
  return file;
}

static int value_of(int object) { return 0x5a000000 + object * 4099; }

static void name_of(int object, char text[60]) {
  snprintf(text, 60, "/group %d/object %d", object * kGroups / kObjects, object);
}

/* By one process, without MPI. Small objects lie in their headers. */
static void make(void) {
  if (rank == 0) {
    const hid_t file = must(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "creating");
    const hid_t space = H5Screate(H5S_SCALAR), compact = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t size = 1 << 18;
    const hid_t many = H5Screate_simple(1, &size, NULL);
    H5Pset_layout(compact, H5D_COMPACT);
    for (int group = 0; group < kGroups; ++group) {
      char text[60];
      snprintf(text, sizeof text, "/group %d", group);
      H5Gclose(must(H5Gcreate2(file, text, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "a group"));
    }
    for (int object = 0; object < kObjects; ++object) {
      const int value = value_of(object);
      char text[60];
      name_of(object, text);
      const hid_t set = must(
          H5Dcreate2(file, text, H5T_NATIVE_INT, space, H5P_DEFAULT, compact, H5P_DEFAULT), text);
      must(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value), "writing");
      H5Dclose(set);
    }
    /* Large enough that its write is deferred on any storage: run.py looks at that. */
    int* const values = calloc(size, sizeof *values);
    const hid_t large =
        must(H5Dcreate2(file, "large", H5T_NATIVE_INT, many, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
             "a dataset");
    must(H5Dwrite(large, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "writing");
    free(values);
    H5Dclose(large);
    H5Sclose(many);
    H5Pclose(compact);
    H5Sclose(space);
    must(H5Fclose(file), "closing");
  }
  barrier();
  struct stat found;
  if (stat(name, &found) != 0) must(-1, "looking at the file");
  device = found.st_dev, inode = found.st_ino;
  usleep(kSettleUs);
}

static void check(hid_t file, int object, int expected) {
  char text[60];
  int value = 0;
  name_of(object, text);
  const hid_t set = must(H5Dopen2(file, text, H5P_DEFAULT), text);
  must(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value), "reading");
  must(H5Dclose(set), "closing a dataset");
  if (value != expected && !wrong) {
    fprintf(stderr, "wrong: rank %d found %#x for %#x in object %d\n", rank, value, expected,
            object);
    wrong = 1;
  }
}

static void walk(hid_t file, int begin, int end) {
  for (int object = begin; object < end; ++object) check(file, object, value_of(object));
}

/* Of a cold walk, on all ranks of the communicator. */
static int requests_of_walk(MPI_Comm communicator, int metadata_together) {
  const hid_t file = open_on(communicator, metadata_together);
  MPI_Barrier(communicator);
  int all = 0, mine = -atomic_load(&requests);
  walk(file, 0, kObjects);
  mine += atomic_load(&requests);
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, communicator);
  must(H5Fclose(file), "closing");
  return all;
}

/* Ranks that are kept from their cores wait for one another in vain, so one of several walks decides. */
static void case_walk(void) {
  int alone = 0, all = 0;
  if (rank == 0) alone = requests_of_walk(MPI_COMM_SELF, 0);
  MPI_Bcast(&alone, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const int natively = getenv("HDF5_VOL_CONNECTOR") == NULL, most = alone + alone / 10;
  for (int round = 0; round < (natively ? 1 : kRounds); ++round) {
    const int once = requests_of_walk(MPI_COMM_WORLD, 0);
    if (round == 0 || once < all) all = once;
    if (all <= most) break;
  }
  if (rank == 0 && getenv("METADATA_SAYS") != NULL)
    fprintf(stderr, "requests: %d of %d ranks, %d of one\n", all, ranks, alone);
  if (natively || all <= most) return;
  if (rank == 0) fprintf(stderr, "wrong: rank 0 and others make %d requests for %d\n", all, alone);
  wrong = 1;
}

static void case_together(void) {
  const int all = requests_of_walk(MPI_COMM_WORLD, 1);
  if (rank == 0 && all == 0 && getenv("HDF5_VOL_CONNECTOR") != NULL) must(-1, "counting requests");
}

static void change(int object, int to) {
  const int from = value_of(object);
  struct stat found;
  const int raw = open(name, O_RDWR);
  if (raw < 0 || fstat(raw, &found) != 0) must(-1, "looking at the file");
  char* const bytes = malloc((size_t)found.st_size);
  if (pread(raw, bytes, (size_t)found.st_size, 0) != found.st_size) must(-1, "reading the file");
  char* const at = memmem(bytes, (size_t)found.st_size, &from, sizeof from);
  if (at == NULL || pwrite(raw, &to, sizeof to, at - bytes) != sizeof to)
    must(-1, "changing the file");
  free(bytes);
  close(raw);
}

/* All have what they share; of the second half rank 0 alone knows. */
static void case_changed(void) {
  static const int kChanged[] = {1200, 1999};
  const hid_t file = open_on(MPI_COMM_WORLD, 0);
  walk(file, 0, kObjects / 2);
  barrier();
  if (rank == 0) walk(file, kObjects / 2, kObjects);
  barrier();
  for (int i = 0; i < 2; ++i) {
    if (rank == 0) change(kChanged[i], -kChanged[i]);
    barrier();
    if (rank != 0) check(file, kChanged[i], -kChanged[i]);
    barrier();
  }
  must(H5Fclose(file), "closing");
}

static void case_held(void) {
  const hid_t file = open_on(MPI_COMM_WORLD, 0);
  barrier();
  atomic_store(&holding, rank == 0);
  walk(file, 0, kObjects);
  if (rank != 0) MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD);
  must(H5Fclose(file), "closing");
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  name = argv[1];
  give_up_in(strcmp(argv[2], "held") == 0 ? kSoonGivenUpS : kGiveUpS);
  make();
  if (strcmp(argv[2], "walk") == 0) case_walk();
  if (strcmp(argv[2], "together") == 0) case_together();
  if (strcmp(argv[2], "changed") == 0) case_changed();
  if (strcmp(argv[2], "held") == 0) case_held();
  MPI_Finalize();
  return wrong;
}
