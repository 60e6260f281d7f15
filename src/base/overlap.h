/// \file
/// How much of storage's work was hidden: of the time in which at least one lane was at work, the
/// part in which no thread of the program waited for Tidelane.
///
/// Two numbers change, lanes at work and threads waiting; at each change the time since the last
/// one is added to what it belonged to. Changes come with lanes' requests and with waits, never
/// with captured writes.
///
/// Invariant: hidden_ns <= storage_ns; both only grow.
///
/// Thread safety: all functions may be called from any thread; the lock is a leaf, held for a few
/// additions.
#pragma once

#include <cstdint>

#include "base/annotations.h"

namespace tidelane {

class Overlap {
 public:
  struct Totals {
    uint64_t storage_ns = 0;  ///< at least one lane was at work
    uint64_t hidden_ns = 0;   ///< and nobody waited
  };

  constexpr Overlap() = default;

  /// `at_ns` comes from one clock; where threads were overtaken between reading it and coming here,
  /// an earlier time counts as the last one seen.
  void WorkBegins(uint64_t at_ns) { Change(1, 0, at_ns); }
  void WorkEnds(uint64_t at_ns) { Change(-1, 0, at_ns); }
  void WaitBegins(uint64_t at_ns) { Change(0, 1, at_ns); }
  void WaitEnds(uint64_t at_ns) { Change(0, -1, at_ns); }

  /// What is still going on is counted up to `at_ns`.
  Totals At(uint64_t at_ns) TL_EXCLUDES(mutex_);

 private:
  void Change(int work, int wait, uint64_t at_ns) TL_EXCLUDES(mutex_);
  void Advance(uint64_t at_ns) TL_REQUIRES(mutex_);

  Mutex mutex_;
  uint64_t last_ns_ TL_GUARDED_BY(mutex_) = 0;
  int working_ TL_GUARDED_BY(mutex_) = 0;
  int waiting_ TL_GUARDED_BY(mutex_) = 0;
  Totals totals_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane
