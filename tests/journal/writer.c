// A small HDF5 program whose file at commit k follows from k alone, to be killed at any time; and the program that reads it.
//
//   writer --file FILE --report FILE [--steps N] [--rows N] [--state N] [--latest] [--close-every N] [--async] [--pause MS] [--continue] [--fsync] [--leave close|exit|now]
//   writer --read FILE [--mode r|r+]
//
// Each step appends rows (or cuts them), overwrites the state, sets attributes, makes a dataset anew, and commits: by a flush, or by a close. The report gets lines of
// JSON, as writer.py's: ["begin", name, k, {"commit": k}], ["done", name, k], ["exits", name], and ["found", name, {...}] with --continue. --read prints {"portrait": {"commit": k}} if
// every byte is that of commit k, {"portrait": {"/": "group"}} if there is nothing in it, else {"refused": why}. --leave: how it ends: a close, an exit with the file open (both commit), or _exit. --fsync: after
// each flush and close the program syncs the file by its name, as one may that does not know of journals.
// Invariant: of all that is in the file only the attribute "k" is not checked against k. One thread.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

enum { NOTES = 40 };

static const char *path, *report = "/dev/null", *mode = "r", *leave = "close";
static long steps = 20, rows = 100, state = 4096, close_every, pause_ms;
static int latest, explicitly, go_on, reading, syncing, report_fd;
static char why[1000];

