// Preloaded, it writes down what a program does to storage below a folder: each call with its bytes, when it begins and when it ends, whatever thread makes it; among
// them what the program reports of its commits, in the same order. replay.py makes of that what a power failure may leave. It knows nothing of the program or of the plugin.
//
//   RECORD_FOLDER=DIR   whose files are meant, and whose names (without it, nothing is done)
//   RECORD_TRACE=FILE   is gone on with: records, as below
//   RECORD_REPORT=FILE  what is written there is a mark in the trace
//   RECORD_END=N        SIGKILL before the N-th call (1, 2, ...); those that have begun have ended
//   RECORD_SLOW=US      syncs take up to so many microseconds more, as those of disks do
//   RECORD_FAIL=N       the N-th sync of a file is not made, and fails with EIO
//
// A record: struct record, then `name` bytes and `data` bytes. A call has two: at its begin with name and bytes, at its end with the result. Numbers begin at 1 in each process.
// What it cannot follow is recorded as STRANGE, for whoever reads the trace to refuse: shared maps that can be written, bytes that the kernel copies, symbolic links.
// What it does not see: io_uring, and what libc calls within itself (fopen). Closes and opens that change nothing are not recorded: they make nothing durable.
// Invariant: the order of records is one in which the calls can have happened. Thread safety: any thread. A forked child is left alone.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "shim.h"

enum kind { MARK, WRITE, SIZE, ROOM, SYNC, SYNC_FOLDER, SYNC_ALL, MAKE, RENAME, UNLINK, STRANGE };

struct record {
  uint32_t kind;
  uint32_t is_end;
  uint64_t number;
  uint64_t inode;
  int64_t at;  // offset, size, or of a MAKE: 1: it was not there, 2: it is cut, 4: it must be new
  int64_t result;  // of an end
  uint32_t name;
  uint32_t data;
};

static char folder[PATH_MAX], report[PATH_MAX];  // folder: ends with a slash; empty: nothing to do
static int trace_fd = -1;
static long end_at, fail_at, slow, calls, syncs, under_way;
static int off, ending;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t quiet = PTHREAD_COND_INITIALIZER;

static void in_child(void) { off = 1; }

__attribute__((constructor)) static void begin(void) {
  const char* name = getenv("RECORD_FOLDER");
  const char* trace = getenv("RECORD_TRACE");
  if (name == NULL || trace == NULL || realpath(name, folder) == NULL) {
    folder[0] = 0;
    return;
  }
  if (getenv("RECORD_REPORT") != NULL) strncpy(report, getenv("RECORD_REPORT"), PATH_MAX - 1);
  if (getenv("RECORD_END") != NULL) end_at = atol(getenv("RECORD_END"));
  if (getenv("RECORD_SLOW") != NULL) slow = atol(getenv("RECORD_SLOW"));
  if (getenv("RECORD_FAIL") != NULL) fail_at = atol(getenv("RECORD_FAIL"));
  const int fd = open(trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  trace_fd = fcntl(fd, F_DUPFD_CLOEXEC, 200);  // out of the way of programs that count descriptors
  if (trace_fd < 0) abort();
  close(fd);
  strcat(folder, "/");
  pthread_atfork(NULL, NULL, in_child);
}

static void put(const struct record* record, const char* name, const struct iovec* parts,
                int count) {
  struct iovec all[2 + 64] = {{(void*)record, sizeof *record}, {(void*)name, record->name}};
  for (int i = 0; i <= count; i += 64) {
    const int some = count - i < 64 ? count - i : 64;
    if (some > 0) memcpy(all + 2, parts + i, sizeof *parts * (size_t)some);
    const int from = i == 0 ? 0 : 2;
    const long wanted = (long)length_of(all + from, 2 + some - from);
    if (wanted != 0 &&
        plain_syscall(SYS_writev, trace_fd, (long)(all + from), 2 + some - from) != wanted)
      abort();
  }
}

// A call: from its begin to its end.
struct call {
  struct record record;
  int fails;  // it is not to be made
};

static struct call start(enum kind kind, uint64_t inode, const char* path, long long at,
                         const struct iovec* parts, int count) {
  struct call call = {{.kind = kind, .inode = inode, .at = at}, 0};
  const char* name = path == NULL ? "" : path + strlen(folder);
  call.record.name = (uint32_t)strlen(name);
  call.record.data = (uint32_t)length_of(parts, count);
  pthread_mutex_lock(&mutex);
  while (ending) pthread_cond_wait(&quiet, &mutex);
  if (++calls == end_at) {
    ending = 1;
    while (under_way != 0) pthread_cond_wait(&quiet, &mutex);
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  if (kind == SYNC && ++syncs == fail_at) call.fails = 1;
  ++under_way;
  call.record.number = (uint64_t)calls;
  put(&call.record, name, parts, count);
  pthread_mutex_unlock(&mutex);
  return call;
}

static void finish(struct call* call, long long result) {
  const int keep = errno;
  call->record.is_end = 1;
  call->record.result = result < 0 ? -keep : result;
  call->record.name = call->record.data = 0;
  pthread_mutex_lock(&mutex);
  put(&call->record, "", NULL, 0);
  --under_way;
  if (ending) pthread_cond_broadcast(&quiet);
  pthread_mutex_unlock(&mutex);
  errno = keep;
}

static int slowed(int result) {
  static __thread unsigned draw;
  const int keep = errno;
  if (draw == 0) draw = (unsigned)getpid() ^ (unsigned)(uintptr_t)&draw;
  draw = draw * 1103515245u + 12345u;
  if (slow != 0) usleep((useconds_t)(slow * (draw >> 16 & 0x3ff) / 1024));
  errno = keep;
  return result;
}

static void mark(const char* bytes, size_t size) {
  const struct iovec part = {(void*)bytes, size};
  const struct record record = {.kind = MARK, .is_end = 1, .data = (uint32_t)size};
  pthread_mutex_lock(&mutex);
  put(&record, "", &part, 1);
  pthread_mutex_unlock(&mutex);
}

static int is_on(void) { return folder[0] != 0 && !off; }

static int below(int dir, const char* name, char* path) {
  return is_on() && path_of(dir, name, path) && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_folder(int fd) {
  char path[PATH_MAX];
  return is_on() && path_of(fd, NULL, path) && strlen(path) + 1 == strlen(folder) &&
         strncmp(path, folder, strlen(path)) == 0;
}

// The file below the folder that a descriptor has open; 0: none. Also if it has no name any more.
static uint64_t inode_of(int fd) {
  char path[PATH_MAX];
  struct stat found;
  const int keep = errno;
  const int is_one = below(fd, NULL, path) && fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
  errno = keep;
  return is_one ? found.st_ino : 0;
}

static uint64_t inode_at(int dir, const char* name) {
  struct stat found;
  const int keep = errno;
  const int is_there = fstatat(dir, name, &found, AT_SYMLINK_NOFOLLOW) == 0;
  errno = keep;
  return is_there ? found.st_ino : 0;
}

static off64_t place(int fd) {
  struct stat found;
  if ((fcntl(fd, F_GETFL) & O_APPEND) != 0 && fstat(fd, &found) == 0) return found.st_size;
  return lseek64(fd, 0, SEEK_CUR);
}

// A mark is made when the report has it, so that nothing counts as acknowledged that the program was not told of.
static void mark_if_report(int fd, const void* data, ssize_t done) {
  char path[PATH_MAX];
  const int keep = errno;
  if (is_on() && done > 0 && report[0] != 0 && path_of(fd, NULL, path) && strcmp(path, report) == 0)
    mark(data, (size_t)done);
  errno = keep;
}

#define RECORDED(kind, inode, path, at, parts, count, made)            \
  do {                                                                 \
    struct call one = start(kind, inode, path, at, parts, count);      \
    if (one.fails) errno = EIO;                                        \
    __typeof__(made) result = one.fails ? (__typeof__(made))-1 : made; \
    finish(&one, (long long)result);                                   \
    return result;                                                     \
  } while (0)

#define WRITES(fd, parts, count, at, made)                                                         \
  do {                                                                                             \
    const uint64_t inode = inode_of(fd);                                                           \
    if (inode != 0) RECORDED(WRITE, inode, NULL, (at) < 0 ? place(fd) : (at), parts, count, made); \
  } while (0)

ssize_t write(int fd, const void* data, size_t size) {
  REAL(write);
  const struct iovec part = {(void*)data, size};
  WRITES(fd, &part, 1, -1, real(fd, data, size));
  const ssize_t done = real(fd, data, size);
  mark_if_report(fd, data, done);
  return done;
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  REAL(writev);
  WRITES(fd, parts, count, -1, real(fd, parts, count));
  return real(fd, parts, count);
}

#define PWRITE(function, offset)                                       \
  ssize_t function(int fd, const void* data, size_t size, offset at) { \
    REAL(function);                                                    \
    const struct iovec part = {(void*)data, size};                     \
    WRITES(fd, &part, 1, at, real(fd, data, size, at));                \
    return real(fd, data, size, at);                                   \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define PWRITEV(function, offset)                                             \
  ssize_t function(int fd, const struct iovec* parts, int count, offset at) { \
    REAL(function);                                                           \
    WRITES(fd, parts, count, at, real(fd, parts, count, at));                 \
    return real(fd, parts, count, at);                                        \
  }
PWRITEV(pwritev, off_t)
PWRITEV(pwritev64, off64_t)

#define PWRITEV2(function, offset)                                                       \
  ssize_t function(int fd, const struct iovec* parts, int count, offset at, int flags) { \
    REAL(function);                                                                      \
    WRITES(fd, parts, count, at, real(fd, parts, count, at, flags));                     \
    return real(fd, parts, count, at, flags);                                            \
  }
PWRITEV2(pwritev2, off_t)
PWRITEV2(pwritev64v2, off64_t)

#define TRUNCATE(function, offset)                                              \
  int function(int fd, offset size) {                                           \
    REAL(function);                                                             \
    const uint64_t inode = inode_of(fd);                                        \
    if (inode != 0) RECORDED(SIZE, inode, NULL, size, NULL, 0, real(fd, size)); \
    return real(fd, size);                                                      \
  }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

// Without FALLOC_FL_KEEP_SIZE the file may become longer; other modes change bytes.
#define FALLOCATE(function, offset)                                              \
  int function(int fd, int mode, offset at, offset size) {                       \
    REAL(function);                                                              \
    const uint64_t inode = inode_of(fd);                                         \
    const enum kind kind = mode == 0 ? ROOM : mode == 1 ? MARK : STRANGE;        \
    if (inode != 0 && kind != MARK)                                              \
      RECORDED(kind, inode, NULL, at + size, NULL, 0, real(fd, mode, at, size)); \
    return real(fd, mode, at, size);                                             \
  }
FALLOCATE(fallocate, off_t)
FALLOCATE(fallocate64, off64_t)

#define POSIX_FALLOCATE(function, offset)                                                \
  int function(int fd, offset at, offset size) {                                         \
    REAL(function);                                                                      \
    const uint64_t inode = inode_of(fd);                                                 \
    if (inode != 0) RECORDED(ROOM, inode, NULL, at + size, NULL, 0, real(fd, at, size)); \
    return real(fd, at, size);                                                           \
  }
POSIX_FALLOCATE(posix_fallocate, off_t)
POSIX_FALLOCATE(posix_fallocate64, off64_t)

#define SYNCS(function)                                                              \
  int function(int fd) {                                                             \
    REAL(function);                                                                  \
    const uint64_t inode = inode_of(fd);                                             \
    if (inode != 0) RECORDED(SYNC, inode, NULL, 0, NULL, 0, slowed(real(fd)));       \
    if (is_folder(fd)) RECORDED(SYNC_FOLDER, 0, NULL, 0, NULL, 0, slowed(real(fd))); \
    return real(fd);                                                                 \
  }
SYNCS(fsync)
SYNCS(fdatasync)

int syncfs(int fd) {
  REAL(syncfs);
  if (is_on()) RECORDED(SYNC_ALL, 0, NULL, 0, NULL, 0, real(fd));
  return real(fd);
}

void sync(void) {
  REAL(sync);
  if (!is_on()) return real();
  struct call call = start(SYNC_ALL, 0, NULL, 0, NULL, 0);
  real();
  finish(&call, 0);
}

#define STRANGE_IF(is_meant, made)                              \
  do {                                                          \
    if (is_meant) RECORDED(STRANGE, 0, NULL, 0, NULL, 0, made); \
  } while (0)

ssize_t copy_file_range(int in, off64_t* from, int out, off64_t* to, size_t size, unsigned flags) {
  REAL(copy_file_range);
  STRANGE_IF(inode_of(out) != 0, real(in, from, out, to, size, flags));
  return real(in, from, out, to, size, flags);
}

#define SENDFILE(function, offset)                               \
  ssize_t function(int out, int in, offset* from, size_t size) { \
    REAL(function);                                              \
    STRANGE_IF(inode_of(out) != 0, real(out, in, from, size));   \
    return real(out, in, from, size);                            \
  }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

#define MMAP(function, offset)                                                                 \
  void* function(void* address, size_t size, int prot, int flags, int fd, offset at) {         \
    REAL(function);                                                                            \
    STRANGE_IF(                                                                                \
        fd >= 0 && (flags & MAP_SHARED) != 0 && (prot & PROT_WRITE) != 0 && inode_of(fd) != 0, \
        real(address, size, prot, flags, fd, at));                                             \
    return real(address, size, prot, flags, fd, at);                                           \
  }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

// Names that come, go and move.
#define NAMED(kind, dir, name, made)                                                         \
  do {                                                                                       \
    char path[PATH_MAX];                                                                     \
    if (below(dir, name, path)) RECORDED(kind, inode_at(dir, name), path, 0, NULL, 0, made); \
  } while (0)

int unlink(const char* name) {
  REAL(unlink);
  NAMED(UNLINK, AT_FDCWD, name, real(name));
  return real(name);
}

int unlinkat(int dir, const char* name, int flags) {
  REAL(unlinkat);
  NAMED(UNLINK, dir, name, real(dir, name, flags));
  return real(dir, name, flags);
}

int remove(const char* name) {
  REAL(remove);
  NAMED(UNLINK, AT_FDCWD, name, real(name));
  return real(name);
}

// The bytes of its record are the new name.
#define RENAMED(from_dir, from, to_dir, to, made)                                     \
  do {                                                                                \
    char old[PATH_MAX], new[PATH_MAX];                                                \
    if (below(from_dir, from, old) && below(to_dir, to, new)) {                       \
      const struct iovec part = {new + strlen(folder), strlen(new + strlen(folder))}; \
      RECORDED(RENAME, inode_at(from_dir, from), old, 0, &part, 1, made);             \
    }                                                                                 \
  } while (0)

int rename(const char* from, const char* to) {
  REAL(rename);
  RENAMED(AT_FDCWD, from, AT_FDCWD, to, real(from, to));
  return real(from, to);
}

int renameat(int from_dir, const char* from, int to_dir, const char* to) {
  REAL(renameat);
  RENAMED(from_dir, from, to_dir, to, real(from_dir, from, to_dir, to));
  return real(from_dir, from, to_dir, to);
}

int renameat2(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) {
  REAL(renameat2);
  RENAMED(from_dir, from, to_dir, to, real(from_dir, from, to_dir, to, flags));
  return real(from_dir, from, to_dir, to, flags);
}

int link(const char* from, const char* to) {
  REAL(link);
  char path[PATH_MAX];
  STRANGE_IF(below(AT_FDCWD, to, path), real(from, to));
  return real(from, to);
}

int linkat(int from_dir, const char* from, int to_dir, const char* to, int flags) {
  REAL(linkat);
  char path[PATH_MAX];
  STRANGE_IF(below(to_dir, to, path), real(from_dir, from, to_dir, to, flags));
  return real(from_dir, from, to_dir, to, flags);
}

int symlink(const char* target, const char* name) {
  REAL(symlink);
  char path[PATH_MAX];
  STRANGE_IF(below(AT_FDCWD, name, path), real(target, name));
  return real(target, name);
}

#define TRUNCATE_NAME(function, offset)                                                \
  int function(const char* name, offset size) {                                        \
    REAL(function);                                                                    \
    char path[PATH_MAX];                                                               \
    const uint64_t inode = below(AT_FDCWD, name, path) ? inode_at(AT_FDCWD, name) : 0; \
    if (inode != 0) RECORDED(SIZE, inode, NULL, size, NULL, 0, real(name, size));      \
    return real(name, size);                                                           \
  }
TRUNCATE_NAME(truncate, off_t)
TRUNCATE_NAME(truncate64, off64_t)

// An open that may make a file, or cut it. Its inode is known at the end.
static struct call open_begins(int dir, const char* name, int flags) {
  char path[PATH_MAX];
  struct call none = {{.number = 0}, 0};
  if (!MAKES(flags) || !below(dir, name, path)) return none;
  if ((flags & O_TMPFILE) == O_TMPFILE) return start(STRANGE, 0, path, 0, NULL, 0);
  const int at =
      (inode_at(dir, name) == 0) | ((flags & O_TRUNC) != 0) << 1 | ((flags & O_EXCL) != 0) << 2;
  return start(MAKE, 0, path, at, NULL, 0);
}

static int open_ends(struct call* call, int fd) {
  struct stat found;
  if (call->record.number == 0) return fd;
  const int keep = errno;
  if (fd >= 0 && fstat(fd, &found) == 0) call->record.inode = found.st_ino;
  errno = keep;
  finish(call, fd);
  return fd;
}

#define OPEN(function)                                     \
  int function(const char* name, int flags, ...) {         \
    REAL(function);                                        \
    MODE_OF(flags, mode)                                   \
    struct call call = open_begins(AT_FDCWD, name, flags); \
    return open_ends(&call, real(name, flags, mode));      \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(function)                                    \
  int function(int dir, const char* name, int flags, ...) { \
    REAL(function);                                         \
    MODE_OF(flags, mode)                                    \
    struct call call = open_begins(dir, name, flags);       \
    return open_ends(&call, real(dir, name, flags, mode));  \
  }
OPENAT(openat)
OPENAT(openat64)

// By number: what a program calls past libc's functions. Only those that the plugin has a reason for; others that change files are strange.
long syscall(long number, ...) {
  REAL(syscall);
  long a[6];
  va_list more;
  va_start(more, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(more, long);
  va_end(more);
  switch (number) {
    case SYS_renameat2:
      RENAMED((int)a[0], (const char*)a[1], (int)a[2], (const char*)a[3],
              real(number, a[0], a[1], a[2], a[3], a[4], a[5]));
      break;
    case SYS_write:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_fsync:
    case SYS_fdatasync:
      STRANGE_IF(inode_of((int)a[0]) != 0, real(number, a[0], a[1], a[2], a[3], a[4], a[5]));
      break;
    default: break;
  }
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
