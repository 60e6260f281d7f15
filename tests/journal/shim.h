// What the preloaded shims share (kill_at.c, record.c): libc's own functions, and whose path a call is about.
//
// Thread safety: any thread.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

// libc's own function, found once.
#define REAL(function)               \
  static __typeof__(&function) real; \
  if (real == NULL) real = (__typeof__(real))dlsym(RTLD_NEXT, #function)

static long plain_syscall(long number, long a, long b, long c) {
  REAL(syscall);
  return real(number, a, b, c);
}

// Writes the path of `name`, which is relative to `dir` (a descriptor or AT_FDCWD), without links in its folder. name NULL: of the descriptor itself.
static int path_of(int dir, const char* name, char* path) {
  char link[64], whole[2 * PATH_MAX];
  const int keep = errno;
  whole[0] = 0;
  if (name == NULL || (name[0] != '/' && dir != AT_FDCWD)) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    const ssize_t length = readlink(link, whole, PATH_MAX - 1);
    errno = keep;
    if (length < 0) return 0;
    whole[length] = 0;
    if (name == NULL) return strcpy(path, whole), 1;
    strcat(whole, "/");
  }
  strncat(whole, name, PATH_MAX);
  char* slash = strrchr(whole, '/');
  const char* last = slash != NULL ? slash + 1 : whole;
  if (slash != NULL) *slash = 0;
  char base[PATH_MAX];
  if (realpath(slash == whole ? "/" : slash != NULL ? whole : ".", base) == NULL)
    return errno = keep, 0;
  errno = keep;
  return snprintf(path, PATH_MAX, "%s/%s", base, last) < PATH_MAX;
}

static size_t length_of(const struct iovec* parts, int count) {
  size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  return size;
}

// Whether an open may make a file, or cut it; and the mode that it was given.
#define MAKES(flags) (((flags) & (O_CREAT | O_TRUNC)) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE)
#define MODE_OF(flags, mode)                                            \
  int mode = 0;                                                         \
  if (((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE) { \
    va_list more;                                                       \
    va_start(more, flags);                                              \
    mode = va_arg(more, int);                                           \
    va_end(more);                                                       \
  }
