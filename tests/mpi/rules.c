/* One program for each rule between ranks, for run.py: <file> <rule>. Each ends with elements that are wrong if ranks do not
 * meet where the rule says so. That it goes wrong then is no matter of luck: bytes that rank 1 wrote stay with it (TIDELANE_LINGER),
 * and what MPI-IO writes back takes a while (pwrite below), so that it is stored last.
 *
 * Exits with 1, and says so, if a rank found something else than was written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <hdf5.h>

#include "late_storage.h"
#include "rank.h"

enum { kPiece = 4096, kPieces = 6, kShortWhileUs = 100000 };

static int wrong;
static hid_t file, together;
static atomic_int syncs;
__attribute__((visibility("default"))) int fsync(int fd) {
  atomic_fetch_add(&syncs, 1);
  return fdatasync(fd);
}

/* The plugin's lanes, which a system may refuse. */
static atomic_int refusing;
__attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                          const pthread_attr_t* attributes,
                                                          void* (*run)(void*), void* argument) {
  typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  const Create create = (Create)dlsym(RTLD_NEXT, "pthread_create");
  return atomic_load(&refusing) ? EAGAIN : create(thread, attributes, run, argument);
}

static void open_file(const char* name, int create) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  file = create ? H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                : H5Fopen(name, H5F_ACC_RDWR, access);
  must(file, "opening");
  H5Pclose(access);
}

/* A dataset of so many pieces, in a place of its own as soon as it is made; in chunks of a piece if it may grow. Without a
 * name nothing links to it. */
static hid_t make(const char* name, int pieces, int grows, int fills) {
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  hsize_t extent = (hsize_t)pieces * kPiece, most = H5S_UNLIMITED, chunk = kPiece;
  const hid_t space = H5Screate_simple(1, &extent, grows ? &most : NULL);
  H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
  if (grows) H5Pset_chunk(creation, 1, &chunk);
  if (!fills) H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
  const hid_t set =
      name == NULL
          ? H5Dcreate_anon(file, H5T_NATIVE_INT, space, creation, H5P_DEFAULT)
          : H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  must(set, name == NULL ? "making a dataset" : name);
  H5Sclose(space);
  H5Pclose(creation);
  return set;
}

/* A dataset like that, of one piece, compressed. */
static hid_t make_filtered(hid_t where, const char* name) {
  const hsize_t extent = kPiece, chunk = kPiece;
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), access = H5Pcreate(H5P_DATASET_ACCESS),
              space = H5Screate_simple(1, &extent, NULL);
  H5Pset_chunk(creation, 1, &chunk);
  H5Pset_deflate(creation, 1);
  H5Pset_chunk_cache(access, 0, 0, 1);
  const hid_t set =
      must(H5Dcreate2(where, name, H5T_NATIVE_INT, space, H5P_DEFAULT, creation, access), name);
  H5Sclose(space);
  H5Pclose(access);
  H5Pclose(creation);
  return set;
}

/* All ranks call it; `who` writes `value` into the first elements. */
static void write_by(int who, hid_t set, int value, int elements) {
  static int values[kPieces * kPiece];
  hsize_t start = 0, count = (hsize_t)elements;
  const hid_t space = H5Dget_space(set), memory = H5Screate_simple(1, &count, NULL);
  for (int i = 0; i < elements; ++i) values[i] = value;
  if (rank == who) {
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
  } else {
    H5Sselect_none(space);
    H5Sselect_none(memory);
  }
  must(H5Dwrite(set, H5T_NATIVE_INT, memory, space, together, values), "writing");
  H5Sclose(memory);
  H5Sclose(space);
}

static void check(const char* name, int value, int elements) {
  static int values[kPieces * kPiece];
  hsize_t start = 0, count = (hsize_t)elements;
  const hid_t set = must(H5Dopen2(file, name, H5P_DEFAULT), name), space = H5Dget_space(set);
  const hid_t memory = H5Screate_simple(1, &count, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
  must(H5Dread(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values), "reading");
  for (int i = 0; i < elements && !wrong; ++i) {
    if (values[i] == value) continue;
    fprintf(stderr, "wrong: rank %d found %d in element %d of %s\n", rank, values[i], i, name);
    wrong = 1;
  }
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(set);
}

static void reopen(const char* name) {
  must(H5Fclose(file), "closing");
  open_file(name, 0);
}

/* Space that is given back is another dataset's next: what was written to the first one must not come after. */
static void reuse(const char* name, hid_t set, hid_t keeps, const char* link) {
  const hid_t grows = make("grows", 0, 1, 0);
  const haddr_t was = rank == 0 ? H5Dget_offset(set) : 0;
  hsize_t more = 2 * kPiece, first = 0, size;
  haddr_t now = 0;
  unsigned mask;
  write_by(1, set, 1, 2 * kPiece);
  H5Dclose(set);
  if (keeps != H5I_INVALID_HID) must(H5Oclose(keeps), "closing what is left");
  if (link != NULL) must(H5Ldelete(file, link, H5P_DEFAULT), "deleting");
  must(H5Dset_extent(grows, &more), "extending");
  if (rank == 0) H5Dget_chunk_info_by_coord(grows, &first, &mask, &now, &size);
  if (now < was || now > was + kPiece * sizeof(int)) must(-1, "giving the same space again");
  write_by(0, grows, 2, 2 * kPiece);
  usleep(kShortWhileUs);
  H5Dclose(grows);
  reopen(name);
  check("grows", 2, 2 * kPiece);
}

static void rule_free(const char* name) {
  reuse(name, make("set", 2, 0, 0), H5I_INVALID_HID, "set");
}

/* It never had a name. */
static void rule_anonymous(const char* name) {
  reuse(name, make(NULL, 2, 0, 0), H5I_INVALID_HID, NULL);
}

/* A group that nothing links to any more takes with it what is in it. */
static void rule_group(const char* name) {
  const hid_t group = must(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "g");
  const hid_t set = make("g/set", 2, 0, 0);
  must(H5Ldelete(file, "g", H5P_DEFAULT), "deleting");
  reuse(name, set, group, NULL);
}

/* Closes are each rank's own: of what nothing links to as well, opened by one rank alone, or twice. */
static void rule_twice(const char* name) {
  hid_t set = make("set", 1, 0, 0), again = H5I_INVALID_HID, group = H5I_INVALID_HID;
  const hid_t keep = make("keep", 1, 0, 0), none = make(NULL, 1, 0, 0);
  must(H5Gclose(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)), "g");
  if (rank == 0) {
    again = must(H5Dopen2(file, "set", H5P_DEFAULT), "opening again");
    group = must(H5Gopen2(file, "g", H5P_DEFAULT), "opening alone");
  }
  must(H5Ldelete(file, "set", H5P_DEFAULT), "deleting");
  must(H5Ldelete(file, "g", H5P_DEFAULT), "deleting");
  write_by(1, set, 1, kPiece);
  write_by(1, none, 1, kPiece);
  give_up_in(20);
  if (rank == 0) {
    must(H5Dclose(again), "closing again");
    must(H5Gclose(group), "closing alone");
    must(H5Dclose(none), "closing before");
  }
  write_by(1, keep, 2, kPiece);
  if (rank == 1) must(H5Dclose(none), "closing after");
  must(H5Dclose(set), "closing");
  set = make("other", 1, 0, 0);
  write_by(1, set, 2, kPiece);
  H5Dclose(set);
  H5Dclose(keep);
  reopen(name);
  check("other", 2, kPiece);
  check("keep", 2, kPiece);
}

/* Every rank rewrites the chunk at the new edge: not without what another rank wrote there. */
static void rule_shrink(const char* name) {
  const hid_t set = make("set", 2, 1, 1);
  hsize_t less = kPiece / 2;
  write_by(1, set, 1, kPiece);
  rank_0_is_last(1, rank);
  must(H5Dset_extent(set, &less), "shrinking");
  H5Dclose(set); /* the chunk may have stayed in a cache until now */
  rank_0_is_last(0, rank);
  reopen(name);
  check("set", 1, kPiece / 2);
}

