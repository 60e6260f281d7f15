/* Compressed chunks that ranks write together, for run.py: <file>. What can be seen of them before they are in the file, and
 * what else happens to their datasets meanwhile.
 *
 * Prints what HDF5 says of collective writes. Exits with 1 if a rank read something else than was written. */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <hdf5.h>

#include "rank.h"

enum {
  kRows = 40,
  kColumns = 1000,
  kElements = kRows * kColumns,
  kShortWhileUs = 200000,
  kAnswers = 6, /* of a transfer */
};

static int ranks, wrong;
static hid_t file, transfer, creation, uncached;
static int values[kElements], found[kElements];
static double converted[kElements];

static int value(int writer, int step, int i) { return step * 1000000 + writer * 10000 + i / 7; }

static void judge(int same, const char* what) {
  if (same) return;
  fprintf(stderr, "wrong: rank %d: %s: other elements than were written\n", rank, what);
  wrong = 1;
}

/* Lanes of ranks are nicer than the program, which others may wait for busily. */
static void judge_lanes(void) {
  const int own = getpriority(PRIO_PROCESS, 0);
  int nicer = 0;
  DIR* const threads = opendir("/proc/self/task");
  for (const struct dirent* entry; threads != NULL && (entry = readdir(threads)) != NULL;) {
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", entry->d_name);
    FILE* const comm = fopen(path, "r");
    if (comm == NULL) continue;
    if (fgets(name, sizeof name, comm) != NULL && strcmp(name, "tidelane\n") == 0)
      nicer += getpriority(PRIO_PROCESS, (id_t)atoi(entry->d_name)) > own;
    fclose(comm);
  }
  if (threads != NULL) closedir(threads);
  if (nicer != 0 || own >= 19) return;
  fprintf(stderr, "wrong: rank %d: no lane is nicer than the program\n", rank);
  wrong = 1;
}

static hid_t make(const char* name) {
  hsize_t extent[2] = {(hsize_t)ranks * kRows, kColumns}, most[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
  const hid_t space = H5Screate_simple(2, extent, most);
  const hid_t dataset =
      H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, creation, uncached);
  H5Sclose(space);
  return must(dataset, "H5Dcreate");
}

/* The rows of `who`, of what is there from the row `first` on. */
static hid_t rows_of(hid_t dataset, hsize_t first, int who) {
  hsize_t start[2] = {first + (hsize_t)who * kRows, 0}, count[2] = {kRows, kColumns};
  const hid_t space = H5Dget_space(dataset);
  must(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL), "selecting");
  return space;
}

static hid_t packed(void) {
  hsize_t count[2] = {kRows, kColumns};
  return H5Screate_simple(2, count, NULL);
}

static void write_rows(hid_t dataset, hsize_t first, int who, int step) {
  const hid_t rows = rows_of(dataset, first, who), memory = packed();
  for (int i = 0; i < kElements; ++i) values[i] = value(rank, step, i);
  must(H5Dwrite(dataset, H5T_NATIVE_INT, memory, rows, transfer, values), "H5Dwrite");
  memset(values, 0, sizeof values);
  H5Sclose(memory);
  H5Sclose(rows);
}

static void read_rows(hid_t dataset, hsize_t first, int who, hid_t how, int writer, int step,
                      const char* what) {
  const hid_t rows = rows_of(dataset, first, who), memory = packed();
  memset(found, 0, sizeof found);
  must(H5Dread(dataset, H5T_NATIVE_INT, memory, rows, how, found), "H5Dread");
  int same = 1;
  for (int i = 0; i < kElements; ++i) same &= found[i] == value(writer, step, i);
  judge(same, what);
  H5Sclose(memory);
  H5Sclose(rows);
}