#define MUST(call)                                                  \
  do {                                                              \
    if ((call) < 0) {                                               \
      fprintf(stderr, "writer.c:%d: %s failed\n", __LINE__, #call); \
      H5Eprint2(H5E_DEFAULT, stderr);                               \
      _exit(4);                                                     \
    }                                                               \
  } while (0)

// What is in the file at commit k.
static long rows_at(long k) { return k % 10 == 9 ? k * rows / 2 : k * rows; }
static long turn_at(long k) { return k % 3 == 0 ? 700 + 13 * (k % 7) : 50; }
static long turned_at(long k) {
  return k - k % 3;
}  // the step that made the dataset "turn" that is there at k
static int64_t row_value(long i) { return i * 7919 + 13; }
static int64_t state_value(long k, long i) { return k % 11 == 10 ? 0 : k * 1000003 + i; }
static int64_t turn_value(long k, long i) { return k * 31 + i; }

static void say(const char* word, long k) {
  char line[500];
  const char* slash = strrchr(path, '/');
  int length = snprintf(line, sizeof line, "[\"%s\", \"%s\"", word, slash ? slash + 1 : path);
  const int numbered = strcmp(word, "begin") == 0 || strcmp(word, "done") == 0,
            pictured = strcmp(word, "begin") == 0 || strcmp(word, "found") == 0;
  if (numbered) length += snprintf(line + length, sizeof line - length, ", %ld", k);
  if (pictured)
    length += snprintf(line + length, sizeof line - length,
                       k < 0 ? ", {\"\": \"empty\"}" : ", {\"commit\": %ld}", k);
  length += snprintf(line + length, sizeof line - length, "]\n");
  if (write(report_fd, line, length) != length) _exit(5);
}

static void sync_by_name(void) {
  if (!syncing) return;
  const int fd = open(path, O_RDONLY);
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", path);
  *(strrchr(folder, '/') + 1) = 0;
  const int folder_fd = open(folder, O_RDONLY | O_DIRECTORY);
  MUST(fsync(fd));
  MUST(fsync(folder_fd));
  close(fd), close(folder_fd);
}

static hid_t access_list(void) {
  const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  if (latest) MUST(H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
  MUST(H5Pset_fclose_degree(list, H5F_CLOSE_STRONG));
  return list;
}

static void set_number(hid_t owner, const char* name, int64_t number) {
  const hid_t scalar = H5Screate(H5S_SCALAR);
  const hid_t attribute = H5Aexists(owner, name) > 0 ? H5Aopen(owner, name, H5P_DEFAULT)
                                                     : H5Acreate2(owner, name, H5T_NATIVE_INT64,
                                                                  scalar, H5P_DEFAULT, H5P_DEFAULT);
  MUST(attribute);
  MUST(H5Awrite(attribute, H5T_NATIVE_INT64, &number));
  MUST(H5Aclose(attribute));
  MUST(H5Sclose(scalar));
}

// What is in the file before its first step.
static void furnish(hid_t file) {
  const hsize_t none = 0, unlimited = H5S_UNLIMITED, chunk = 64, all = (hsize_t)state;
  const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
  MUST(H5Pset_chunk(layout, 1, &chunk));
  hid_t space = H5Screate_simple(1, &none, &unlimited);
  hid_t made = H5Dcreate2(file, "rows", H5T_STD_I64LE, space, H5P_DEFAULT, layout, H5P_DEFAULT);
  MUST(made);
  H5Dclose(made), H5Sclose(space), H5Pclose(layout);
  space = H5Screate_simple(1, &all, NULL);
  MUST(made =
           H5Dcreate2(file, "state", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Dclose(made), H5Sclose(space);
  MUST(made = H5Gcreate2(file, "notes", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Gclose(made);
}

static hid_t create(void) {
  const hid_t list = access_list();
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
  MUST(file);
  H5Pclose(list);
  furnish(file);
  return file;
}

static hid_t open_file(unsigned how) {
  const hid_t list = access_list();
  const hid_t file = H5Fopen(path, how, list);
  if (file >= 0) H5Pclose(list);  // it would clear what HDF5 has to say
  return file;
}

// Writes values [from, to) of a dataset; with an event set if the command line says so.
static void put(hid_t dataset, long from, long to, const int64_t* values, hid_t events) {
  if (to <= from) return;
  const hsize_t begin = (hsize_t)from, count = (hsize_t)(to - from);
  const hid_t memory = H5Screate_simple(1, &count, NULL), space = H5Dget_space(dataset);
  MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, &begin, NULL, &count, NULL));
  if (explicitly) {
    MUST(H5Dwrite_async(dataset, H5T_NATIVE_INT64, memory, space, H5P_DEFAULT, values, events));
  } else {
    MUST(H5Dwrite(dataset, H5T_NATIVE_INT64, memory, space, H5P_DEFAULT, values));
  }
  H5Sclose(memory), H5Sclose(space);
}

static int64_t* values_of(long from, long to, int64_t (*value)(long, long), long k) {
  int64_t* values = malloc(sizeof *values * (size_t)(to > from ? to - from : 1));
  for (long i = from; i < to; ++i) values[i - from] = value(k, i);
  return values;
}

static int64_t any_row(long k, long i) { return (void)k, row_value(i); }

static void step(hid_t file, long k, hid_t events) {
  const hid_t row_set = H5Dopen2(file, "rows", H5P_DEFAULT),
              state_set = H5Dopen2(file, "state", H5P_DEFAULT);
  const hid_t notes = H5Gopen2(file, "notes", H5P_DEFAULT);
  MUST(row_set);
  MUST(state_set);
  MUST(notes);
  const hsize_t length = (hsize_t)rows_at(k);
  MUST(H5Dset_extent(row_set, &length));
  int64_t* new_rows = values_of(rows_at(k - 1), rows_at(k), any_row, k);
  put(row_set, rows_at(k - 1), rows_at(k), new_rows, events);
  int64_t* all = values_of(0, state, state_value, k);
  put(state_set, 0, state, all, events);
  char name[30];
  snprintf(name, sizeof name, "note%ld", k % NOTES);
  set_number(notes, name, k);
  if (k % 3 == 0 || k == 1) {
    if (H5Lexists(file, "turn", H5P_DEFAULT) > 0) MUST(H5Ldelete(file, "turn", H5P_DEFAULT));
    const long made_at = turned_at(k);
    const hsize_t size = (hsize_t)turn_at(made_at);
    const hid_t space = H5Screate_simple(1, &size, NULL);
    const hid_t turn =
        H5Dcreate2(file, "turn", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    MUST(turn);
    int64_t* values = values_of(0, (long)size, turn_value, made_at);
    MUST(H5Dwrite(turn, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    free(values), H5Dclose(turn), H5Sclose(space);
  }
  set_number(file, "k", k);
  size_t unfinished;
  hbool_t failed;
  if (explicitly) MUST(H5ESwait(events, H5ES_WAIT_FOREVER, &unfinished, &failed));
  free(new_rows), free(all);
  H5Dclose(row_set), H5Dclose(state_set), H5Gclose(notes);
}

static void flush(hid_t file, hid_t events) {
  if (!explicitly) {
    MUST(H5Fflush(file, H5F_SCOPE_GLOBAL));
    return;
  }
  size_t unfinished;
  hbool_t failed;
  MUST(H5Fflush_async(file, H5F_SCOPE_GLOBAL, events));
  MUST(H5ESwait(events, H5ES_WAIT_FOREVER, &unfinished, &failed));
  if (failed) _exit(6);
}

// Reading: 1 if right; else `why` says what is not.
static int wrong(const char* what, long at, long k) {
  snprintf(why, sizeof why, "%s at %ld is not that of commit %ld", what, at, k);
  return 0;
}

static int number_of(hid_t owner, const char* name, int64_t* number) {
  const hid_t attribute = H5Aopen(owner, name, H5P_DEFAULT);
  const int right = attribute >= 0 && H5Aread(attribute, H5T_NATIVE_INT64, number) >= 0;
  if (attribute >= 0) H5Aclose(attribute);
  return right;
}

static int same(hid_t file, const char* name, long length, int64_t (*value)(long, long), long at,
                long k) {
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  if (dataset < 0) return wrong(name, -1, k);
  const hid_t space = H5Dget_space(dataset);
  const hssize_t found = H5Sget_simple_extent_npoints(space);
  H5Sclose(space);
  if (found != length) return wrong(name, (long)found, k);
  int64_t* values = malloc(sizeof *values * (size_t)(length + 1));
  int right = H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
  if (!right) wrong(name, -2, k);
  for (long i = 0; right && i < length; ++i) {
    if (values[i] != value(at, i)) right = wrong(name, i, k);
  }
  free(values), H5Dclose(dataset);
  return right;
}

// HDF5 makes a file of one that has no bytes when it is opened for writing: with a root group, and nothing in it.
static int is_bare(hid_t file) {
  H5G_info_t info;
  return H5Gget_info(file, &info) >= 0 && info.nlinks == 0;
}

// The commit that the file holds, whole; -1: none of them.
static long commit_of(hid_t file) {
  int64_t k, note;
  if (!number_of(file, "k", &k)) return wrong("k", 0, -1), -1;
  const hid_t space =
      H5Dopen2(file, "state", H5P_DEFAULT);  // its length is the command line's, not k's
  if (space < 0) return wrong("state", -1, k), -1;
  const hid_t extent = H5Dget_space(space);
  const long length = (long)H5Sget_simple_extent_npoints(extent);
  H5Sclose(extent), H5Dclose(space);
  if (length != state) return wrong("state's length", length, k), -1;
  if (!same(file, "rows", rows_at(k), any_row, k, k) ||
      !same(file, "state", state, state_value, k, k))
    return -1;
  if (!same(file, "turn", turn_at(turned_at(k)), turn_value, turned_at(k), k)) return -1;
  const hid_t notes = H5Gopen2(file, "notes", H5P_DEFAULT);
  if (notes < 0) return wrong("notes", 0, k), -1;
  for (long n = k > NOTES ? k - NOTES + 1 : 1; n <= k; ++n) {
    char name[30];
    snprintf(name, sizeof name, "note%ld", n % NOTES);
    if (!number_of(notes, name, &note) || note != n) return wrong("note", n, k), -1;
  }
  H5O_info2_t info;
  const int many = H5Oget_info3(notes, &info, H5O_INFO_NUM_ATTRS) >= 0 &&
                   (long)info.num_attrs != (k < NOTES ? k : NOTES);
  H5Gclose(notes);
  if (many) return wrong("number of notes", (long)info.num_attrs, k), -1;
  return (long)k;
}

static herr_t keep_words(unsigned n, const H5E_error2_t* error, void* all) {
  (void)all;
  if (error->desc != NULL && strlen(why) + strlen(error->desc) + 3 < sizeof why) {
    if (n > 0) strcat(why, ": ");
    strcat(why, error->desc);
  }
  return 0;
}

static void print_words(void) {
  for (char* c = why; *c; ++c)
    *c = *c == '"' || *c == '\\' ? '\'' : (unsigned char)*c < ' ' ? ' ' : *c;
  printf("{\"refused\": \"%s\"}\n", why);
}

static int read_file(void) {
  struct stat about;
  if (strcmp(mode, "r") == 0 && (stat(path, &about) != 0 || about.st_size == 0))
    return puts("{\"portrait\": {\"\": \"empty\"}}"), 0;
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  const hid_t file = open_file(strcmp(mode, "r") == 0 ? H5F_ACC_RDONLY : H5F_ACC_RDWR);
  if (file < 0) {
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_words, NULL);
    return print_words(), 0;
  }
  const long k = is_bare(file) ? 0 : commit_of(file);
  if (H5Fclose(file) < 0) strcpy(why, "the close failed");
  if (why[0] != 0) return print_words(), 0;
  if (k == 0) return puts("{\"portrait\": {\"/\": \"group\"}}"), 0;
  return printf("{\"portrait\": {\"commit\": %ld}}\n", k), 0;
}

// The file as a killed program left it; one that cannot be opened is begun anew.
static hid_t found(long* k) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  const hid_t file = open_file(H5F_ACC_RDWR);
  H5Eset_auto2(H5E_DEFAULT, (H5E_auto2_t)H5Eprint2, stderr);
  *k = 0;
  if (file < 0) return say("found", -1), create();
  if (is_bare(file)) return say("found", -1), furnish(file), file;
  *k = commit_of(file);
  if (*k < 0) {
    fprintf(stderr, "what was found: %s\n", why);
    _exit(3);
  }
  say("found", *k);
  return file;
}

static void arguments(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    const char* word = words[i];
    if (strcmp(word, "--latest") == 0) {
      latest = 1;
    } else if (strcmp(word, "--async") == 0) {
      explicitly = 1;
    } else if (strcmp(word, "--continue") == 0) {
      go_on = 1;
    } else if (strcmp(word, "--fsync") == 0) {
      syncing = 1;
    } else if (i + 1 == count) {
      fprintf(stderr, "%s?\n", word), exit(2);
    } else if (strcmp(word, "--file") == 0) {
      path = words[++i];
    } else if (strcmp(word, "--read") == 0) {
      path = words[++i], reading = 1;
    } else if (strcmp(word, "--report") == 0) {
      report = words[++i];
    } else if (strcmp(word, "--mode") == 0) {
      mode = words[++i];
    } else if (strcmp(word, "--leave") == 0) {
      leave = words[++i];
    } else if (strcmp(word, "--steps") == 0) {
      steps = atol(words[++i]);
    } else if (strcmp(word, "--rows") == 0) {
      rows = atol(words[++i]);
    } else if (strcmp(word, "--state") == 0) {
      state = atol(words[++i]);
    } else if (strcmp(word, "--pause") == 0) {
      pause_ms = atol(words[++i]);
    } else if (strcmp(word, "--close-every") == 0) {
      close_every = atol(words[++i]);
    } else {
      fprintf(stderr, "%s?\n", word), exit(2);
    }
  }
}

int main(int count, char** words) {
  arguments(count, words);
  if (reading) return read_file();
  report_fd = open(report, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (path == NULL || report_fd < 0) return 2;
  long k = 0;
  const hid_t events = explicitly ? H5EScreate() : H5I_INVALID_HID;
  hid_t file = go_on ? found(&k) : create();
  for (const long last = k + steps; k < last; usleep((useconds_t)pause_ms * 1000)) {
    step(file, ++k, events);
    say("begin", k);
    if (close_every > 0 && k % close_every == 0) {
      MUST(H5Fclose(file));
      sync_by_name();
      say("done", k);
      MUST(file = open_file(H5F_ACC_RDWR));
    } else {
      flush(file, events);
      sync_by_name();
      say("done", k);
    }
  }
  step(file, ++k, events);
  if (strcmp(leave, "now") == 0) _exit(0);
  say("begin", k);
  if (strcmp(leave, "close") == 0) {
    MUST(H5Fclose(file));
    sync_by_name();
    say("done", k);
  } else {
    say("exits", k);
  }
  if (explicitly) H5ESclose(events);
  return 0;
}