/* Every rank writes the copy. */
static void rule_copy(const char* name) {
  const hid_t set = make("set", 2, 0, 0);
  write_by(0, set, 1, 2 * kPiece);
  must(H5Fflush(file, H5F_SCOPE_LOCAL), "flushing");
  write_by(1, set, 2, 2 * kPiece);
  rank_0_is_last(1, rank);
  must(H5Ocopy(file, "set", file, "copy", H5P_DEFAULT, H5P_DEFAULT), "copying");
  rank_0_is_last(0, rank);
  H5Dclose(set);
  reopen(name);
  check("copy", 2, 2 * kPiece);
}

/* New chunks go where datasets were deleted; MPI-IO reads and writes back what lies between. */
static void rule_fill(const char* name) {
  static const char* const names[] = {"d0", "a0", "d1", "d2", "a1", "d3"};
  hsize_t more = 5 * kPiece;
  hid_t sets[6];
  const hid_t grows = make("grows", 1, 1, 1);
  for (int i = 0; i < 6; ++i) sets[i] = make(names[i], 1, 0, 0);
  for (int i = 0; i < 6; ++i) {
    if (names[i][0] == 'a') continue;
    H5Dclose(sets[i]);
    must(H5Ldelete(file, names[i], H5P_DEFAULT), "deleting");
  }
  write_by(1, sets[1], 1, kPiece);
  write_by(1, sets[4], 1, kPiece);
  atomic_store(&holding, 1);
  must(H5Dset_extent(grows, &more), "extending");
  atomic_store(&holding, 0);
  H5Dclose(grows);
  H5Dclose(sets[1]);
  H5Dclose(sets[4]);
  reopen(name);
  check("a0", 1, kPiece);
  check("a1", 1, kPiece);
  check("grows", 0, 5 * kPiece);
}

/* Who reads in atomic mode sees all that was written before it. */
static void rule_atomic(const char* name) {
  const hid_t set = make("set", 1, 0, 0);
  (void)name;
  write_by(1, set, 1, kPiece);
  must(H5Fset_mpi_atomicity(file, 1), "turning to atomic mode");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) check("set", 1, kPiece);
  MPI_Barrier(MPI_COMM_WORLD);
  H5Dclose(set);
}

/* A rank that cannot store its bytes: nobody's flush and close succeed, and all can try again. */
static void rule_close(const char* name) {
  struct rlimit limit, none;
  const hid_t set = make("set", 2, 0, 0);
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &limit);
  none = limit;
  none.rlim_cur = kPiece * sizeof(int) + 4096; /* HDF5 itself can go on: it writes before that */
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) setrlimit(RLIMIT_FSIZE, &none);
  write_by(1, set, 1, 2 * kPiece);
  H5Dclose(set);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  const int flushed = H5Fflush(file, H5F_SCOPE_LOCAL) >= 0, closed = H5Fclose(file) >= 0;
  if (flushed || closed) {
    fprintf(stderr, "wrong: rank %d: flushed %d, closed %d\n", rank, flushed, closed);
    usleep(kShortWhileUs); /* mpirun passes it on */
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  setrlimit(RLIMIT_FSIZE, &limit);
  MPI_Barrier(MPI_COMM_WORLD);
  reopen(name);
  check("set", 1, 2 * kPiece);
}

/* Rank 0 writes every other piece of a few elements: too small to be deferred. */
static void write_small(hid_t set, int value) {
  enum { kFew = 64, kTimes = 32 };
  static int values[kFew * kTimes];
  const hsize_t start = 0, step = 2 * kFew, times = kTimes, few = kFew, count = kFew * kTimes;
  const hid_t space = H5Dget_space(set), memory = H5Screate_simple(1, &count, NULL);
  for (int i = 0; i < kFew * kTimes; ++i) values[i] = value;
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &step, &times, &few);
  if (rank != 0) {
    H5Sselect_none(space);
    H5Sselect_none(memory);
  }
  must(H5Dwrite(set, H5T_NATIVE_INT, memory, space, together, values), "writing");
  H5Sclose(memory);
  H5Sclose(space);
}

