/// \file
/// The reads of one file that go on after their calls have returned (parallel_read.h), so that nothing
/// overtakes them: who is about to change bytes, or to end the file, ends the reads of those first.
///
/// Invariant: a read is here from before its call returns until it is done.
/// Cost: one relaxed load as long as there are none.
/// Thread safety: all functions may be called from any thread; Await with no other lock held.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/annotations.h"

namespace tidelane {

class ParallelRead;

class DeferredReads {
 public:
  void Add(const std::shared_ptr<ParallelRead>& read) TL_EXCLUDES(mutex_);
  /// Ends those that read bytes of [begin, end). How they ended their requests say.
  void Await(uint64_t begin, uint64_t end) {
    if (count_.load(std::memory_order_relaxed) != 0) AwaitThose(begin, end);
  }
  void AwaitAll() { Await(0, UINT64_MAX); }
  /// Ends those that fill memory of the program's.
  void AwaitFilling() {
    if (count_.load(std::memory_order_relaxed) != 0) AwaitThoseThatFill();
  }
  /// Whether one is not done.
  bool any() TL_EXCLUDES(mutex_);

 private:
  void AwaitThose(uint64_t begin, uint64_t end) TL_EXCLUDES(mutex_);
  void AwaitThoseThatFill() TL_EXCLUDES(mutex_);
  template <typename Which>
  void AwaitWhich(Which which) TL_EXCLUDES(mutex_);
  void PruneLocked() TL_REQUIRES(mutex_);

  std::atomic<size_t> count_{0};
  Mutex mutex_;
  // Not owned: a read that nobody refers to any more is done, and reads own their file.
  std::vector<std::weak_ptr<ParallelRead>> reads_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane
