/* Ranks that create a file with publish=atomic, for publish.py: <file> <case>. Natively the same elements come out; what names lead
 * to meanwhile is looked at with the plugin only. Exits with 1, and says so, if a name led elsewhere than it should. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

#include "short_memory.h"

enum {
  kRows = 8,
  kColumns = 4096,
  kElements = kRows * kColumns,
  kLimit = 16384,
  kFailing = 1,
  kMostAllocations = 2000
};

static int rank, ranks, wrong, ours;
static const char *name, *way;
static char hidden[4096];
static hid_t transfer;
static int values[kElements], found[kElements];

static int is(const char* what) { return strcmp(way, what) == 0; }

static hid_t must(hid_t result, const char* what) {
  if (result >= 0) return result;
  fprintf(stderr, "rank %d: %s failed\n", rank, what);
  H5Eprint2(H5E_DEFAULT, stderr);
  usleep(20000); /* mpirun passes it on */
  MPI_Abort(MPI_COMM_WORLD, 2);
  return result;
}

static void judge(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "wrong: rank %d: %s\n", rank, what);
  wrong = 1;
}

static void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }

/* What others find by a name: n(othing), o(ld), h(df5), ?. */
static char there(const char* path) {
  char head[8] = "";
  FILE* const file = fopen(path, "r");
  if (file == NULL) return 'n';
  const size_t size = fread(head, 1, sizeof head, file);
  fclose(file);
  if (size == 4 && memcmp(head, "old\n", 4) == 0) return 'o';
  return size == 8 && memcmp(head, "\211HDF\r\n\032\n", 8) == 0 ? 'h' : '?';
}

static void expect(const char* path, char which, const char* when) {
  char text[200];
  const char is_there = there(path);
  snprintf(text, sizeof text, "%s: there is '%c', not '%c'", when, is_there, which);
  judge(!ours || is_there == which, text);
}

static void add_old(void) {
  if (rank == 0) {
    FILE* const file = fopen(name, "w");
    fputs("old\n", file);
    fclose(file);
    chmod(name, 0640);
  }
  meet();
}

static hid_t access_for(MPI_Comm communicator) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  MPI_Info info;
  MPI_Info_create(&info);
  if (is("locks")) {
    MPI_Info_set(info, "romio_cb_write", "disable");
    MPI_Info_set(info, "romio_ds_write", "enable");
  }
  H5Pset_fapl_mpio(access, communicator, info);
  MPI_Info_free(&info);
  if (is("weak")) H5Pset_fclose_degree(access, H5F_CLOSE_WEAK);
  return access;
}

static hid_t create_quietly(const char* path, unsigned flags, MPI_Comm communicator) {
  const hid_t access = access_for(communicator);
  hid_t file;
  H5E_BEGIN_TRY { file = H5Fcreate(path, flags, H5P_DEFAULT, access); }
  H5E_END_TRY
  H5Pclose(access);
  return file;
}

static hid_t create(unsigned flags) {
  const hid_t access = access_for(MPI_COMM_WORLD);
  const hid_t file = must(H5Fcreate(name, flags, H5P_DEFAULT, access), "H5Fcreate");
  H5Pclose(access);
  return file;
}

static hid_t make(hid_t file, const char* called) {
  hsize_t extent[2] = {(hsize_t)ranks * kRows, kColumns};
  const hid_t space = H5Screate_simple(2, extent, NULL);
  const hid_t set =
      H5Dcreate2(file, called, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Sclose(space);
  return must(set, "H5Dcreate");
}

/* The rows of this rank; `turns`: rows that take turns with the other ranks'. */
static herr_t move_rows(hid_t set, int reads, int step, int turns) {
  hsize_t start[2] = {(hsize_t)rank * kRows, 0}, count[2] = {kRows, kColumns};
  hsize_t first[2] = {0, (hsize_t)rank}, every[2] = {1, (hsize_t)ranks};
  hsize_t taken[2] = {kRows, kColumns / ranks};
  const hid_t rows = H5Dget_space(set);
  const hid_t memory = H5Screate_simple(2, turns ? taken : count, NULL);
  if (turns)
    H5Sselect_hyperslab(rows, H5S_SELECT_SET, first, every, taken, NULL);
  else
    H5Sselect_hyperslab(rows, H5S_SELECT_SET, start, NULL, count, NULL);
  for (int i = 0; i < kElements; ++i) values[i] = step * 1000000 + rank * 50000 + i;
  herr_t result;
  H5E_BEGIN_TRY {
    result = reads ? H5Dread(set, H5T_NATIVE_INT, memory, rows, transfer, found)
                   : H5Dwrite(set, H5T_NATIVE_INT, memory, rows, transfer, values);
  }
  H5E_END_TRY
  H5Sclose(memory);
  H5Sclose(rows);
  return result;
}

static void write_rows(hid_t set, int step) {
  must(move_rows(set, 0, step, is("locks")), "H5Dwrite");
}

static void expect_name(hid_t object) {
  char called[4096] = "", part[6] = "";
  const ssize_t length = H5Fget_name(object, called, sizeof called);
  judge(length == (ssize_t)strlen(name) && strcmp(called, name) == 0, "H5Fget_name");
  judge(H5Fget_name(object, part, sizeof part) == length && strncmp(part, name, 5) == 0 &&
            part[5] == '\0',
        "H5Fget_name into little room");
}

/* A close that must fail on all ranks. */
static void close_in_vain(hid_t file) {
  herr_t result;
  H5E_BEGIN_TRY { result = H5Fclose(file); } /* natively it does not */
  H5E_END_TRY
  judge(!ours || result < 0, "H5Fclose did not fail");
}

static void limit(int on) {
  struct rlimit most;
  if (rank != kFailing || !ours) return;
  getrlimit(RLIMIT_FSIZE, &most);
  most.rlim_cur = on ? kLimit : most.rlim_max;
  setrlimit(RLIMIT_FSIZE, &most);
}

/* Creates the file, writes it, and closes it; before that others find `before`. */
static void whole(unsigned flags, char before) {
  const hid_t file = create(flags);
  expect(name, before, "after H5Fcreate");
  expect_name(file);
  const hid_t set = make(file, "set");
  expect_name(set);
  write_rows(set, 1);
  must(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
  expect(name, before, "after H5Fflush");
  expect(hidden, 'h', "the hidden file");
  write_rows(set, 2);
  H5Dclose(set);
  expect(name, before, "before H5Fclose");
  if (rank == ranks - 1) usleep(50000);
  must(H5Fclose(file), "H5Fclose");
  expect(name, 'h', "after H5Fclose");
  expect(hidden, 'n', "the hidden file after H5Fclose");
  meet();
}

static void weak(void) {
  add_old();
  const hid_t file = create(H5F_ACC_TRUNC), set = make(file, "set");
  write_rows(set, 1);
  must(H5Fclose(file), "H5Fclose");
  expect(name, 'o', "while a dataset is open");
  expect_name(set);
  write_rows(set, 2);
  must(H5Dclose(set), "H5Dclose");
  expect(name, 'h', "after H5Dclose");
}

/* Storage fails while bytes wait: the file stays open until it has them. */
static void failing(void) {
  add_old();
  const hid_t file = create(H5F_ACC_TRUNC), set = make(file, "set");
  limit(1);
  write_rows(set, 1);
  H5Dclose(set);
  if (ours) close_in_vain(file);
  expect(name, 'o', "after a close that failed");
  meet();
  limit(0);
  must(H5Fclose(file), "the second H5Fclose");
  expect(name, 'h', "after the second H5Fclose");
}

/* A write of one rank fails; the program goes on, with or without it. */
static void refused(int repeats) {
  add_old();
  const hid_t file = create(H5F_ACC_TRUNC), set = make(file, "set");
  limit(1);
  const herr_t result = move_rows(set, 0, 1, 0);
  judge(!ours || (result < 0) == (rank == kFailing), "H5Dwrite where storage fails");
  limit(0);
  if (repeats) write_rows(set, 1);
  H5Dclose(set);
  if (repeats) {
    must(H5Fclose(file), "H5Fclose");
    expect(name, 'h', "after what was refused was repeated");
    return;
  }
  close_in_vain(file);
  expect(name, 'o', "after a write was refused");
  meet();
  whole(H5F_ACC_TRUNC, 'o');
}

static void killed(void) {
  add_old();
  const hid_t file = create(H5F_ACC_TRUNC), set = make(file, "set");
  write_rows(set, 1);
  must(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
  expect(name, 'o', "before a rank is gone");
  meet();
  fprintf(stderr, "rank 1 is gone\n");
  usleep(20000);
  if (rank == kFailing) raise(SIGKILL);
  H5Dclose(set);
  H5Fclose(file);
}

/* Another program: a rank for itself. And the same one. */
static void second(void) {
  add_old();
  const hid_t file = create(H5F_ACC_TRUNC);
  if (ours) {
    judge(create_quietly(name, H5F_ACC_TRUNC, MPI_COMM_WORLD) < 0, "all create it twice");
    judge(create_quietly(name, H5F_ACC_EXCL, MPI_COMM_WORLD) < 0, "all create it anew");
    judge(create_quietly(name, H5F_ACC_TRUNC, MPI_COMM_SELF) < 0, "one rank creates it");
    if (hidden[0] != '\0')
      judge(create_quietly(hidden, H5F_ACC_TRUNC, MPI_COMM_SELF) < 0, "by its hidden name");
  }
  const hid_t set = make(file, "set");
  write_rows(set, 1);
  H5Dclose(set);
  expect(name, 'o', "before H5Fclose");
  must(H5Fclose(file), "H5Fclose");
  expect(name, 'h', "after H5Fclose");
  meet();
  /* One rank has it; the other is another program for it. */
  hid_t alone = -1;
  if (rank == 0) alone = create_quietly(name, H5F_ACC_TRUNC, MPI_COMM_SELF);
  meet();
  if (rank != 0 && ours)
    judge(create_quietly(name, H5F_ACC_TRUNC, MPI_COMM_SELF) < 0, "what another program writes");
  meet();
  if (rank == 0) must(H5Fclose(alone), "H5Fclose of one rank's");
}

static void reopened(void) {
  add_old();
  const hid_t file = create(H5F_ACC_TRUNC), set = make(file, "set");
  write_rows(set, 1);
  must(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
  const hid_t access = access_for(MPI_COMM_WORLD), self = access_for(MPI_COMM_SELF);
  judge(!ours || H5Fis_accessible(name, access) > 0, "H5Fis_accessible");
  const hid_t other = must(H5Fopen(name, H5F_ACC_RDWR, access), "H5Fopen");
  const hid_t mine = must(H5Fopen(name, H5F_ACC_RDONLY, self), "H5Fopen by each rank");
  expect_name(other);
  const hid_t again = must(H5Dopen2(mine, "set", H5P_DEFAULT), "H5Dopen");
  must(H5Dclose(again), "H5Dclose");
  must(H5Fclose(mine), "H5Fclose of each rank's");
  H5Dclose(set);
  must(H5Fclose(file), "H5Fclose of the first");
  expect(name, 'o', "while it is open once more");
  const hid_t same = must(H5Dopen2(other, "set", H5P_DEFAULT), "H5Dopen");
  write_rows(same, 2);
  H5Dclose(same);
  must(H5Fclose(other), "H5Fclose of the second");
  expect(name, 'h', "after H5Fclose of the second");
  H5Pclose(access);
  H5Pclose(self);
  /* With the serial driver, on any rank. */
  meet();
  if (rank == 0 && ours) unlink(name);
  meet();
  const hid_t third = create(H5F_ACC_TRUNC);
  H5Dclose(make(third, "set"));
  must(H5Fflush(third, H5F_SCOPE_GLOBAL), "H5Fflush");
  if (ours) {
    const hid_t serial = must(H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen, serial");
    H5Fclose(serial);
    expect(name, 'n', "after a serial close");
  }
  meet();
  must(H5Fclose(third), "H5Fclose of the third");
  expect(name, 'h', "after H5Fclose of the third");
}

static void linked(void) {
  char other[4096];
  struct stat before, after;
  add_old();
  snprintf(other, sizeof other, "%s.link", name);
  if (rank == 0 && link(name, other) != 0) abort();
  meet();
  stat(name, &before);
  const hid_t file = create(H5F_ACC_TRUNC), set = make(file, "set");
  expect(hidden, 'n', "no hidden file");
  write_rows(set, 1);
  H5Dclose(set);
  must(H5Fclose(file), "H5Fclose");
  stat(name, &after);
  judge(before.st_ino == after.st_ino, "it is another file");
  meet();
  if (rank == 0) unlink(other);
}

static void symbolic(void) {
  static char target[4096];
  struct stat about;
  snprintf(target, sizeof target, "%s.target", name);
  const char* const given = name;
  name = target;
  add_old();
  name = given;
  if (rank == 0 && symlink(strrchr(target, '/') + 1, name) != 0) abort();
  meet();
  snprintf(hidden, sizeof hidden, "%.*s/.%s.unpublished", (int)(strrchr(target, '/') - target),
           target, strrchr(target, '/') + 1);
  whole(H5F_ACC_TRUNC, 'o');
  judge(lstat(name, &about) == 0 && S_ISLNK(about.st_mode), "the link is gone");
  judge(stat(name, &about) == 0 && (about.st_mode & 0777) == 0640, "the mode is another one");
}

static void deleted(void) {
  add_old();
  const hid_t access = access_for(MPI_COMM_WORLD);
  const hid_t file = create(H5F_ACC_TRUNC), set = make(file, "set");
  write_rows(set, 1);
  must(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
  if (ours) must(H5Fdelete(name, access), "H5Fdelete");
  expect(name, 'n', "after H5Fdelete");
  H5Dclose(set);
  must(H5Fclose(file), "H5Fclose");
  expect(name, 'n', "after H5Fclose");
  meet();
  whole(H5F_ACC_TRUNC, 'n');
  H5Pclose(access);
}

/* One rank has no memory for one thing after the other while all create the file: it is created by all ranks, or by none. */
static void memory(void) {
  whole(H5F_ACC_TRUNC, 'n');
  if (ours) dl_iterate_phdr(find_plugin, NULL);
  for (int failing = 0; failing < ranks && ours; ++failing) {
    for (int at = 1, reached = 1; at < kMostAllocations && reached; ++at) {
      add_old();
      if (rank == failing) atomic_store(&allocations_left, at);
      const hid_t file = create_quietly(name, H5F_ACC_TRUNC, MPI_COMM_WORLD);
      reached = rank == failing && atomic_load(&allocations_left) <= 0;
      atomic_store(&allocations_left, 0);
      int most[3] = {reached, file >= 0, file < 0};
      MPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      reached = most[0];
      judge(!most[1] || !most[2], "only some ranks created the file");
      if (there(hidden) != 'n') expect(name, 'o', "after H5Fcreate without memory");
      meet();
      if (file >= 0) {
        must(H5Fclose(file), "H5Fclose");
        expect(name, 'h', "after H5Fclose");
      }
      meet();
      expect(hidden, 'n', "the hidden file");
      meet();
    }
  }
  whole(H5F_ACC_TRUNC, 'h');
}

/* All ranks end by an error, with the file open. */
static void error(void) {
  add_old();
  const hid_t file = create(H5F_ACC_TRUNC), set = make(file, "set");
  write_rows(set, 1);
  must(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
  expect(name, 'o', "before an error");
  meet();
  fprintf(stderr, "rank %d is gone\n", rank);
  exit(3);
}

/* HDF5 closes it within MPI_Finalize. */
static void left(void) {
  add_old();
  const hid_t file = create(H5F_ACC_TRUNC), set = make(file, "set");
  write_rows(set, 1);
  H5Dclose(set);
  expect(name, 'o', "before MPI_Finalize");
  meet();
}

static void prefixed(void) {
  static char given[4096];
  snprintf(given, sizeof given, "ufs:%s", name);
  const char* const path = name;
  name = given;
  const hid_t file = create(H5F_ACC_TRUNC), set = make(file, "set");
  expect_name(file);
  expect(hidden, 'n', "no hidden file");
  write_rows(set, 1);
  H5Dclose(set);
  must(H5Fclose(file), "H5Fclose");
  name = path;
}

static void lists(void) {
  /* What the setting says holds for what is created, and a name that cannot be. */
  static char nowhere[4096];
  snprintf(nowhere, sizeof nowhere, "%s.folder/none.h5", name);
  judge(create_quietly(nowhere, H5F_ACC_TRUNC, MPI_COMM_WORLD) < 0, "a folder that is not there");
  whole(H5F_ACC_EXCL, 'n');
  judge(create_quietly(name, H5F_ACC_EXCL, MPI_COMM_WORLD) < 0, "H5F_ACC_EXCL over a file");
  const hid_t creation = H5Pcreate(H5P_FILE_CREATE), access = access_for(MPI_COMM_WORLD);
  hid_t file;
  H5Pset_userblock(creation, 512);
  H5Pset_alignment(access, 1, 384); /* which does not fit a user block */
  H5E_BEGIN_TRY { file = H5Fcreate(name, H5F_ACC_TRUNC, creation, access); }
  H5E_END_TRY
  judge(!ours || file < 0, "a list that cannot be");
  meet();
  expect(name, 'h', "after a create that failed");
  expect(hidden, 'n', "the hidden file of a create that failed");
  H5Pclose(creation);
  H5Pclose(access);
  meet();
  whole(H5F_ACC_TRUNC, 'h');
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 3) return 2;
  name = argv[1];
  way = argv[2];
  const char* const connector = getenv("HDF5_VOL_CONNECTOR");
  ours = connector != NULL && strstr(connector, "tidelane") != NULL;
  signal(SIGXFSZ, SIG_IGN);
  snprintf(hidden, sizeof hidden, "%.*s/.%s.unpublished", (int)(strrchr(name, '/') - name), name,
           strrchr(name, '/') + 1);
  transfer = H5Pcreate(H5P_DATASET_XFER);
  const int alone = is("alone") || is("failing") || is("refused") || is("repeated");
  H5Pset_dxpl_mpio(transfer, alone ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE);
  if (is("over") || is("alone") || is("locks")) {
    add_old();
    whole(H5F_ACC_TRUNC, 'o');
    whole(H5F_ACC_TRUNC, 'h');
  } else if (is("new")) {
    lists();
  } else if (is("weak")) {
    weak();
  } else if (is("failing")) {
    failing();
  } else if (is("refused") || is("repeated")) {
    refused(is("repeated"));
  } else if (is("killed")) {
    killed();
  } else if (is("memory")) {
    memory();
  } else if (is("error")) {
    error();
  } else if (is("second")) {
    second();
  } else if (is("reopened")) {
    reopened();
  } else if (is("linked")) {
    linked();
  } else if (is("symbolic")) {
    symbolic();
  } else if (is("deleted")) {
    deleted();
  } else if (is("left")) {
    left();
  } else if (is("prefixed")) {
    prefixed();
  }
  H5Pclose(transfer);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return wrong;
}
