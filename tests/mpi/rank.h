/* What programs of ranks have in common: this rank's number, and how it ends where it cannot go on. */
#ifndef TIDELANE_TESTS_RANK_H
#define TIDELANE_TESTS_RANK_H

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <hdf5.h>

static int rank;

static inline hid_t must(hid_t result, const char* what) {
  if (result >= 0) return result;
  fprintf(stderr, "rank %d: %s failed\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 2);
  return result;
}

/* Who waits for ever for another rank is wrong, too. */
static inline void give_up(int signal) {
  static const char text[] = "wrong: rank waits for another one\n";
  (void)signal;
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  usleep(100000); /* mpirun passes it on */
  _exit(1);
}
static inline void give_up_in(unsigned seconds) {
  signal(SIGALRM, give_up);
  /* A control may wait for ever, as it should; its ranks are as busy as those that compute. */
  alarm(getenv("TIDELANE_BREAK") != NULL ? (seconds + 2) / 3 : seconds);
}

static inline void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

#endif
