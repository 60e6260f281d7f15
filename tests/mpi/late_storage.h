/* For programs of two ranks: MPI-IO's writes of one take a while, and the plugin's of the other wait until such a one has begun, so that what
 * goes wrong where ranks do not meet is no matter of luck. */
#ifndef TIDELANE_TESTS_LATE_STORAGE_H
#define TIDELANE_TESTS_LATE_STORAGE_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kHeldUs = 300000, kLongestUs = 1000000 };

static atomic_int holding;
static char held[4096]; /* a file that is there as soon as a write of any rank is held */

/* MPI-IO's own writes; the plugin's lanes call pwritev64. */
static void hold(void) {
  if (!atomic_load(&holding) || gettid() != getpid()) return;
  const int told = open(held, O_CREAT | O_WRONLY, 0600);
  if (told >= 0) close(told);
  usleep(kHeldUs);
}
__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* bytes, size_t size,
                                                      off_t at) {
  hold();
  return pwrite64(fd, bytes, size, at);
}
__attribute__((visibility("default"))) ssize_t pwritev(int fd, const struct iovec* parts, int count,
                                                       off_t at) {
  typedef ssize_t (*Write)(int, const struct iovec*, int, off_t);
  hold();
  return ((Write)dlsym(RTLD_NEXT, "pwritev64"))(fd, parts, count, at);
}

/* The plugin's own: not before the other rank has read and is about to write. Not for ever, since that one waits for this
 * write where the rule is obeyed. */
static atomic_int late;
__attribute__((visibility("default"))) ssize_t pwritev64(int fd, const struct iovec* parts,
                                                         int count, off64_t at) {
  typedef ssize_t (*Write)(int, const struct iovec*, int, off64_t);
  for (int us = 0; atomic_load(&late) && us < kLongestUs && access(held, F_OK) != 0; us += 1000) {
    usleep(1000);
  }
  return ((Write)dlsym(RTLD_NEXT, "pwritev64"))(fd, parts, count, at);
}

/* Rank 0 reads before rank 1's bytes are stored, and stores its own after them. */
static void rank_0_is_last(int yes, int rank) {
  atomic_store(&holding, yes && rank == 0);
  atomic_store(&late, yes && rank == 1);
}

#endif
