/* A file that all ranks open for reading only, for run.py: <file> <case>.
 *
 *   same     datasets of each layout, read collectively, independently and with an event set; also what the transfer list says afterwards
 *   several  two datasets in one collective read, and what the transfer list says then
 *   apart    a rank that comes late to collective reads keeps nobody waiting (natively it does)
 *   ahead    steps that follow one another
 *   pieces   collective reads in many small pieces, between which other ranks' lie; some ranks have larger ones
 *   written  somebody writes the file while it is read: through mpio, or past HDF5
 *   unable   one rank cannot take part
 *   block    `same`, in a file that begins with a user block
 *   early    reads with an event set return before slow storage has answered
 *   reopened what all have just written
 *   crowded  where ranks have fewer processors, those that wait for a late one leave it theirs
 *   fails    a rank's reads fail, of which the others hear nothing
 *   failing  a rank's part of collective reads fails
 *   short    the file has been cut short
 *
 * What is printed must be the same natively. Exits with 1, and says so, if a rank found something else than was written. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <hdf5.h>

#include "rank.h"

enum {
  kRows = 64,
  kColumns = 4096,
  kElements = kRows * kColumns,
  kSteps = 8,
  kGiveUpS = 100,
  kSoonGivenUpS = 30
};
enum { kUserBlock = 8192, kReopenings = 40 };
enum { kLateUs = 600000, kSoonUs = 300000, kShortWhileUs = 100000, kCrowdedUs = 60000 };

static int ranks, wrong;
static const char* name;
static hid_t together, memory;
static int* values;

/* Storage that fails for this rank, or is slow: the plugin's reads and MPI-IO's. */
static atomic_int failing, slow;
static int fails(void) {
  if (atomic_load(&slow)) usleep(kLateUs);
  if (!atomic_load(&failing)) return 0;
  errno = EIO;
  return 1;
}
__attribute__((visibility("default"))) ssize_t pread64(int fd, void* to, size_t size, off64_t at) {
  const struct iovec part = {to, size};
  return fails() ? -1 : preadv64(fd, &part, 1, at);
}
__attribute__((visibility("default"))) ssize_t pread(int fd, void* to, size_t size, off_t at) {
  return pread64(fd, to, size, at);
}

static hid_t open_on(MPI_Comm communicator, unsigned flags, int metadata_together) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, communicator, MPI_INFO_NULL);
  if (metadata_together) H5Pset_all_coll_metadata_ops(access, 1);
  const hid_t file = flags == H5F_ACC_TRUNC ? H5Fcreate(name, flags, H5P_DEFAULT, access)
                                            : H5Fopen(name, flags, access);
  H5Pclose(access);
  return must(file, "opening");
}

static int value_of(int set, int element) { return set * 1000003 + element; }

enum { kContiguous, kChunked, kLargeChunks, kDeflated, kCompact, kEmpty, kSets };
static const char* const kNames[] = {"contiguous", "chunked", "large chunks",
                                     "deflated",   "compact", "empty"};

static hid_t creation_of(int set) {
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t small[] = {8, kColumns}, large[] = {kRows, kColumns};
  if (set == kChunked || set == kDeflated || set == kEmpty) H5Pset_chunk(list, 2, small);
  if (set == kLargeChunks) H5Pset_chunk(list, 2, large);
  if (set == kDeflated) H5Pset_deflate(list, 1);
  if (set == kCompact) H5Pset_layout(list, H5D_COMPACT);
  return list;
}

static hsize_t rows_of(int set) { return set == kCompact ? 2 : kRows; }
static hsize_t columns_of(int set) { return set == kCompact ? 64 : kColumns; }

/* Written by one process, without MPI, so that all that is counted are reads. */
static void make(hsize_t user_block) {
  if (rank == 0) {
    const hid_t list = H5Pcreate(H5P_FILE_CREATE);
    if (user_block != 0) H5Pset_userblock(list, user_block);
    const hid_t file = must(H5Fcreate(name, H5F_ACC_TRUNC, list, H5P_DEFAULT), "creating");
    H5Pclose(list);
    for (int set = 0; set < kSets; ++set) {
      const hsize_t extent[] = {rows_of(set), columns_of(set)};
      const hid_t space = H5Screate_simple(2, extent, NULL), creation = creation_of(set);
      const hid_t made = must(
          H5Dcreate2(file, kNames[set], H5T_NATIVE_INT, space, H5P_DEFAULT, creation, H5P_DEFAULT),
          "making a dataset");
      for (int i = 0; i < (int)(extent[0] * extent[1]); ++i) values[i] = value_of(set, i);
      if (set != kEmpty)
        must(H5Dwrite(made, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "writing");
      H5Dclose(made);
      H5Pclose(creation);
      H5Sclose(space);
    }
    const hsize_t extent[] = {kSteps, kElements};
    const hid_t space = H5Screate_simple(2, extent, NULL);
    const hid_t made = must(
        H5Dcreate2(file, "steps", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
        "making a dataset");
    for (int step = 0; step < kSteps; ++step) {
      const hsize_t start[] = {(hsize_t)step, 0}, count[] = {1, kElements};
      const hsize_t all = kElements;
      const hid_t from = H5Screate_simple(1, &all, NULL);
      for (int i = 0; i < kElements; ++i) values[i] = value_of(100 + step, i);
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
      must(H5Dwrite(made, H5T_NATIVE_INT, from, space, H5P_DEFAULT, values), "writing");
      H5Sclose(from);
    }
    H5Dclose(made);
    H5Sclose(space);
    must(H5Fclose(file), "closing");
  }
  barrier();
}

static void differ(int found, int expected, int element, const char* what) {
  if (!wrong)
    fprintf(stderr, "wrong: rank %d found %d in element %d for %d, %s\n", rank, found, element,
            expected, what);
  wrong = 1;
}

/* What the list says, of each rank in turn. */
static void say(hid_t list, const char* what) {
  H5D_mpio_actual_io_mode_t mode = 0;
  H5D_mpio_actual_chunk_opt_mode_t chunks = 0;
  uint32_t local = 0, global = 0, selection = 0, done = 0;
  char text[200];
  H5Pget_mpio_actual_io_mode(list, &mode);
  H5Pget_mpio_actual_chunk_opt_mode(list, &chunks);
  H5Pget_mpio_no_collective_cause(list, &local, &global);
  H5Pget_no_selection_io_cause(list, &selection);
  H5Pget_actual_selection_io_mode(list, &done);
  memset(text, 0, sizeof text);
  snprintf(text, sizeof text, "%s: mode %d chunks %d local %#x global %#x selection %#x by %#x",
           what, (int)mode, (int)chunks, local, global, selection, done);
  if (rank != 0) {
    MPI_Send(text, sizeof text, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    return;
  }
  printf("rank 0, %s\n", text);
  for (int other = 1; other < ranks; ++other) {
    MPI_Recv(text, sizeof text, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("rank %d, %s\n", other, text);
  }
}

enum { kTogether, kAlone, kLater, kAloneLater, kWays };
static const char* const kWayNames[] = {"together", "alone", "together, later", "alone, later"};

/* This rank's rows, which are all, a half, none, or some of several. */
static hid_t select_rows(hid_t set, int which, int part, hsize_t* first, hsize_t* count) {
  const hid_t space = H5Dget_space(set);
  const hsize_t rows = rows_of(which), each = rows / (hsize_t)ranks;
  hsize_t start[2] = {each * (hsize_t)rank, 0}, size[2] = {each, columns_of(which)};
  if (part == 1) start[0] = each * (hsize_t)(ranks - 1 - rank);
  if (part == 2) start[0] = 0, size[0] = rows;
  if (each == 0) start[0] = 0, size[0] = rows;
  *first = start[0], *count = size[0];
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL);
  if (part == 3 && rank == 0) {
    H5Sselect_none(space);
    *count = 0;
  }
  return space;
}

static void read_part(hid_t file, int which, int part, int way, int says) {
  const hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
  if (which == kLargeChunks) H5Pset_chunk_cache(access, 11, 4096, 0.5);
  const hid_t set = must(H5Dopen2(file, kNames[which], access), "opening a dataset");
  const hid_t list = H5Pcreate(H5P_DATASET_XFER);
  const int collective = way == kTogether || way == kLater;
  hsize_t first = 0, count = 0;
  const hid_t space = select_rows(set, which, part, &first, &count);
  const hsize_t columns = columns_of(which), elements = count * columns;
  const hid_t to = H5Screate_simple(1, &elements, NULL);
  if (collective) H5Pset_dxpl_mpio(list, H5FD_MPIO_COLLECTIVE);
  memset(values, 0x55, sizeof *values * kElements);
  if (count == 0) H5Sselect_none(to);
  if (way == kLater || way == kAloneLater) {
    const hid_t waits = H5EScreate();
    size_t left = 0;
    hbool_t failed = 0;
    must(H5Dread_async(set, H5T_NATIVE_INT, to, space, list, values, waits), "reading later");
    must(H5ESwait(waits, H5ES_WAIT_FOREVER, &left, &failed), "waiting");
    if (failed) must(-1, "a read");
    H5ESclose(waits);
  } else {
    must(H5Dread(set, H5T_NATIVE_INT, to, space, list, values), "reading");
  }
  for (hsize_t i = 0; i < elements; ++i) {
    const int expected = which == kEmpty ? 0 : value_of(which, (int)(first * columns + i));
    if (values[i] != expected) differ(values[i], expected, (int)i, kNames[which]);
  }
  H5D_mpio_actual_io_mode_t mode = 0;
  H5Pget_mpio_actual_io_mode(list, &mode);
  if (which == kContiguous && way == kTogether && mode != H5D_MPIO_CONTIGUOUS_COLLECTIVE)
    differ((int)mode, H5D_MPIO_CONTIGUOUS_COLLECTIVE, 0, "what the list says");
  if (says) {
    char what[100];
    snprintf(what, sizeof what, "%s, part %d, %s", kNames[which], part, kWayNames[way]);
    say(list, what);
  }
  H5Sclose(to);
  H5Sclose(space);
  H5Pclose(list);
  H5Pclose(access);
  H5Dclose(set);
}

static void case_same(void) {
  for (int metadata = 0; metadata < 2; ++metadata) {
    const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_RDONLY, metadata);
    for (int which = 0; which < kSets; ++which) {
      for (int part = 0; part < (metadata ? 1 : 4); ++part) {
        /* Natively, ranks that read what has no space wait for those that read nothing of it. */
        for (int way = 0; way < kWays && !(which == kEmpty && part == 3); ++way) {
          read_part(file, which, part, way, way < kLater && !metadata);
        }
      }
    }
    must(H5Fclose(file), "closing");
  }
}

/* Rows of two datasets; with `part` 3 rank 0 has none of the first. */
static void read_two(hid_t file, const int which[2], int part, H5D_selection_io_mode_t selection) {
  const hid_t list = H5Pcopy(together);
  hid_t sets[2], types[2], from[2], to[2];
  hsize_t first[2], count[2];
  void* const into[2] = {values, values + kElements / 2};
  char what[100];
  H5Pset_selection_io(list, selection);
  for (int i = 0; i < 2; ++i) {
    sets[i] = must(H5Dopen2(file, kNames[which[i]], H5P_DEFAULT), "opening a dataset");
    types[i] = H5T_NATIVE_INT;
    from[i] = select_rows(sets[i], which[i], i == 0 ? part : 0, &first[i], &count[i]);
    const hsize_t elements = count[i] * kColumns;
    to[i] = H5Screate_simple(1, &elements, NULL);
    if (count[i] == 0) H5Sselect_none(to[i]);
  }
  memset(values, 0x55, sizeof *values * kElements);
  must(H5Dread_multi(2, sets, types, to, from, list, (void**)into), "reading two");
  snprintf(what, sizeof what, "%s and %s, part %d, selection I/O %d", kNames[which[0]],
           kNames[which[1]], part, (int)selection);
  say(list, what);
  for (int i = 0; i < 2; ++i) {
    for (int e = 0; e < (int)(count[i] * kColumns); ++e) {
      const int found = ((const int*)into[i])[e];
      const int expected = value_of(which[i], (int)first[i] * kColumns + e);
      if (found != expected) differ(found, expected, e, what);
    }
    H5Sclose(to[i]);
    H5Sclose(from[i]);
    must(H5Dclose(sets[i]), "closing a dataset");
  }
  H5Pclose(list);
}

static void case_several(void) {
  const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_RDONLY, 0);
  for (int one = 0; one <= kDeflated; ++one) {
    for (int other = 0; other <= kDeflated; ++other) {
      for (int way = 0; way < 4 && other != one; ++way) {
        const int which[] = {one, other};
        read_two(file, which, way < 2 ? 0 : 3,
                 way % 2 == 0 ? H5D_SELECTION_IO_MODE_DEFAULT : H5D_SELECTION_IO_MODE_OFF);
      }
    }
  }
  must(H5Fclose(file), "closing");
}

/* A row's columns, in the file and in memory. */
typedef struct {
  hid_t file, memory;
} Part;

static Part part_of(hid_t set, int row, int begin, int count) {
  const hsize_t start[] = {(hsize_t)row, (hsize_t)begin}, size[] = {1, (hsize_t)count};
  const Part part = {H5Dget_space(set), H5Screate_simple(1, &size[1], NULL)};
  H5Sselect_hyperslab(part.file, H5S_SELECT_SET, start, NULL, size, NULL);
  return part;
}

static void close_part(Part part) {
  H5Sclose(part.memory);
  H5Sclose(part.file);
}

static void read_step(hid_t set, int step, hid_t list, int first, int count) {
  const Part part = part_of(set, step, first, count);
  memset(values, 0, sizeof *values * (size_t)count);
  must(H5Dread(set, H5T_NATIVE_INT, part.memory, part.file, list, values), "reading a step");
  for (int i = 0; i < count; ++i) {
    const int expected = value_of(100 + step, first + i);
    if (values[i] != expected) differ(values[i], expected, i, "a step");
  }
  close_part(part);
}

/* In the 1st, 2nd, 4th and 8th collective read ranks may meet. */
static void case_apart(void) {
  const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_RDONLY, 0);
  const hid_t set = must(H5Dopen2(file, "steps", H5P_DEFAULT), "steps");
  const int each = kElements / ranks;
  for (int step = 0; step < kSteps; ++step) {
    const int read = step + 1, meet = (read & (read - 1)) == 0;
    barrier();
    if (rank == 0 && !meet) usleep(kLateUs);
    const double begin = MPI_Wtime();
    read_step(set, step, together, each * rank, each);
    const double took = (MPI_Wtime() - begin) * 1e6;
    if (rank != 0 && !meet && took > kSoonUs && !wrong) {
      fprintf(stderr, "wrong: rank %d waited for %.0f us in read %d\n", rank, took, read);
      wrong = 1;
    }
  }
  must(H5Dclose(set), "closing a dataset");
  must(H5Fclose(file), "closing");
}

static double busy_us(void) {
  struct timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

/* The ranks agree in the 2nd and the 4th collective read. */
static void case_crowded(void) {
  const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_RDONLY, 0);
  const hid_t set = must(H5Dopen2(file, "steps", H5P_DEFAULT), "steps");
  const int each = kElements / ranks;
  for (int step = 0; step < 4; ++step) {
    barrier();
    if (rank == 0) usleep(kLateUs);
    const double begin = busy_us();
    read_step(set, step, together, each * rank, each);
    const double took = busy_us() - begin;
    if (rank != 0 && took > kCrowdedUs && !wrong) {
      fprintf(stderr, "wrong: rank %d turned in circles for %.0f us in read %d\n", rank, took,
              step);
      wrong = 1;
    }
  }
  must(H5Dclose(set), "closing a dataset");
  must(H5Fclose(file), "closing");
}

/* Two of those that it has. */
static void leave_two_processors(void) {
  cpu_set_t all, two;
  CPU_ZERO(&two);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++i) {
    if (CPU_ISSET(i, &all)) CPU_SET(i, &two);
  }
  sched_setaffinity(0, sizeof two, &two);
}

static void case_ahead(void) {
  const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_RDONLY, 0);
  const hid_t set = must(H5Dopen2(file, "steps", H5P_DEFAULT), "steps");
  const int each = kElements / ranks;
  for (int step = 0; step < kSteps; ++step) {
    read_step(set, step, together, each * rank, each);
    usleep(kShortWhileUs);
  }
  must(H5Dclose(set), "closing a dataset");
  must(H5Fclose(file), "closing");
}

/* Columns in turn, of four elements each; rank 0 has one large piece in some. */
static void case_pieces(void) {
  const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_RDONLY, 0);
  const hid_t set = must(H5Dopen2(file, kNames[kContiguous], H5P_DEFAULT), "contiguous");
  for (int read = 0; read < 6; ++read) {
    const hid_t space = H5Dget_space(set);
    const hsize_t start[] = {0, 4 * (hsize_t)rank}, stride[] = {1, 4 * (hsize_t)ranks};
    const hsize_t count[] = {kRows, kColumns / (4 * (hsize_t)ranks)}, block[] = {1, 4};
    const hsize_t one_row[] = {1, kColumns}, first[] = {0, 0};
    const int large = read % 2 == 1 && rank == 0;
    const hsize_t elements = large ? kColumns : count[0] * count[1] * block[1];
    const hid_t to = H5Screate_simple(1, &elements, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, large ? first : start, large ? NULL : stride,
                        large ? one_row : count, large ? NULL : block);
    must(H5Dread(set, H5T_NATIVE_INT, to, space, together, values), "reading pieces");
    for (int i = 0; i < (int)elements; ++i) {
      const int in_row = kColumns / ranks, row = i / in_row, at = i % in_row;
      const int column = at / 4 * 4 * ranks + 4 * rank + at % 4;
      const int expected = value_of(kContiguous, large ? i : row * kColumns + column);
      if (values[i] != expected) differ(values[i], expected, i, "pieces");
    }
    H5Sclose(to);
    H5Sclose(space);
  }
  must(H5Dclose(set), "closing a dataset");
  must(H5Fclose(file), "closing");
}

static void check_constant(hid_t set, int value, const char* what) {
  must(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "reading");
  for (int i = 0; i < kElements; ++i) {
    if (values[i] != value) differ(values[i], value, i, what);
  }
}

static void put_constant(hid_t set, int value) {
  for (int i = 0; i < kElements; ++i) values[i] = value;
  must(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "writing");
}

/* The last rank reads; rank 0 writes, in several ways. */
static void case_written(void) {
  const int reads = rank == ranks - 1, writes = rank == 0;
  for (int way = 0; way < 3; ++way) {
    const char* const what[] = {"read first", "written first", "written past HDF5"};
    hid_t file = H5I_INVALID_HID, set = H5I_INVALID_HID;
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == (way == 1) && reads) {
        file = open_on(MPI_COMM_SELF, H5F_ACC_RDONLY, 0);
        set = must(H5Dopen2(file, kNames[kContiguous], H5P_DEFAULT), "contiguous");
        if (way != 1)
          must(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "reading");
      }
      if (turn == (way != 1) && writes && way < 2) {
        file = open_on(MPI_COMM_SELF, H5F_ACC_RDWR, 0);
        set = must(H5Dopen2(file, kNames[kContiguous], H5P_DEFAULT), "contiguous");
      }
      barrier();
    }
    haddr_t address = 0;
    if (way == 2 && reads) {
      address = H5Dget_offset(set);
      MPI_Send(&address, sizeof address, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    int raw = -1;
    if (way == 2 && writes) {
      MPI_Recv(&address, sizeof address, MPI_BYTE, ranks - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      raw = open(name, O_WRONLY);
    }
    for (int time = 1; time <= 5; ++time) {
      const int value = 10 * way + time;
      if (writes && way < 2) put_constant(set, value);
      if (writes && way == 2) {
        for (int i = 0; i < kElements; ++i) values[i] = value;
        if (pwrite64(raw, values, sizeof *values * kElements, (off64_t)address) < 0)
          must(-1, "writing past HDF5");
      }
      barrier();
      if (reads) check_constant(set, value, what[way]);
      barrier();
    }
    if (raw >= 0) close(raw);
    if (file >= 0) {
      must(H5Dclose(set), "closing a dataset");
      must(H5Fclose(file), "closing");
    }
    barrier();
  }
}

static void case_unable(void) {
  const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_RDONLY, 0);
  for (int way = 0; way < kWays; ++way) read_part(file, kContiguous, 0, way, 0);
  must(H5Fclose(file), "closing");
}

