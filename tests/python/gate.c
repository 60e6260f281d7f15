// Preloaded, a storage that tests stop and break: while the file that TIDELANE_TEST_GATE names exists, writes wait; while
// the same with ".broken" behind it exists, they fail.
//
// Invariant: without these files it is libc. Thread safety: any thread.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int passes(void) {
  const char* gate = getenv("TIDELANE_TEST_GATE");
  if (gate == NULL) return 1;
  char broken[4096];
  snprintf(broken, sizeof broken, "%s.broken", gate);
  while (access(gate, F_OK) == 0) usleep(1000);
  if (access(broken, F_OK) != 0) return 1;
  errno = EIO;
  return 0;
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  ssize_t (*real)(int, const void*, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
  return passes() ? real(fd, data, size, at) : -1;
}

ssize_t pwritev64(int fd, const struct iovec* parts, int count, off64_t at) {
  ssize_t (*real)(int, const struct iovec*, int, off64_t) = dlsym(RTLD_NEXT, "pwritev64");
  return passes() ? real(fd, parts, count, at) : -1;
}
