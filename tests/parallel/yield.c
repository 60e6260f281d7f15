/* Preloaded into MPICH programs with more ranks than cores: a rank that has nothing to receive gives its core away.
 * MPICH polls without end; with four ranks on two cores a test of seconds takes minutes.
 *
 * Invariant: what UCX did is returned unchanged. Thread safety: that of the function it stands before.
 */
#include <dlfcn.h>
#include <sched.h>

typedef unsigned (*progress_t)(void*);

__attribute__((visibility("default"))) unsigned ucp_worker_progress(void* worker);

unsigned ucp_worker_progress(void* worker) {
  static progress_t real;
  if (!real) real = (progress_t)dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned progressed = real(worker);
  if (progressed == 0) sched_yield();
  return progressed;
}
