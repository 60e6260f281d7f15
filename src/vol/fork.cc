#include "vol/fork.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdlib>

#include "file/call_scope.h"
#include "vol/call_inside.h"
#include "vol/call_queue.h"
#include "vol/dataset_catalogue.h"
#include "vol/work_holders.h"

namespace tidelane::vol {

namespace {

constexpr auto kPatience = std::chrono::milliseconds(50);

// What cannot be inserted stays the parent's, as what another thread holds does.
void InsertAll(LibraryState& library) {
  static_cast<void>(Enter(library, [&library] {
    static_cast<void>(DoCallWork(library, nullptr, H5I_BADID, library.default_dxpl));
  }));
}

bool LockSoon(h5::Library& hdf5) {
  const auto late = std::chrono::steady_clock::now() + kPatience;
  while (!hdf5.TryLock()) {
    if (std::chrono::steady_clock::now() > late) return false;
    sched_yield();
  }
  return true;
}

// Before a fork, and before HDF5's own end, in which it begins to use nothing that it has not used before.
void InsertEverywhere() {
  for (LibraryState& library : internal::libraries) {
    if (!AnyCallWork(library)) continue;
    h5::Library& hdf5 = library.hdf5();
    if (!hdf5.CanTryLock()) {
      if (pthread_equal(library.call_queue->writer(), pthread_self()) != 0 &&
          !CallScope::OthersMayBeInside()) {
        InsertAll(library);
      }
    } else if (LockSoon(hdf5)) {
      InsertAll(library);
      hdf5.Unlock();
    }
  }
}

// What there is stays as it is, unused: another thread may have been changing it when its process was forked.
void InChild() {
  for (LibraryState& library : internal::libraries) {
    library.call_queue = nullptr;
    library.late_queries = nullptr;
    library.chunk_capture = nullptr;
    library.datasets = nullptr;
    library.sieve_buffers.unknown |= library.sieve_buffers.any;
    library.rank_chunks = nullptr;  // who is left of the ranks puts them in: the parent
    library.call_work.store(0, std::memory_order_relaxed);
  }
  ForgetWorkHolders();
}

}  // namespace

void WatchEnds() {
  static constinit std::atomic_flag watching;
  if (watching.test_and_set()) return;
  pthread_atfork(InsertEverywhere, nullptr, InChild);
  std::atexit(InsertEverywhere);  // HDF5 has registered its own before: ours comes first
}

}  // namespace tidelane::vol