/* A rank that fails returns, and so do the others. */
static void case_fails(void) {
  const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_RDONLY, 0);
  const hid_t set = must(H5Dopen2(file, "steps", H5P_DEFAULT), "steps");
  const int each = kElements / ranks;
  for (int step = 0; step < 3; ++step) read_step(set, step, together, each * rank, each);
  const Part part = part_of(set, 7, each * rank, each);
  for (int later = 0; later < 2; ++later) {
    const hid_t waits = H5EScreate();
    size_t left = 0;
    hbool_t failed = 0;
    herr_t result = 0;
    atomic_store(&failing, rank == 1);
    H5E_BEGIN_TRY {
      result = later ? H5Dread_async(set, H5T_NATIVE_INT, part.memory, part.file, H5P_DEFAULT,
                                     values, waits)
                     : H5Dread(set, H5T_NATIVE_INT, part.memory, part.file, H5P_DEFAULT, values);
      H5ESwait(waits, H5ES_WAIT_FOREVER, &left, &failed);
      if (failed) result = -1;
      H5ESclose(waits);
    }
    H5E_END_TRY
    atomic_store(&failing, 0);
    if ((result < 0) != (rank == 1)) differ(result, rank == 1 ? -1 : 0, later, "a read that fails");
  }
  close_part(part);
  barrier();
  for (int step = 3; step < kSteps; ++step) read_step(set, step, together, each * rank, each);
  must(H5Dclose(set), "closing a dataset");
  must(H5Fclose(file), "closing");
}

/* One rank's storage fails in a collective read: in the 4th of the file, in which ranks agree, and in the 5th, with an event set. That
 * rank hears of it, the others have their elements, and so have all in the reads that follow. Natively HDF5 1.14.6 does not come so far: on
 * MPICH the others wait for ever in the next MPI_File_set_view, and OMPIO says that the read has succeeded. */
static void case_failing(void) {
  const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_RDONLY, 0);
  const hid_t set = must(H5Dopen2(file, "steps", H5P_DEFAULT), "steps");
  const int each = kElements / ranks;
  for (int step = 0; step < 3; ++step) read_step(set, step, together, each * rank, each);
  const Part part = part_of(set, 7, each * rank, each);
  for (int later = 0; later < 2; ++later) {
    const hid_t waits = later ? H5EScreate() : H5I_INVALID_HID;
    size_t left = 0;
    hbool_t failed = 0;
    herr_t result = 0;
    memset(values, 0, sizeof *values * (size_t)each);
    atomic_store(&failing, rank == ranks - 1);
    H5E_BEGIN_TRY {
      if (!later) {
        result = H5Dread(set, H5T_NATIVE_INT, part.memory, part.file, together, values);
      } else {
        result =
            H5Dread_async(set, H5T_NATIVE_INT, part.memory, part.file, together, values, waits);
        if (H5ESwait(waits, H5ES_WAIT_FOREVER, &left, &failed) < 0 || failed) result = -1;
        H5ESclose(waits);
      }
    }
    H5E_END_TRY
    atomic_store(&failing, 0);
    if ((result < 0) != (rank == ranks - 1))
      differ(result, rank == ranks - 1 ? -1 : 0, later, "a collective read");
    for (int i = 0; result >= 0 && i < each; ++i) {
      const int expected = value_of(107, each * rank + i);
      if (values[i] != expected) differ(values[i], expected, i, "beside a rank that fails");
    }
  }
  close_part(part);
  for (int step = 3; step < kSteps; ++step) read_step(set, step, together, each * rank, each);
  must(H5Dclose(set), "closing a dataset");
  must(H5Fclose(file), "closing");
}

static void case_early(void) {
  const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_RDONLY, 0);
  const hid_t set = must(H5Dopen2(file, "steps", H5P_DEFAULT), "steps");
  const int each = kElements / ranks;
  /* Which ways storage is read must be known, and the first two collective reads are where ranks agree. */
  for (int step = 0; step < 2; ++step) read_step(set, step, together, each * rank, each);
  for (int way = 0; way < 2; ++way) {
    const int step = 4 + 2 * way; /* not the one that follows, which may have been fetched */
    const Part part = part_of(set, step, each * rank, each);
    const hid_t waits = H5EScreate();
    size_t left = 0;
    hbool_t failed = 0;
    memset(values, 0, sizeof *values * (size_t)each);
    barrier();
    atomic_store(&slow, 1);
    const double begin = MPI_Wtime();
    must(H5Dread_async(set, H5T_NATIVE_INT, part.memory, part.file,
                       way == 0 ? together : H5P_DEFAULT, values, waits),
         "reading later");
    const double returned = (MPI_Wtime() - begin) * 1e6;
    must(H5ESwait(waits, H5ES_WAIT_FOREVER, &left, &failed), "waiting");
    const double took = (MPI_Wtime() - begin) * 1e6;
    atomic_store(&slow, 0);
    if (failed) must(-1, "a read");
    H5ESclose(waits);
    if (returned > kSoonUs) differ((int)returned, kSoonUs, step, "us until a call returned");
    if (took < kLateUs) differ((int)took, kLateUs, step, "us until it was done");
    for (int i = 0; i < each; ++i) {
      const int expected = value_of(100 + step, each * rank + i);
      if (values[i] != expected) differ(values[i], expected, i, "a step that came later");
    }
    close_part(part);
  }
  must(H5Dclose(set), "closing a dataset");
  must(H5Fclose(file), "closing");
}

static void case_short(void) {
  const hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_RDONLY, 0);
  const hid_t set = must(H5Dopen2(file, "steps", H5P_DEFAULT), "steps");
  const haddr_t end =
      H5Dget_offset(set) + sizeof *values * (haddr_t)kElements * (kSteps - 1) + 4000;
  struct stat before;
  const int raw = open(name, O_RDWR);
  if (raw < 0 || fstat(raw, &before) != 0) must(-1, "looking at the file");
  const size_t cut = (size_t)before.st_size - (size_t)end;
  void* const tail = malloc(cut); /* others may lie there, and the file is looked at afterwards */
  if (rank == 0 && pread64(raw, tail, cut, (off_t)end) != (ssize_t)cut)
    must(-1, "reading the tail");
  barrier();
  if (rank == 0 && ftruncate(raw, (off_t)end) != 0) must(-1, "cutting the file short");
  barrier();
  const Part part = part_of(set, kSteps - 1, 0, kElements);
  memset(values, 1, sizeof *values * kElements);
  const herr_t result = H5Dread(set, H5T_NATIVE_INT, part.memory, part.file, together, values);
  unsigned long sum = 0;
  for (int i = 0; i < kElements; ++i) sum = sum * 31 + (unsigned)values[i];
  if (rank == 0) printf("short: %d, %lx\n", result < 0, sum);
  close_part(part);
  must(H5Dclose(set), "closing a dataset");
  must(H5Fclose(file), "closing");
  barrier();
  if (rank == 0 && pwrite64(raw, tail, cut, (off_t)end) != (ssize_t)cut)
    must(-1, "making the file as long again");
  free(tail);
  close(raw);
}

/* What all have written together and closed they read again at once: nobody is left who may write it. */
static void case_reopened(void) {
  const hsize_t all = (hsize_t)ranks * kColumns, mine = kColumns, from = (hsize_t)rank * kColumns;
  for (int round = 0; round < kReopenings; ++round) {
    hid_t file = open_on(MPI_COMM_WORLD, H5F_ACC_TRUNC, 0);
    const hid_t space = H5Screate_simple(1, &all, NULL), part = H5Screate_simple(1, &mine, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &from, NULL, &mine, NULL);
    hid_t set =
        must(H5Dcreate2(file, "set", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
             "making a dataset");
    for (int i = 0; i < kColumns; ++i) values[i] = value_of(round, (int)from + i);
    must(H5Dwrite(set, H5T_NATIVE_INT, part, space, together, values), "writing");
    must(H5Dclose(set), "closing a dataset");
    must(H5Fclose(file), "closing");
    file = open_on(MPI_COMM_WORLD, H5F_ACC_RDONLY, 0);
    set = must(H5Dopen2(file, "set", H5P_DEFAULT), "opening a dataset");
    must(H5Dread(set, H5T_NATIVE_INT, part, space, together, values), "reading");
    for (int i = 0; i < kColumns; ++i) {
      const int expected = value_of(round, (int)from + i);
      if (values[i] != expected) differ(values[i], expected, i, "a file that is opened again");
    }
    must(H5Dclose(set), "closing a dataset");
    must(H5Fclose(file), "closing");
    H5Sclose(part);
    H5Sclose(space);
  }
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kCases[] = {{"same", case_same},       {"apart", case_apart},      {"ahead", case_ahead},
                {"pieces", case_pieces},   {"written", case_written},  {"unable", case_unable},
                {"fails", case_fails},     {"short", case_short},      {"block", case_same},
                {"early", case_early},     {"failing", case_failing},  {"crowded", case_crowded},
                {"several", case_several}, {"reopened", case_reopened}};
  if (argc < 3) return 2;
  if (strcmp(argv[2], "crowded") == 0) leave_two_processors();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  name = argv[1];
  values = malloc(sizeof *values * kElements);
  give_up_in(strcmp(argv[2], "unable") == 0 ? kSoonGivenUpS : kGiveUpS);
  if (strcmp(argv[2], "unable") == 0 && rank == 1 && getenv("HDF5_VOL_CONNECTOR") != NULL)
    setenv("TIDELANE_MODE", "sync", 1);
  together = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE);
  memory = H5I_INVALID_HID;
  make(strcmp(argv[2], "block") == 0 ? kUserBlock : 0);
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; ++i) {
    if (strcmp(argv[2], kCases[i].name) == 0) kCases[i].run();
  }
  H5Pclose(together);
  free(values);
  MPI_Finalize();
  return wrong;
}
