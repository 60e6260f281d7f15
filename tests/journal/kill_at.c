// Preloaded, it ends a program at a chosen change of storage. It counts the system calls that change files below a folder, by whatever thread:
// writes, truncations, allocations, syncs, and names that come, go and move. It knows nothing of the program or of the plugin.
//
//   KILL_AT_FOLDER=DIR  whose files are counted (without it, nothing is done)
//   KILL_AT=N           SIGKILL before the N-th such call (1, 2, ...); no later one is begun
//   KILL_ONLY=TEXT      only calls whose line in the log (below) contains it, such as "unlinkat f.h5-wal", or "write f.h5 0 "
//   KILL_STOP=1         SIGSTOP in place of SIGKILL; who continues it lets it go on as if nothing had been
//   KILL_TEAR=half      half of the N-th call's bytes are written first (calls that write none: as without)
//   KILL_TEAR=page      only what lies before the last page boundary in it: what a real kill inside write(2) can leave
//   KILL_COUNT=FILE     holds the number of calls so far, 8 bytes: a map, so that it is right whatever ends the program
//   KILL_LOG=FILE       gets a line for each call: number, function, file, offset, size
//   KILL_MORE=1         counts also what changes no file, but what others see of one: locks, closes, folders, modes; and messages and connections, wherever they go
//   KILL_SPARE=NAME     does nothing in a program of this name, which the program started
//
// What it does not see: stores through maps, io_uring, and what libc calls within itself (fopen).
// Invariant: without KILL_AT it is libc. Thread safety: any thread; calls that were begun before the N-th may end or not, as at any kill. A forked
// child is left alone and not counted.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim.h"

enum tear { NO_TEAR, TEAR_HALF, TEAR_PAGE };

static char folder[PATH_MAX];  // ends with a slash; empty: nothing to do
static long kill_at;
static const char* only;
static enum tear tear;
static int log_fd = -1;
static atomic_long own_calls;
static atomic_long* calls = &own_calls;
static atomic_int ended;
static int off, more, stop;

static void in_child(void) { off = 1; }

__attribute__((constructor)) static void begin(void) {
  const char* name = getenv("KILL_AT_FOLDER");
  const char* spare = getenv("KILL_SPARE");
  if (name == NULL || (spare != NULL && strcmp(spare, program_invocation_short_name) == 0) ||
      realpath(name, folder) == NULL) {
    folder[0] = 0;
    return;
  }
  strcat(folder, "/");
  if (getenv("KILL_AT") != NULL) kill_at = atol(getenv("KILL_AT"));
  only = getenv("KILL_ONLY");
  more = getenv("KILL_MORE") != NULL;
  stop = getenv("KILL_STOP") != NULL;
  const char* how = getenv("KILL_TEAR");
  if (how != NULL) tear = strcmp(how, "page") == 0 ? TEAR_PAGE : TEAR_HALF;
  const char* count = getenv("KILL_COUNT");
  if (count != NULL) {
    const int fd = open(count, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, sizeof *calls) != 0) abort();
    calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (calls == MAP_FAILED) abort();
    close(fd);
  }
  const char* log = getenv("KILL_LOG");
  if (log != NULL) {
    const int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    log_fd = fcntl(fd, F_DUPFD_CLOEXEC, 200);  // out of the way of programs that count descriptors
    close(fd);
  }
  pthread_atfork(NULL, NULL, in_child);
}

static int below(int dir, const char* name, char* path) {
  return folder[0] != 0 && !off && path_of(dir, name, path) &&
         strncmp(path, folder, strlen(folder)) == 0;
}

__attribute__((noreturn)) static void end(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

// Counts a call about to be made; ends the program if it is the one. Returns 1 if its bytes are to be torn.
static int counted(const char* function, const char* path, long long at, long long size,
                   int writes) {
  char words[PATH_MAX + 100], line[PATH_MAX + 130];
  snprintf(words, sizeof words, "%s %s %lld %lld", function, path + strlen(folder), at, size);
  if (only != NULL && strstr(words, only) == NULL) {
    if (atomic_load(&ended)) {
      for (;;) pause();
    }
    return 0;
  }
  const long number = atomic_fetch_add(calls, 1) + 1;
  if (log_fd >= 0) {
    const int length = snprintf(line, sizeof line, "%ld %s\n", number, words);
    plain_syscall(SYS_write, log_fd, (long)line, length);
  }
  if (kill_at == 0 || number < kill_at) return 0;
  if (stop) {
    if (number == kill_at) kill(getpid(), SIGSTOP);
    return 0;
  }
  if (number > kill_at) {  // another thread is about to end the program
    for (;;) pause();
  }
  atomic_store(&ended, 1);
  if (writes && tear != NO_TEAR) return 1;
  end();
}

// How much of `size` bytes at `at` a torn write leaves.
static size_t torn(off64_t at, size_t size) {
  if (tear == TEAR_HALF) return size / 2;
  const off64_t boundary = (at + (off64_t)size - 1) & ~(off64_t)4095;
  return boundary > at ? (size_t)(boundary - at) : 0;
}

// Writes the first bytes of what a vector names, and ends the program. `at` -1: where the descriptor stands.
__attribute__((noreturn)) static void tear_vector(int fd, const struct iovec* parts, int count,
                                                  off64_t at) {
  size_t left = torn(at < 0 ? lseek64(fd, 0, SEEK_CUR) : at, length_of(parts, count));
  for (int i = 0; i < count && left > 0; ++i) {
    const size_t piece = parts[i].iov_len < left ? parts[i].iov_len : left;
    const long done = at < 0 ? plain_syscall(SYS_write, fd, (long)parts[i].iov_base, (long)piece)
                             : (
                                   {
                                     REAL(pwrite64);
                                     (long)real(fd, parts[i].iov_base, piece, at);
                                   });
    if (done != (long)piece) break;
    if (at >= 0) at += (off64_t)piece;
    left -= piece;
  }
  end();
}

#define WRITES(function, fd, parts, count, at)                               \
  do {                                                                       \
    char path[PATH_MAX];                                                     \
    if (below(fd, NULL, path) &&                                             \
        counted(#function, path, at, (long long)length_of(parts, count), 1)) \
      tear_vector(fd, parts, count, at);                                     \
  } while (0)

ssize_t write(int fd, const void* data, size_t size) {
  REAL(write);
  const struct iovec part = {(void*)data, size};
  WRITES(write, fd, &part, 1, -1);
  return real(fd, data, size);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  REAL(writev);
  WRITES(writev, fd, parts, count, -1);
  return real(fd, parts, count);
}

#define PWRITE(function, offset)                                       \
  ssize_t function(int fd, const void* data, size_t size, offset at) { \
    REAL(function);                                                    \
    const struct iovec part = {(void*)data, size};                     \
    WRITES(function, fd, &part, 1, at);                                \
    return real(fd, data, size, at);                                   \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define PWRITEV(function, offset)                                             \
  ssize_t function(int fd, const struct iovec* parts, int count, offset at) { \
    REAL(function);                                                           \
    WRITES(function, fd, parts, count, at);                                   \
    return real(fd, parts, count, at);                                        \
  }
PWRITEV(pwritev, off_t)
PWRITEV(pwritev64, off64_t)

#define PWRITEV2(function, offset)                                                       \
  ssize_t function(int fd, const struct iovec* parts, int count, offset at, int flags) { \
    REAL(function);                                                                      \
    WRITES(function, fd, parts, count, at);                                              \
    return real(fd, parts, count, at, flags);                                            \
  }
PWRITEV2(pwritev2, off_t)
PWRITEV2(pwritev64v2, off64_t)

// A call that changes the file of a descriptor, or gives it room, or waits for its device: nothing to tear.
#define CHANGES(function, fd, at, size)                                            \
  do {                                                                             \
    char path[PATH_MAX];                                                           \
    if (below(fd, NULL, path)) counted(#function, path, at, (long long)(size), 0); \
  } while (0)

#define TRUNCATE(function, offset)    \
  int function(int fd, offset size) { \
    REAL(function);                   \
    CHANGES(function, fd, size, 0);   \
    return real(fd, size);            \
  }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define FALLOCATE(function, offset)                        \
  int function(int fd, int mode, offset at, offset size) { \
    REAL(function);                                        \
    CHANGES(function, fd, at, size);                       \
    return real(fd, mode, at, size);                       \
  }
FALLOCATE(fallocate, off_t)
FALLOCATE(fallocate64, off64_t)

#define POSIX_FALLOCATE(function, offset)        \
  int function(int fd, offset at, offset size) { \
    REAL(function);                              \
    CHANGES(function, fd, at, size);             \
    return real(fd, at, size);                   \
  }
POSIX_FALLOCATE(posix_fallocate, off_t)
POSIX_FALLOCATE(posix_fallocate64, off64_t)

#define SYNC(function)           \
  int function(int fd) {         \
    REAL(function);              \
    CHANGES(function, fd, 0, 0); \
    return real(fd);             \
  }
SYNC(fsync)
SYNC(fdatasync)

ssize_t copy_file_range(int in, off64_t* from, int out, off64_t* to, size_t size, unsigned flags) {
  REAL(copy_file_range);
  CHANGES(copy_file_range, out, to != NULL ? *to : -1, size);
  return real(in, from, out, to, size, flags);
}

#define SENDFILE(function, offset)                               \
  ssize_t function(int out, int in, offset* from, size_t size) { \
    REAL(function);                                              \
    CHANGES(function, out, -1, size);                            \
    return real(out, in, from, size);                            \
  }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

// A name that comes, goes or moves.
static void named(const char* function, int dir, const char* name) {
  char path[PATH_MAX];
  if (name != NULL && below(dir, name, path)) counted(function, path, 0, 0, 0);
}

int unlink(const char* name) {
  REAL(unlink);
  named("unlink", AT_FDCWD, name);
  return real(name);
}

int unlinkat(int dir, const char* name, int flags) {
  REAL(unlinkat);
  named("unlinkat", dir, name);
  return real(dir, name, flags);
}

int remove(const char* name) {
  REAL(remove);
  named("remove", AT_FDCWD, name);
  return real(name);
}

int rename(const char* from, const char* to) {
  REAL(rename);
  named("rename", AT_FDCWD, to);
  return real(from, to);
}

int renameat(int from_dir, const char* from, int to_dir, const char* to) {
  REAL(renameat);
  named("renameat", to_dir, to);
  return real(from_dir, from, to_dir, to);
}

int renameat2(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) {
  REAL(renameat2);
  named("renameat2", to_dir, to);
  return real(from_dir, from, to_dir, to, flags);
}

int link(const char* from, const char* to) {
  REAL(link);
  named("link", AT_FDCWD, to);
  return real(from, to);
}

int linkat(int from_dir, const char* from, int to_dir, const char* to, int flags) {
  REAL(linkat);
  named("linkat", to_dir, to);
  return real(from_dir, from, to_dir, to, flags);
}

int symlink(const char* target, const char* name) {
  REAL(symlink);
  named("symlink", AT_FDCWD, name);
  return real(target, name);
}

#define TRUNCATE_NAME(function, offset)         \
  int function(const char* name, offset size) { \
    REAL(function);                             \
    named(#function, AT_FDCWD, name);           \
    return real(name, size);                    \
  }
TRUNCATE_NAME(truncate, off_t)
TRUNCATE_NAME(truncate64, off64_t)

// Opens: those that may make a file, or cut it.
#define OPEN(function)                                  \
  int function(const char* name, int flags, ...) {      \
    REAL(function);                                     \
    MODE_OF(flags, mode)                                \
    if (MAKES(flags)) named(#function, AT_FDCWD, name); \
    return real(name, flags, mode);                     \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(function)                                    \
  int function(int dir, const char* name, int flags, ...) { \
    REAL(function);                                         \
    MODE_OF(flags, mode)                                    \
    if (MAKES(flags)) named(#function, dir, name);          \
    return real(dir, name, flags, mode);                    \
  }
OPENAT(openat)
OPENAT(openat64)

// KILL_MORE: what others see of a file.
#define LOCKS(command)                                                          \
  ((command) == F_SETLK || (command) == F_SETLKW || (command) == F_OFD_SETLK || \
   (command) == F_OFD_SETLKW)
#define FCNTL(function)                                                                  \
  int function(int fd, int command, ...) {                                               \
    REAL(function);                                                                      \
    va_list rest;                                                                        \
    va_start(rest, command);                                                             \
    void* word = va_arg(rest, void*);                                                    \
    va_end(rest);                                                                        \
    if (more && LOCKS(command)) CHANGES(function, fd, 0, ((struct flock*)word)->l_type); \
    return real(fd, command, word);                                                      \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

int flock(int fd, int how) {
  REAL(flock);
  if (more) CHANGES(flock, fd, 0, how);
  return real(fd, how);
}

int close(int fd) {
  REAL(close);
  if (more && fd != log_fd) CHANGES(close, fd, 0, 0);
  return real(fd);
}

int fchmod(int fd, mode_t mode) {
  REAL(fchmod);
  if (more) CHANGES(fchmod, fd, 0, mode);
  return real(fd, mode);
}

int mkdir(const char* name, mode_t mode) {
  REAL(mkdir);
  if (more) named("mkdir", AT_FDCWD, name);
  return real(name, mode);
}

int mkdirat(int dir, const char* name, mode_t mode) {
  REAL(mkdirat);
  if (more) named("mkdirat", dir, name);
  return real(dir, name, mode);
}

static void message(const char* function) {
  char path[PATH_MAX + 10];
  snprintf(path, sizeof path, "%ssocket", folder);
  if (more && folder[0] != 0 && !off) counted(function, path, 0, 0, 0);
}

#define MESSAGE(result, function, parameters, arguments) \
  result function parameters {                           \
    REAL(function);                                      \
    message(#function);                                  \
    return real arguments;                               \
  }
MESSAGE(ssize_t, send, (int fd, const void* data, size_t size, int flags), (fd, data, size, flags))
MESSAGE(ssize_t, sendmsg, (int fd, const struct msghdr* what, int flags), (fd, what, flags))
MESSAGE(ssize_t, recvmsg, (int fd, struct msghdr* what, int flags), (fd, what, flags))
MESSAGE(int, bind, (int fd, const struct sockaddr* to, socklen_t size), (fd, to, size))
MESSAGE(int, listen, (int fd, int length), (fd, length))
MESSAGE(int, connect, (int fd, const struct sockaddr* to, socklen_t size), (fd, to, size))
MESSAGE(ssize_t, sendto,
        (int fd, const void* data, size_t size, int flags, const struct sockaddr* to,
         socklen_t length),
        (fd, data, size, flags, to, length))

// The same by number: what a program calls past libc's functions.
long syscall(long number, ...) {
  REAL(syscall);
  long a[6];
  va_list more;
  va_start(more, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(more, long);
  va_end(more);
  const struct iovec part = {(void*)a[1], (size_t)a[2]};
  switch (number) {
    case SYS_write: WRITES(SYS_write, (int)a[0], &part, 1, -1); break;
    case SYS_pwrite64: WRITES(SYS_pwrite64, (int)a[0], &part, 1, a[3]); break;
    case SYS_pwritev:
    case SYS_pwritev2:
      WRITES(SYS_pwritev, (int)a[0], (const struct iovec*)a[1], (int)a[2], a[3]);
      break;
    case SYS_ftruncate: CHANGES(SYS_ftruncate, (int)a[0], a[1], 0); break;
    case SYS_fallocate: CHANGES(SYS_fallocate, (int)a[0], a[2], a[3]); break;
    case SYS_fsync:
    case SYS_fdatasync: CHANGES(SYS_fsync, (int)a[0], 0, 0); break;
    case SYS_copy_file_range: CHANGES(SYS_copy_file_range, (int)a[2], -1, a[4]); break;
    case SYS_unlink: named("SYS_unlink", AT_FDCWD, (const char*)a[0]); break;
    case SYS_unlinkat: named("SYS_unlinkat", (int)a[0], (const char*)a[1]); break;
    case SYS_rename: named("SYS_rename", AT_FDCWD, (const char*)a[1]); break;
    case SYS_renameat:
    case SYS_renameat2: named("SYS_renameat", (int)a[2], (const char*)a[3]); break;
    case SYS_linkat: named("SYS_linkat", (int)a[2], (const char*)a[3]); break;
    case SYS_openat:
      if (MAKES((int)a[2])) named("SYS_openat", (int)a[0], (const char*)a[1]);
      break;
    default: break;
  }
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
