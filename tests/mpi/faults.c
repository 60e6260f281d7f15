/* Ranks that fail, for run.py: <file> <collective|alone|filtered> ...what comes after another:
 *
 *   fail     rank 1's storage fails, in one way after the other, while that of the others works
 *   memory   rank 1 has no memory for one thing after the other
 *   killed   rank 1 is gone after a flush
 *   left     no rank closes anything: HDF5 does, within MPI_Finalize
 *   full     rank 1 has no room for anything any more, and both closes fail: the program ends all the same
 *   half     one rank leaves it to that, while the others close the file
 *   forked   each rank has a child, which computes and is gone
 *
 * Natively nothing fails here, and the same elements must come out. Exits with 1, and says so, if a rank was told something else
 * than it should be, or found something else than was written. */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hdf5.h>

#include "short_memory.h"

enum { kRows = 40, kColumns = 512, kElements = kRows * kColumns, kSlowUs = 20000, kFailing = 1 };
enum { kMostAllocations = 2000, kTextSize = 8192 };

static int rank, ranks, wrong, ours;
static const char *name, *way;
static hid_t file, transfer, creation, uncached;
static int values[kElements], found[kElements];

/* Storage that fails: the plugin's lanes call pwritev64 and pwrite64, MPI-IO neither of them. */
static const struct Cause {
  const char* name;
  int error;      /* 0: it works, but */
  int cuts_short; /* only a half of what is asked for is stored, before the failure */
  int slow;
} kCauses[] = {{"no space", ENOSPC, 0, 0},
               {"broken", EIO, 0, 0},
               {"half, then no space", ENOSPC, 1, 0},
               {"half, then the rest", 0, 1, 0},
               {"slow", 0, 0, 1}};
static _Atomic(const struct Cause*) storage;
static ino_t stored_in;

static int fails(int fd) {
  struct stat about;
  return atomic_load(&storage) != NULL && fstat(fd, &about) == 0 && about.st_ino == stored_in;
}

__attribute__((visibility("default"))) ssize_t pwritev64(int fd, const struct iovec* parts,
                                                         int count, off64_t at) {
  if (!fails(fd)) return pwritev(fd, parts, count, at);
  const struct Cause cause = *atomic_load(&storage);
  if (cause.slow) usleep(kSlowUs);
  if (cause.cuts_short) return pwrite(fd, parts->iov_base, (parts->iov_len + 1) / 2, at);
  if (cause.error == 0) return pwritev(fd, parts, count, at);
  errno = cause.error;
  return -1;
}

__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void* bytes, size_t size,
                                                        off64_t at) {
  if (!fails(fd) || atomic_load(&storage)->error == 0) return pwrite(fd, bytes, size, at);
  errno = atomic_load(&storage)->error;
  return -1;
}

/* MPI-IO's, with which HDF5 writes metadata: only where a whole file system is full. */
static int full_for_all;
__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* bytes, size_t size,
                                                      off_t at) {
  if (!full_for_all || !fails(fd)) return syscall(SYS_pwrite64, fd, bytes, size, at);
  errno = ENOSPC;
  return -1;
}

static hid_t must(hid_t result, const char* what) {
  if (result >= 0) return result;
  fprintf(stderr, "rank %d: %s failed\n", rank, what);
  H5Eprint2(H5E_DEFAULT, stderr);
  usleep(kSlowUs); /* mpirun passes it on */
  MPI_Abort(MPI_COMM_WORLD, 2);
  return result;
}

static void judge(int right, const char* what, const char* text) {
  if (right) return;
  fprintf(stderr, "wrong: rank %d: %s: %s\n", rank, what, text);
  wrong = 1;
}

static herr_t add_text(unsigned n, const H5E_error2_t* error, void* text) {
  (void)n;
  strncat(text, error->desc, kTextSize - strlen(text) - 2);
  strcat(text, "\n");
  return 0;
}

static int is(const char* what) { return strcmp(way, what) == 0; }