/* Own elements in every way that HDF5 can read: converted, every second one, points in no order. */
static void read_own(hid_t dataset, int step) {
  read_rows(dataset, 0, rank, H5P_DEFAULT, rank, step, "own rows");
  const hid_t rows = rows_of(dataset, 0, rank), memory = packed();
  must(H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, rows, H5P_DEFAULT, converted), "H5Dread");
  int same = 1;
  for (int i = 0; i < kElements; ++i) same &= converted[i] == value(rank, step, i);
  judge(same, "own rows, converted");
  hsize_t start[2] = {(hsize_t)rank * kRows, 1}, stride[2] = {3, 2}, count[2] = {10, 400};
  hsize_t line = 4000, points[2][2] = {{start[0] + 39, 999}, {start[0] + 1, 250}}, two = 2;
  must(H5Sselect_hyperslab(rows, H5S_SELECT_SET, start, stride, count, NULL), "selecting");
  const hid_t flat = H5Screate_simple(1, &line, NULL);
  must(H5Dread(dataset, H5T_NATIVE_INT, flat, rows, H5P_DEFAULT, found), "H5Dread");
  same = 1;
  for (int i = 0; i < 4000; ++i)
    same &= found[i] == value(rank, step, i / 400 * 3 * kColumns + i % 400 * 2 + 1);
  judge(same, "own elements, apart");
  must(H5Sselect_elements(rows, H5S_SELECT_SET, 2, &points[0][0]), "selecting");
  const hid_t pair = H5Screate_simple(1, &two, NULL);
  must(H5Dread(dataset, H5T_NATIVE_INT, pair, rows, H5P_DEFAULT, found), "H5Dread");
  judge(found[0] == value(rank, step, 39 * kColumns + 999) &&
            found[1] == value(rank, step, kColumns + 250),
        "own points");
  H5Sclose(pair);
  H5Sclose(flat);
  H5Sclose(memory);
  H5Sclose(rows);
}

static void report(void) {
  H5D_mpio_actual_io_mode_t mode;
  H5D_mpio_actual_chunk_opt_mode_t chunks;
  uint32_t local = 0, global = 0, cause = 0, selection = 0;
  H5Pget_mpio_actual_io_mode(transfer, &mode);
  H5Pget_mpio_actual_chunk_opt_mode(transfer, &chunks);
  H5Pget_mpio_no_collective_cause(transfer, &local, &global);
  H5Pget_no_selection_io_cause(transfer, &cause);
  H5Pget_actual_selection_io_mode(transfer, &selection);
  const unsigned mine[kAnswers] = {(unsigned)mode, (unsigned)chunks, local, global,
                                   cause,          selection};
  unsigned all[kAnswers * 16];
  MPI_Gather(mine, kAnswers, MPI_UNSIGNED, all, kAnswers, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < ranks; ++i) {
    const unsigned* of = all + (size_t)i * kAnswers;
    printf("rank %d: mode %u chunks %u local %u global %u selection %u %u\n", i, of[0], of[1],
           of[2], of[3], of[4], of[5]);
  }
}

/* What a transfer says of itself, on ranks that write and on one that does not. */
static void answers(void) {
  const H5FD_mpio_chunk_opt_t kWays[] = {H5FD_MPIO_CHUNK_DEFAULT, H5FD_MPIO_CHUNK_ONE_IO,
                                         H5FD_MPIO_CHUNK_MULTI_IO};
  const hid_t dataset = make("answers");
  for (int way = 0; way < 3; ++way) {
    must(H5Pset_dxpl_mpio_chunk_opt(transfer, kWays[way]), "H5Pset_dxpl_mpio_chunk_opt");
    write_rows(dataset, 0, rank, 1);
    report();
    const hid_t rows = rows_of(dataset, 0, rank), memory = packed();
    if (rank == ranks - 1) {
      H5Sselect_none(rows);
      H5Sselect_none(memory);
    }
    must(H5Dwrite(dataset, H5T_NATIVE_INT, memory, rows, transfer, found), "H5Dwrite");
    report();
    H5Sclose(memory);
    H5Sclose(rows);
  }
  must(H5Pset_dxpl_mpio_chunk_opt(transfer, H5FD_MPIO_CHUNK_DEFAULT), "H5Pset_dxpl_mpio_chunk_opt");
  must(H5Dclose(dataset), "H5Dclose");
}

