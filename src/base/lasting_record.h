/// \file
/// What is noted during a run and read at its end: made with the first note, and never destroyed, so that it may be read
/// after static destruction.
///
/// Thread safety: all functions may be called from any thread. The lock is a leaf.
#pragma once

#include <new>
#include <type_traits>

#include "base/annotations.h"

namespace tidelane {

template <typename T>
class LastingRecord {
 public:
  constexpr LastingRecord() { static_assert(std::is_trivially_destructible_v<LastingRecord>); }

  /// `note(T&)`, under the lock.
  template <typename Note>
  void Change(Note note) TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (record_ == nullptr) record_ = new T;
    note(*record_);
  }
  T Read() const TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return record_ == nullptr ? T() : *record_;
  }
  /// The child of a fork notes anew. Call before it has a second thread.
  void ResetAfterFork() TL_EXCLUDES(mutex_) {
    new (&mutex_) Mutex();  // another thread may have been inside: it is not here
    MutexLock lock(mutex_);
    record_ = nullptr;  // torn, for all we know
  }

 private:
  mutable Mutex mutex_;
  T* record_ TL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace tidelane