/* A call that must fail on all ranks, each of which says why; natively, and where storage does not fail, it must not. */
static void expect_failure(hid_t result, const struct Cause* cause, const char* what) {
  static char text[kTextSize];
  if (!ours || cause->error == 0) {
    must(result, what);
    return;
  }
  *text = '\0';
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, add_text, text);
  char because[32];
  snprintf(because, sizeof because, "errno = %d", cause->error);
  judge(result < 0, cause->name, "a call succeeded that cannot:");
  judge(result < 0, what, "it was");
  judge(strstr(text, strrchr(name, '/') + 1) != NULL, what, "does not name the file");
  if (rank == kFailing) {
    judge(strstr(text, because) != NULL, what, text);
    judge(strstr(text, "bytes at address") != NULL, what, text);
  } else {
    judge(strstr(text, "another rank") != NULL, what, text);
  }
}

static void open_file(int create) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  struct stat about;
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  file = create ? H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                : H5Fopen(name, H5F_ACC_RDWR, access);
  must(file, "opening");
  H5Pclose(access);
  char hidden[4096]; /* where publish=atomic has it until it is closed */
  const char* const last = strrchr(name, '/') + 1;
  snprintf(hidden, sizeof hidden, "%.*s.%s.unpublished", (int)(last - name), name, last);
  stored_in = stat(hidden, &about) == 0 || stat(name, &about) == 0 ? about.st_ino : 0;
}

static hid_t make(const char* called) {
  hsize_t extent[2] = {(hsize_t)ranks * kRows, kColumns};
  const hid_t space = H5Screate_simple(2, extent, NULL);
  const hid_t set =
      H5Dcreate2(file, called, H5T_NATIVE_INT, space, H5P_DEFAULT, creation, uncached);
  H5Sclose(space);
  return must(set, "H5Dcreate");
}

static int value(int writer, int step, int i) { return step * 1000000 + writer * 50000 + i; }

/* The rows of `who`. */
static herr_t move_rows(hid_t set, int who, int step, int reads) {
  hsize_t start[2] = {(hsize_t)who * kRows, 0}, count[2] = {kRows, kColumns};
  const hid_t rows = H5Dget_space(set), memory = H5Screate_simple(2, count, NULL);
  H5Sselect_hyperslab(rows, H5S_SELECT_SET, start, NULL, count, NULL);
  for (int i = 0; i < kElements; ++i) values[i] = value(rank, step, i);
  const herr_t result = reads ? H5Dread(set, H5T_NATIVE_INT, memory, rows, transfer, found)
                              : H5Dwrite(set, H5T_NATIVE_INT, memory, rows, transfer, values);
  memset(values, 0, sizeof values);
  if (result >= 0) {
    H5Sclose(memory);
    H5Sclose(rows);
  } /* else the error stack is still looked at */
  return result;
}

static herr_t write_rows(hid_t set, int who, int step) { return move_rows(set, who, step, 0); }

static void check_rows(hid_t set, int who, int writer, int step, const char* what) {
  memset(found, 0, sizeof found);
  must(move_rows(set, who, 0, 1), what);
  int same = 1;
  for (int i = 0; i < kElements; ++i) same &= found[i] == value(writer, step, i);
  judge(same, what, "other elements than were written");
}

static int any(int here) {
  MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return here;
}

static void fail_once(const struct Cause* cause) {
  const int next = (rank + 1) % ranks;
  int again = is("collective");
  const hid_t set = make(cause->name), doomed = make("doomed");
  must(write_rows(doomed, rank, 1), "H5Dwrite");
  must(write_rows(set, rank, 1), "H5Dwrite");
  must(H5Fflush(file, H5F_SCOPE_LOCAL), "H5Fflush");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == kFailing) atomic_store(&storage, cause);
  must(write_rows(doomed, rank, 2), "H5Dwrite");
  must(write_rows(set, rank, 2), "H5Dwrite");
  H5Dclose(doomed);
  if (is("alone")) check_rows(set, rank, rank, 2, "own rows that are not stored");
  expect_failure(H5Fflush(file, H5F_SCOPE_LOCAL), cause, "H5Fflush");
  MPI_Barrier(MPI_COMM_WORLD);
  if (is("alone")) {
    if (rank == 0) must(move_rows(set, kFailing, 0, 1), "H5Dread of what is not stored");
    check_rows(set, rank, rank, 2, "own rows that could not be stored");
  } else {
    expect_failure(move_rows(set, rank, 0, 1), cause, "H5Dread");
  }
  /* Nobody may have space whose old bytes are still to come, or write over what is. */
  if (ours && cause->error != 0)
    expect_failure(H5Ldelete(file, "doomed", H5P_DEFAULT), cause, "H5Ldelete");
  if (is("collective")) expect_failure(write_rows(set, next, 3), cause, "H5Dwrite");
  if (is("filtered")) { /* those wait, unless others already do so in vain */
    const herr_t result = write_rows(set, next, 3);
    again = any(result < 0);
    if (again) expect_failure(result, cause, "H5Dwrite of filtered chunks");
  }
  if (ours && cause->error != 0) {
    expect_failure(H5Fflush(file, H5F_SCOPE_LOCAL), cause, "H5Fflush");
    expect_failure(H5Fclose(file), cause, "H5Fclose");
    judge(H5Iis_valid(file) > 0, cause->name, "no file is left to try again with");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  atomic_store(&storage, NULL);
  if (again) must(write_rows(set, next, 3), "H5Dwrite again");
  must(H5Ldelete(file, "doomed", H5P_DEFAULT), "H5Ldelete again");
  must(H5Fflush(file, H5F_SCOPE_LOCAL), "H5Fflush again");
  must(H5Dclose(set), "H5Dclose");
  must(H5Fclose(file), "H5Fclose again");
  open_file(0);
  const hid_t stored = must(H5Dopen2(file, cause->name, H5P_DEFAULT), "H5Dopen");
  check_rows(stored, next, is("alone") ? next : rank, is("alone") ? 2 : 3, "what was tried again");
  H5Dclose(stored);
}

static void fail(void) {
  for (size_t i = 0; i < sizeof kCauses / sizeof *kCauses; ++i) fail_once(&kCauses[i]);
}

/* Each allocation of a write, and of the flush after it, fails in turn. */
static void memory(void) {
  const hid_t set = make("memory");
  const int next = (rank + 1) % ranks;
  must(write_rows(set, rank, 0), "H5Dwrite"); /* what is made once is made */
  must(H5Fflush(file, H5F_SCOPE_LOCAL), "H5Fflush");
  if (ours) dl_iterate_phdr(find_plugin, NULL);
  int at = 1, step = 0;
  for (int reached = 1; reached && at < kMostAllocations; ++at) {
    reached = 0;
    ++step;
    if (rank == kFailing && ours) atomic_store(&allocations_left, at);
    herr_t result = write_rows(set, step % 2 ? next : rank, step);
    reached = any(rank == kFailing && ours && atomic_load(&allocations_left) <= 0);
    atomic_store(&allocations_left, 0);
    if (any(result < 0)) must(write_rows(set, step % 2 ? next : rank, step), "H5Dwrite again");
    if (rank == kFailing && ours) atomic_store(&allocations_left, at);
    result = H5Fflush(file, H5F_SCOPE_LOCAL);
    reached |= any(rank == kFailing && ours && atomic_load(&allocations_left) <= 0);
    atomic_store(&allocations_left, 0);
    if (any(result < 0)) {
      judge(result < 0, "H5Fflush", "it failed on another rank only");
      must(H5Fflush(file, H5F_SCOPE_LOCAL), "H5Fflush again");
    }
    check_rows(set, rank, step % 2 ? (rank + ranks - 1) % ranks : rank, step, "the next rows");
    MPI_Barrier(MPI_COMM_WORLD); /* who goes on writes what another one has read */
  }
  judge(!ours || at > 3, "memory", "nothing was asked for");
  /* Natively it is one step. */
  must(write_rows(set, rank, 1000), "H5Dwrite");
  must(H5Dclose(set), "H5Dclose");
}

static void killed(void) {
  const hid_t set = make("flushed"), later = make("later");
  must(write_rows(set, rank, 1), "H5Dwrite");
  must(H5Fflush(file, H5F_SCOPE_LOCAL), "H5Fflush");
  must(write_rows(later, rank, 2), "H5Dwrite");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != kFailing) {
    for (;;) pause();
  }
  fprintf(stderr, "rank %d is gone\n", rank);
  usleep(kSlowUs); /* mpirun passes it on */
  kill(getpid(), SIGKILL);
}

static void left(void) {
  const hid_t set = make("left");
  must(write_rows(set, rank, 1), "H5Dwrite");
  must(H5Fflush(file, H5F_SCOPE_LOCAL), "H5Fflush");
  must(write_rows(set, (rank + 1) % ranks, 2), "H5Dwrite");
  must(write_rows(make("left, too"), rank, 3), "H5Dwrite");
}

static void half(void) {
  const hid_t set = make("half");
  must(write_rows(set, rank, 4), "H5Dwrite");
  if (rank != kFailing) must(H5Dclose(set), "H5Dclose");
}

static void never_ends(int signal) {
  static const char text[] = "wrong: rank: the program does not end\n";
  (void)signal;
  if (write(STDERR_FILENO, text, sizeof text - 1) >= 0) usleep(kSlowUs); /* mpirun passes it on */
  _exit(1);
}

/* No room on one rank for anything any more: the program must end all the same. A control waits less long. */
static void full(void) {
  signal(SIGALRM, never_ends);
  alarm(getenv("TIDELANE_BREAK") != NULL ? 5 : 60);
  const hid_t set = make("full");
  if (rank == kFailing) atomic_store(&storage, &kCauses[0]);
  must(write_rows(set, rank, 1), "H5Dwrite");
  must(H5Dclose(set), "H5Dclose");
  full_for_all = 1;
  expect_failure(H5Fclose(file), &kCauses[0], "H5Fclose");
  expect_failure(H5Fclose(file), &kCauses[0], "H5Fclose again");
}

static void forked(void) {
  const hid_t set = make("forked");
  must(write_rows(set, rank, 1), "H5Dwrite");
  must(write_rows(set, rank, 2), "H5Dwrite");
  const pid_t child = fork();
  if (child == 0) {
    unsigned sum = 0;
    for (int i = 0; i < kElements; ++i) sum = sum * 31 + (unsigned)values[i];
    _exit(sum == 0 ? 0 : 1);
  }
  int status = -1;
  must(waitpid(child, &status, 0), "waitpid");
  judge(status == 0, "fork", "the child did not end well");
  must(write_rows(set, rank, 3), "H5Dwrite");
  must(H5Dclose(set), "H5Dclose");
}

static const struct {
  const char* name;
  void (*run)(void);
} kScenarios[] = {{"fail", fail}, {"memory", memory}, {"killed", killed}, {"left", left},
                  {"half", half}, {"forked", forked}, {"full", full}};

static void prepare(void) {
  hsize_t chunk[2] = {10, kColumns};
  transfer = H5Pcreate(H5P_DATASET_XFER);
  creation = H5Pcreate(H5P_DATASET_CREATE);
  uncached = H5Pcreate(H5P_DATASET_ACCESS);
  if (!is("alone")) H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  if (is("filtered")) {
    H5Pset_chunk(creation, 2, chunk);
    H5Pset_deflate(creation, 1);
    /* without a cache: HDF5 1.14.6 hangs where reads and such writes mix */
    H5Pset_chunk_cache(uncached, 0, 0, 0);
  } else {
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
  }
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static void find_connector(void) {
  char connector[16] = "";
  must((hid_t)H5VLget_connector_name(file, connector, sizeof connector), "asking for a name");
  ours = strcmp(connector, "tidelane") == 0;
  if (getenv("HDF5_VOL_CONNECTOR") != NULL && !ours) must(-1, "using the plugin");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 4) return 2;
  name = argv[1];
  way = argv[2];
  prepare();
  open_file(1);
  find_connector();
  for (int at = 3; at < argc; ++at) {
    for (size_t i = 0; i < sizeof kScenarios / sizeof *kScenarios; ++i) {
      if (strcmp(argv[at], kScenarios[i].name) == 0) kScenarios[i].run();
    }
  }
  const int half_left = strcmp(argv[argc - 1], "half") == 0;
  const int is_left = strcmp(argv[argc - 1], "left") == 0 || strcmp(argv[argc - 1], "full") == 0;
  if (!is_left && (!half_left || rank != kFailing)) {
    must(H5Fclose(file), "H5Fclose");
    H5Pclose(transfer);
    H5Pclose(creation);
    H5Pclose(uncached);
  }
  if (!half_left) MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return wrong;
}