static void written_again(void) {
  const hid_t dataset = make("written again");
  const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  write_rows(dataset, 0, rank, 1);
  report();
  usleep(kShortWhileUs); /* lanes filter meanwhile */
  if (getenv("HDF5_VOL_CONNECTOR") != NULL && ranks > 1) judge_lanes();
  read_own(dataset, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  write_rows(dataset, 0, next, 2); /* over what another rank wrote */
  read_rows(dataset, 0, rank, transfer, last, 2, "rows that another rank wrote over");
  write_rows(dataset, 0, rank, 3);
  must(H5Fflush(file, H5F_SCOPE_LOCAL), "H5Fflush");
  MPI_Barrier(MPI_COMM_WORLD);
  read_rows(dataset, 0, next, H5P_DEFAULT, next, 3, "another rank's after a flush");
  MPI_Barrier(MPI_COMM_WORLD);
  write_rows(dataset, 0, rank, 3); /* chunks of the same size */
  must(H5Dclose(dataset), "H5Dclose");
}

static void grown(void) {
  const hid_t dataset = make("grown");
  hsize_t extent[2] = {(hsize_t)(2 * ranks) * kRows, kColumns};
  write_rows(dataset, 0, rank, 4);
  must(H5Dset_extent(dataset, extent), "H5Dset_extent");
  write_rows(dataset, (hsize_t)ranks * kRows, rank, 5);
  extent[1] += 700; /* what was written is numbered anew */
  must(H5Dset_extent(dataset, extent), "H5Dset_extent");
  read_own(dataset, 4);
  read_rows(dataset, (hsize_t)ranks * kRows, rank, transfer, rank, 5, "rows at the end");
  must(H5Dclose(dataset), "H5Dclose");
}

static void gone(void) {
  const hid_t dataset = make("gone"), open = make("gone, but open");
  write_rows(dataset, 0, rank, 6);
  write_rows(open, 0, rank, 7);
  must(H5Dclose(dataset), "H5Dclose");
  must(H5Ldelete(file, "gone", H5P_DEFAULT), "H5Ldelete");
  must(H5Ldelete(file, "gone, but open", H5P_DEFAULT), "H5Ldelete");
  read_own(open, 7);
  write_rows(open, 0, rank, 8);
  must(H5Dclose(open), "H5Dclose");
}

/* Two datasets in one call; and one rank writes nothing. */
static void several(void) {
  hid_t datasets[2] = {make("first"), make("second")}, types[2] = {H5T_NATIVE_INT, H5T_NATIVE_INT};
  hid_t memory[2] = {packed(), packed()};
  hid_t rows[2] = {rows_of(datasets[0], 0, rank), rows_of(datasets[1], 0, rank)};
  const void* buffers[2] = {values, values};
  for (int i = 0; i < kElements; ++i) values[i] = value(rank, 9, i);
  must(H5Dwrite_multi(2, datasets, types, memory, rows, transfer, buffers), "H5Dwrite_multi");
  read_rows(datasets[1], 0, rank, H5P_DEFAULT, rank, 9, "one of several");
  if (rank == 0) {
    H5Sselect_none(rows[0]);
    H5Sselect_none(memory[0]);
  }
  for (int i = 0; i < kElements; ++i) values[i] = value(rank, 10, i);
  must(H5Dwrite(datasets[0], H5T_NATIVE_INT, memory[0], rows[0], transfer, values), "H5Dwrite");
  read_rows(datasets[0], 0, rank, transfer, rank, rank == 0 ? 9 : 10, "what one rank left out");
  for (int i = 0; i < 2; ++i) {
    H5Sclose(memory[i]);
    H5Sclose(rows[i]);
    must(H5Dclose(datasets[i]), "H5Dclose");
  }
}

/* What HDF5 says of chunks, to a rank that asks alone. */
typedef struct {
  hsize_t bytes, chunks, of_one;
  H5D_space_status_t status;
  uint32_t mask, check;
  herr_t told;
} Sizes;

static Sizes sizes_of(hid_t dataset) {
  static unsigned char stored[1 << 16];
  const hsize_t one[2] = {(hsize_t)((rank + 1) % ranks) * kRows, 400}; /* of another rank */
  Sizes found;
  memset(&found, 0, sizeof found);
  found.bytes = H5Dget_storage_size(dataset);
  must(H5Dget_num_chunks(dataset, H5S_ALL, &found.chunks), "H5Dget_num_chunks");
  must(H5Dget_space_status(dataset, &found.status), "H5Dget_space_status");
  found.told = H5Dget_chunk_storage_size(dataset, one, &found.of_one);
  if (found.told < 0) found.of_one = 0;
  if (found.of_one != 0)
    must(H5Dread_chunk(dataset, H5P_DEFAULT, one, &found.mask, stored), "H5Dread_chunk");
  for (hsize_t i = 0; i < found.of_one; ++i) found.check = found.check * 31 + stored[i];
  return found;
}

static void check_sizes(hid_t dataset, const char* what) {
  const Sizes before = sizes_of(dataset);
  MPI_Barrier(MPI_COMM_WORLD); /* a flush is of all */
  must(H5Fflush(file, H5F_SCOPE_LOCAL), "H5Fflush");
  MPI_Barrier(MPI_COMM_WORLD);
  const Sizes after = sizes_of(dataset);
  judge(memcmp(&before, &after, sizeof before) == 0, what);
  if (rank != 0) return;
  printf("%llu bytes in %llu chunks, status %d, one of %llu, %x\n",
         (unsigned long long)before.bytes, (unsigned long long)before.chunks, (int)before.status,
         (unsigned long long)before.of_one, before.check);
}

/* One rank alone, after a barrier and without a flush. The others are in that barrier, or in the next. */
static void asked(void) {
  const hid_t dataset = make("asked");
  const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  write_rows(dataset, 0, rank, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  read_rows(dataset, 0, next, H5P_DEFAULT, next, 1, "another rank's rows");
  MPI_Barrier(MPI_COMM_WORLD);
  check_sizes(dataset, "sizes of what is new");
  write_rows(dataset, 0, rank, 2);
  write_rows(dataset, 0, next, 3); /* over what another rank wrote */
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    for (int who = 0; who < ranks; ++who)
      read_rows(dataset, 0, who, H5P_DEFAULT, (who + ranks - 1) % ranks, 3, "rows written twice");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  read_rows(dataset, 0, rank, H5P_DEFAULT, last, 3, "own rows, written by another rank since");
  check_sizes(dataset, "sizes of what is not new");
  must(H5Dclose(dataset), "H5Dclose");
  /* Half of it is written, and one rank writes nothing. */
  const hid_t half = make("half");
  hsize_t extent[2] = {(hsize_t)(2 * ranks) * kRows, kColumns};
  must(H5Dset_extent(half, extent), "H5Dset_extent");
  const hid_t rows = rows_of(half, 0, rank), memory = packed();
  if (rank == ranks - 1) {
    H5Sselect_none(rows);
    H5Sselect_none(memory);
  }
  must(H5Dwrite(half, H5T_NATIVE_INT, memory, rows, transfer, values), "H5Dwrite");
  H5Sclose(memory);
  H5Sclose(rows);
  check_sizes(half, "sizes of a half");
  must(H5Dclose(half), "H5Dclose");
}

/* A rank that asks does not wait for what another one's program does. */
static void asked_meanwhile(void) {
  const hid_t dataset = make("asked meanwhile");
  for (int step = 0; step < 4; ++step) {
    write_rows(dataset, 0, rank, step);
    if (rank == step % ranks) {
      for (int who = 0; who < ranks; ++who)
        read_rows(dataset, 0, who, H5P_DEFAULT, who, step,
                  "rows of a rank that does something else");
      for (int who = 0; who < ranks; ++who) {
        if (who != rank) MPI_Send(&step, 1, MPI_INT, who, 0, MPI_COMM_WORLD);
      }
    } else {
      int got;
      MPI_Recv(&got, 1, MPI_INT, step % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  must(H5Dclose(dataset), "H5Dclose");
}

/* Nobody selects anything: HDF5 makes an index of no chunks, or fails where it would have to convert. */
static void nothing(void) {
  const hid_t types[2] = {H5T_NATIVE_INT, H5T_NATIVE_DOUBLE};
  for (int i = 0; i < 2; ++i) {
    const hid_t dataset = make(i == 0 ? "nothing" : "nothing, converted");
    const hid_t rows = rows_of(dataset, 0, rank), memory = packed();
    H5Sselect_none(rows);
    H5Sselect_none(memory);
    H5O_native_info_t info;
    const herr_t written = H5Dwrite(dataset, types[i], memory, rows, transfer, converted);
    must(H5Oget_native_info(dataset, &info, H5O_NATIVE_INFO_META_SIZE), "H5Oget_native_info");
    if (rank == 0)
      printf("nothing: %d, an index of %llu bytes\n", written,
             (unsigned long long)info.meta_size.obj.index_size);
    H5Sclose(memory);
    H5Sclose(rows);
    must(H5Dclose(dataset), "H5Dclose");
  }
}

/* Ranks that read metadata together, one of which defers nothing any more: what it asks HDF5 must be what the others ask. */
static void opened_twice_by_one(const char* path, hid_t access) {
  char name[4096];
  snprintf(name, sizeof name, "%s.together", path);
  must(H5Pset_all_coll_metadata_ops(access, 1), "H5Pset_all_coll_metadata_ops");
  file = must(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate");
  const hid_t dataset = make("twice");
  write_rows(dataset, 0, rank, 1);
  must(H5Fflush(file, H5F_SCOPE_LOCAL), "H5Fflush");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == ranks - 1) {
    const hid_t again = must(H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen");
    const hid_t same = must(H5Dopen2(again, "twice", H5P_DEFAULT), "H5Dopen");
    read_rows(same, 0, 0, H5P_DEFAULT, 0, 1, "rows through a second file");
    H5Dclose(same);
    H5Fclose(again);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  write_rows(dataset, 0, rank, 2);
  read_rows(dataset, 0, rank, transfer, rank, 2, "rows after a second open");
  must(H5Dclose(dataset), "H5Dclose");
  must(H5Fclose(file), "H5Fclose");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 2) return 2;
  hsize_t chunk[2] = {10, 400}; /* the last ones of a row reach beyond it */
  transfer = H5Pcreate(H5P_DATASET_XFER);
  creation = H5Pcreate(H5P_DATASET_CREATE);
  uncached = H5Pcreate(H5P_DATASET_ACCESS);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  H5Pset_chunk(creation, 2, chunk);
  H5Pset_shuffle(creation);
  H5Pset_deflate(creation, 1);
  H5Pset_chunk_cache(uncached, 0, 0,
                     0); /* without, HDF5 1.14.6 hangs where reads and such writes mix */
  file = must(H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate");
  written_again();
  grown();
  gone();
  several();
  answers();
  asked();
  asked_meanwhile();
  nothing();
  must(H5Fclose(file), "H5Fclose");
  opened_twice_by_one(argv[1], access);
  H5Pclose(access);
  H5Pclose(uncached);
  H5Pclose(creation);
  H5Pclose(transfer);
  MPI_Finalize();
  return wrong;
}