/* After some writes that all left to HDF5 the ranks do not ask one another: who wrote alone meanwhile is not overtaken. */
static void rule_backoff(const char* name) {
  enum { kAgreed = 10 }; /* 8 on which they ask, one without asking, one more */
  const hsize_t start = 0, count = 64;
  const hid_t set = make("set", 1, 0, 1), space = H5Dget_space(set),
              memory = H5Screate_simple(1, &count, NULL);
  int values[64];
  for (int i = 0; i < 64; ++i) values[i] = 5;
  for (int value = 1; value <= kAgreed; ++value) write_small(set, value);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
  if (rank == 1)
    must(H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values), "writing alone");
  write_small(set, kAgreed + 1);
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(set);
  reopen(name);
  check("set", kAgreed + 1, 64);
}

/* Each rank may name a dataset of its own in one collective write. */
static void rule_different(const char* name) {
  static int values[2 * kPiece];
  const hid_t sets[] = {make("a", 2, 0, 0), make("b", 1, 0, 0)};
  give_up_in(30);
  for (int time = 0; time < 2; ++time) { /* rank 1 writes first */
    const hid_t set = sets[rank == 0 ? 1 - time : time];
    hsize_t start = 0, count = rank == 1 - time ? kPiece : 0;
    const hid_t space = H5Dget_space(set), memory = H5Screate_simple(1, &count, NULL);
    for (int i = 0; i < kPiece; ++i) values[i] = 1 + time;
    if (count == 0) H5Sselect_none(space);
    if (count != 0) H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
    must(H5Dwrite(set, H5T_NATIVE_INT, memory, space, together, values), "writing");
    H5Sclose(memory);
    H5Sclose(space);
  }
  usleep(kShortWhileUs);                  /* rank 0's are in the file by then */
  for (int time = 0; time < 30; ++time) { /* in small pieces */
    const hid_t set = sets[rank == 1 && time % 2 == 0];
    hsize_t start = (hsize_t)rank, step = 8, count = kPiece / 8;
    const hid_t space = H5Dget_space(set), memory = H5Screate_simple(1, &count, NULL);
    for (hsize_t i = 0; i < count; ++i) values[i] = 100 * rank + time;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &step, &count, NULL);
    must(H5Dwrite(set, H5T_NATIVE_INT, memory, space, together, values), "writing");
    memset(values, 0, sizeof values);
    must(H5Dread(set, H5T_NATIVE_INT, memory, space, together, values), "reading");
    for (hsize_t i = 0; i < count && !wrong; ++i) {
      if (values[i] == 100 * rank + time) continue;
      fprintf(stderr, "wrong: rank %d found %d at time %d\n", rank, values[i], time);
      wrong = 1;
    }
    H5Sclose(memory);
    H5Sclose(space);
  }
  H5Dclose(sets[0]);
  H5Dclose(sets[1]);
  reopen(name);
  const hid_t set = must(H5Dopen2(file, "a", H5P_DEFAULT), "a");
  must(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "reading");
  if (values[2] != 2) {
    fprintf(stderr, "wrong: rank %d found %d, which was overwritten\n", rank, values[2]);
    wrong = 1;
  }
  H5Dclose(set);
}

/* Who is told where elements are finds there what another rank wrote. */
static void rule_address(const char* name) {
  const hid_t set = make("set", 2, 0, 0);
  write_by(1, set, 7, 2 * kPiece);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    int last = 0;
    const off_t at = (off_t)H5Dget_offset(set) + (2 * kPiece - 1) * (off_t)sizeof last;
    FILE* const bytes = fopen(name, "rb");
    if (fseeko(bytes, at, SEEK_SET) != 0 || fread(&last, sizeof last, 1, bytes) != 1) last = -1;
    if (last != 7) fprintf(stderr, "wrong: rank 0 found %d\n", last), wrong = 1;
    fclose(bytes);
  }
  H5Dclose(set);
}

/* Fields that a rank does not write stay as another one wrote them just before. */
static void rule_fields(const char* name) {
  typedef struct {
    int a, b;
  } Pair;
  static Pair pairs[kPiece];
  static int fields[2 * kPiece];
  const hsize_t extent = kPiece, times = 2;
  const hid_t pair = H5Tcreate(H5T_COMPOUND, sizeof(Pair)),
              b = H5Tcreate(H5T_COMPOUND, sizeof(int)), space = H5Screate_simple(1, &extent, NULL);
  H5Tinsert(pair, "a", 0, H5T_NATIVE_INT);
  H5Tinsert(pair, "b", sizeof(int), H5T_NATIVE_INT);
  H5Tinsert(b, "b", 0, H5T_NATIVE_INT);
  for (int i = 0; i < kPiece; ++i) pairs[i].a = pairs[i].b = 1;
  for (int i = 0; i < 2 * kPiece; ++i) fields[i] = 2;
  for (int nested = 0; nested < 2; ++nested) {
    /* Two of them make an element of the second dataset. */
    const hsize_t elements = nested ? kPiece / 2 : kPiece;
    const hid_t in_file = nested ? H5Tarray_create2(pair, 1, &times) : H5Tcopy(pair),
                in_memory = nested ? H5Tarray_create2(b, 1, &times) : H5Tcopy(b),
                all = H5Screate_simple(1, &elements, NULL);
    const hid_t set = must(H5Dcreate2(file, nested ? "pairs of pairs" : "pairs", in_file, all,
                                      H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                           "pairs");
    if (rank == 1) must(H5Dwrite(set, in_file, H5S_ALL, H5S_ALL, H5P_DEFAULT, pairs), "writing");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) must(H5Dwrite(set, in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, fields), "fields");
    MPI_Barrier(MPI_COMM_WORLD);
    must(H5Fflush(file, H5F_SCOPE_LOCAL), "flushing");
    must(H5Dread(set, in_file, H5S_ALL, H5S_ALL, H5P_DEFAULT, pairs), "reading");
    for (int i = 0; i < kPiece && !wrong; ++i) {
      if (pairs[i].a == 1 && pairs[i].b == 2) continue;
      fprintf(stderr, "wrong: rank %d found %d, %d in pair %d\n", rank, pairs[i].a, pairs[i].b, i);
      wrong = 1;
    }
    for (int i = 0; i < kPiece; ++i) pairs[i].a = pairs[i].b = 1;
    H5Dclose(set);
    H5Sclose(all);
    H5Tclose(in_memory);
    H5Tclose(in_file);
  }
  H5Sclose(space);
  H5Tclose(b);
  H5Tclose(pair);
  (void)name;
}

/* Nor are compressed chunks overtaken that all ranks hold of a dataset of that shape. */
static void rule_held(const char* name) {
  const hid_t plain = make("plain", 1, 0, 1), set = make_filtered(file, "set");
  static int values[kPiece];
  const hsize_t start = 0, count = kPiece;
  const hid_t space = H5Dget_space(set);
  write_by(0, plain, 9, kPiece); /* what MPI-IO makes of holes nobody knows */
  must(H5Fflush(file, H5F_SCOPE_LOCAL), "flushing");
  write_by(1, set, 1, kPiece);
  for (int value = 1; value <= 10; ++value) write_small(plain, value);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
  for (int i = 0; i < kPiece; ++i) values[i] = 2;
  if (rank != 0) H5Sselect_none(space);
  must(H5Dwrite(set, H5T_NATIVE_INT, rank == 0 ? H5S_ALL : space, space, together, values),
       "writing");
  H5Sclose(space);
  H5Dclose(plain);
  H5Dclose(set);
  reopen(name);
  check("set", 2, kPiece);
}

/* What lanes could not store, as there are none, no rank waits for. */
static void rule_threads(const char* name) {
  const hid_t set = make("set", 2, 0, 0);
  const hsize_t start = 0, count = kPiece;
  const hid_t space = H5Dget_space(set), memory = H5Screate_simple(1, &count, NULL);
  static int values[kPiece];
  for (int i = 0; i < kPiece; ++i) values[i] = 1;
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
  atomic_store(&refusing, rank == 1);
  if (rank == 1) must(H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values), "writing");
  MPI_Barrier(MPI_COMM_WORLD);
  give_up_in(20);
  if (rank == 0) check("set", 1, kPiece);
  MPI_Barrier(MPI_COMM_WORLD);
  atomic_store(&refusing, 0);
  write_by(0, set, 2, kPiece);
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(set);
  reopen(name);
  check("set", 2, kPiece);
}

/* HDF5 does not see that it is the same file, by whichever way it is opened. */
static void rule_again(const char* name) {
  const hid_t first = file, access = H5Pcreate(H5P_FILE_ACCESS);
  hid_t set = H5I_INVALID_HID;
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  for (int way = 0; way < 3; ++way) {
    char other[1024];
    snprintf(other, sizeof other, "%s-%d", name, way);
    open_file(other, 1);
    const hid_t captured = file;
    set = make("set", 2, 0, 0);
    must(H5Fflush(file, H5F_SCOPE_LOCAL), "flushing");
    write_by(1, set, 1, 2 * kPiece);
    MPI_Barrier(MPI_COMM_WORLD);
    if (way < 2) {
      file = must(H5Fopen(other, H5F_ACC_RDONLY, way == 0 ? access : H5P_DEFAULT), "opening");
      check("set", 1, 2 * kPiece);
      MPI_Barrier(MPI_COMM_WORLD);
      write_by(1, set, 2, 2 * kPiece);
      MPI_Barrier(MPI_COMM_WORLD);
      check("set", 2, 2 * kPiece);
      must(H5Fclose(file), "closing what was opened for reading");
    } else {
      file = first;
      must(H5Lcreate_external(other, "/set", first, "link", H5P_DEFAULT, H5P_DEFAULT), "linking");
      check("link", 1, 2 * kPiece);
      H5Ldelete(first, "link", H5P_DEFAULT);
    }
    H5Dclose(set);
    must(H5Fclose(captured), "closing");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) unlink(other);
  }
  H5Pclose(access);
  file = first;
}

/* Metadata that HDF5 reads on all ranks together, as netCDF-4 asks for, no rank may need alone. */
static void metadata_together(const char* name, void (*meanwhile)(void)) {
  enum { kOthers = 400, kCache = 4096 };
  char other[16];
  H5AC_cache_config_t cache = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  must(H5Fclose(file), "closing");
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  H5Pset_all_coll_metadata_ops(access, 1);
  H5Pset_coll_metadata_write(access, 1);
  H5Pget_mdc_config(access, &cache);
  cache.set_initial_size = 1;
  cache.initial_size = cache.min_size = cache.max_size = kCache;
  cache.incr_mode = H5C_incr__off;
  cache.flash_incr_mode = H5C_flash_incr__off;
  cache.decr_mode = H5C_decr__off;
  must(H5Pset_mdc_config(access, &cache), "making the metadata cache small");
  file = must(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access), "creating");
  H5Pclose(access);
  const hid_t first = make("set", 2, 0, 0);
  const hid_t group = must(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "g");
  write_by(1, first, 1, 2 * kPiece); /* by lanes */
  meanwhile();
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < kOthers; ++i) {
      snprintf(other, sizeof other, "g %d", i);
      H5Gclose(must(pass == 0 ? H5Gcreate2(file, other, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                              : H5Gopen2(file, other, H5P_DEFAULT),
                    other));
    }
    must(H5Fflush(file, H5F_SCOPE_LOCAL), "flushing");
  }
  give_up_in(20);
  for (int who = 1; who >= 0; --who) {
    if (rank == who) {
      static int values[2 * kPiece];
      for (int i = 0; i < 2 * kPiece; ++i) values[i] = 7;
      must(H5Dwrite(first, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "writing alone");
      must(H5Dread(first, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "reading alone");
      must(H5Dclose(first), "closing a dataset alone");
      must(H5Gclose(group), "closing a group alone");
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  reopen(name);
  check("set", 7, 2 * kPiece);
}

static void nothing(void) {}
static void delete_group(void) {
  must(H5Gclose(H5Gcreate2(file, "another", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)), "another");
  must(H5Ldelete(file, "another", H5P_DEFAULT), "deleting a group");
}
static void delete_soft(void) {
  must(H5Lcreate_soft("nowhere", file, "soft", H5P_DEFAULT, H5P_DEFAULT), "linking");
  must(H5Ldelete(file, "soft", H5P_DEFAULT), "deleting a link");
}
static void reopen_and_close(void) {
  must(H5Fclose(must(H5Freopen(file), "opening again")), "closing what was opened again");
}
static void rule_metadata(const char* name) { metadata_together(name, nothing); }
static void rule_unlinked(const char* name) { metadata_together(name, delete_group); }
static void rule_soft(const char* name) { metadata_together(name, delete_soft); }
static void rule_reopened(const char* name) { metadata_together(name, reopen_and_close); }

/* Who deletes a link to another file does not open that: nobody here knows what is done to it meanwhile. */
static void rule_external(const char* name) {
  char other[1024];
  hid_t target = H5I_INVALID_HID;
  const hid_t first = file, set = make("set", 2, 0, 0);
  write_by(1, set, 1, 2 * kPiece); /* by lanes */
  H5Dclose(set);
  snprintf(other, sizeof other, "%s-target", name);
  must(H5Lcreate_external(other, "/old", first, "link", H5P_DEFAULT, H5P_DEFAULT), "linking");
  if (rank == 0) {
    static int values[kPieces * kPiece];
    for (int i = 0; i < kPieces * kPiece; ++i) values[i] = 5;
    file = must(H5Fcreate(other, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "creating");
    H5Dclose(make("old", 1, 0, 0));
    must(H5Fclose(file), "closing");
    target = file = must(H5Fopen(other, H5F_ACC_RDWR, H5P_DEFAULT), "opening");
    const hid_t more = make("new", kPieces, 0, 0);
    must(H5Dwrite(more, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "writing");
    H5Dclose(more);
    usleep(kShortWhileUs); /* lanes store it */
    file = first;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  must(H5Ldelete(first, "link", H5P_DEFAULT), "deleting a link");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    if (H5Fclose(target) < 0) { /* somebody has cut it short */
      fprintf(stderr, "wrong: rank 0 cannot store the target\n");
      usleep(kShortWhileUs); /* mpirun passes it on */
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    file = must(H5Fopen(other, H5F_ACC_RDONLY, H5P_DEFAULT), "opening the target");
    check("new", 5, kPieces * kPiece);
    must(H5Fclose(file), "closing the target");
    unlink(other);
    file = first;
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* The close of a file that is HDF5's waits for the disk no more than natively. */
static void rule_native(const char* name) {
  char other[1024];
  const hid_t first = file, set = make("set", 2, 0, 0), access = H5Pcreate(H5P_FILE_ACCESS);
  MPI_Info alone;
  write_by(1, set, 1, 2 * kPiece); /* by lanes */
  snprintf(other, sizeof other, "%s-native", name);
  MPI_Info_create(&alone);
  MPI_Info_set(alone, "romio_no_indep_rw", "true");
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, alone);
  file = must(H5Fcreate(other, H5F_ACC_TRUNC, H5P_DEFAULT, access), "creating");
  H5Dclose(make("set", 1, 0, 1));
  must(H5Fclose(file), "closing");
  if (atomic_load(&syncs) != 0) {
    fprintf(stderr, "wrong: rank %d waited for the disk\n", rank);
    wrong = 1;
  }
  if (rank == 0) unlink(other);
  MPI_Info_free(&alone);
  H5Pclose(access);
  H5Dclose(set);
  file = first;
}

/* A union of small blocks, as of unstructured grids, is MPI's to join. */
static void rule_blocks(const char* name) {
  enum { kBlocks = 40, kApart = 16 };
  static int values[kBlocks * kApart];
  hsize_t start, block, count = 0;
  const hid_t set = make("set", kPieces, 0, 1), space = H5Dget_space(set);
  write_by(1, set, 1, 2 * kPiece); /* by lanes */
  H5Sselect_none(space);
  for (int i = 0; i < kBlocks; ++i) {
    const hsize_t one = 1;
    start = (hsize_t)(i * 2 + rank) * kApart;
    block = i % 3 + 2; /* no pattern that HDF5 would see */
    H5Sselect_hyperslab(space, H5S_SELECT_OR, &start, NULL, &one, &block);
    for (hsize_t at = 0; at < block; ++at) values[count++] = 100 * rank + i;
  }
  const hid_t memory = H5Screate_simple(1, &count, NULL);
  must(H5Dwrite(set, H5T_NATIVE_INT, memory, space, together, values), "writing blocks");
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(set);
  (void)name;
}

/* A path through one file may lead to another one's objects. */
static void rule_mount(const char* name) {
  char other_name[1024];
  const hid_t first = file;
  snprintf(other_name, sizeof other_name, "%s-mounted", name);
  must(H5Gclose(H5Gcreate2(first, "here", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)), "here");
  open_file(other_name, 1);
  const hid_t other = file, grows = make("grows", 0, 1, 0), set = make("set", 2, 0, 0);
  hsize_t more = 2 * kPiece;
  write_by(1, set, 3, 2 * kPiece);
  must(H5Fmount(first, "here", other, H5P_DEFAULT), "mounting");
  write_by(1, set, 1, 2 * kPiece);
  H5Dclose(set);
  must(H5Ldelete(first, "here/set", H5P_DEFAULT), "deleting");
  must(H5Dset_extent(grows, &more), "extending");
  write_by(0, grows, 2, 2 * kPiece);
  usleep(kShortWhileUs);
  H5Dclose(grows);
  must(H5Funmount(first, "here"), "unmounting");
  reopen(other_name);
  check("grows", 2, 2 * kPiece);
  H5Fclose(file);
  unlink(other_name);
  file = first;
}

/* What the program leaves open the ranks store in one order, wherever they have it in memory. */
static void rule_order(const char* name) {
  enum { kFiles = 8 };
  static int values[kPiece];
  char names[kFiles][1024];
  const hid_t first = file;
  for (int i = 0; i < kPiece; ++i) values[i] = 3;
  for (int i = 0; i < kFiles; ++i) {
    snprintf(names[i], sizeof names[i], "%s-%d", name, i);
    open_file(names[i], 1);
    const hid_t set = make_filtered(file, "set");
    write_by(1, set, 3, kPiece);
  }
  file = first;
  give_up_in(20);
  must(H5close(), "closing the library");
  H5open();
  together = H5Pcreate(H5P_DATASET_XFER);
  for (int i = 0; i < kFiles; ++i) {
    open_file(names[i], 0);
    check("set", 3, kPiece);
    H5Fclose(file);
    unlink(names[i]);
  }
  open_file(name, 0);
}

static const struct {
  const char* name;
  void (*run)(const char* file);
  const char* linger; /* of rank 1's writes */
} kRules[] = {{"free", rule_free, "2s"},           {"anonymous", rule_anonymous, "2s"},
              {"group", rule_group, "2s"},         {"twice", rule_twice, "2s"},
              {"shrink", rule_shrink, "2s"},       {"copy", rule_copy, "2s"},
              {"fill", rule_fill, "100ms"},        {"atomic", rule_atomic, "2s"},
              {"close", rule_close, "2s"},         {"backoff", rule_backoff, "2s"},
              {"held", rule_held, "2s"},           {"fields", rule_fields, "2s"},
              {"threads", rule_threads, "0"},      {"again", rule_again, "2s"},
              {"mount", rule_mount, "2s"},         {"order", rule_order, "0"},
              {"metadata", rule_metadata, "0"},    {"native", rule_native, "0"},
              {"different", rule_different, "2s"}, {"address", rule_address, "2s"},
              {"unlinked", rule_unlinked, "0"},    {"soft", rule_soft, "0"},
              {"reopened", rule_reopened, "0"},    {"external", rule_external, "0"},
              {"blocks", rule_blocks, "0"}};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (size_t i = 0; i < sizeof kRules / sizeof *kRules; ++i) {
    if (argc < 3 || strcmp(argv[2], kRules[i].name) != 0) continue;
    setenv("TIDELANE_LINGER", rank == 1 ? kRules[i].linger : "0", 1);
    together = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE);
    snprintf(held, sizeof held, "%s.held", argv[1]);
    if (rank == 0) unlink(held); /* of the attempt before */
    open_file(argv[1], 1);
    kRules[i].run(argv[1]);
    H5Fclose(file);
    H5Pclose(together);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return wrong;
}
