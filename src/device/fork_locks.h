/// \file
/// Descriptors whose locks end with the process that took them, whatever children it has.
///
/// A lock of flock or of F_OFD_SETLK belongs to what was opened, and a child of fork has that, too: after the end of its parent it would hold the
/// lock, and keep who recovers the parent's file from it. So the child goes on with openings of its own, by the same numbers: it can read by them,
/// holds nothing, and gives up nothing of its parent's. Where a file cannot be opened once more (no /proc, no more descriptors) it keeps what it
/// has.
///
/// Cost: one load for each device that is closed, where there are none.
/// Thread safety: all functions may be called from any thread; the mutex is a leaf.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "base/annotations.h"

namespace tidelane {

class ForkLocks {
 public:
  static ForkLocks& Get();

  /// Until it is removed, at the latest before it is closed. -1 is none.
  void Add(int fd) TL_EXCLUDES(mutex_);
  void Remove(int fd) TL_EXCLUDES(mutex_);

  /// fork: hold the lock across it.
  void LockForFork() TL_NO_ANALYSIS { mutex_.lock(); }
  void UnlockAfterFork(bool child) TL_NO_ANALYSIS;

 private:
  std::atomic<size_t> count_{0};
  Mutex mutex_;
  std::vector<int> descriptors_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane
