/// \file
/// The lane's task that moves a file's log into the file when nothing was committed for a while.
///
/// Invariant: it never outlives its store's use of it.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <chrono>
#include <memory>

#include "base/annotations.h"
#include "lane/lanes.h"
#include "log/logged_store.h"

namespace tidelane {

class LoggedStore::Checkpointer final : public LaneTask,
                                        public std::enable_shared_from_this<Checkpointer> {
 public:
  explicit Checkpointer(LoggedStore* store) : store_(store) {}

  void RunOne() override TL_EXCLUDES(mutex_);
  /// The store has no more use for it; waits until a move that is under way is over.
  void Detach() TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    store_ = nullptr;
  }

 private:
  Mutex mutex_;
  LoggedStore* store_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane
