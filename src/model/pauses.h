/// \file
/// When the program pauses between its large writes, so that what it does meanwhile can hide them.
///
/// Small writes are no part of a phase: a program that logs while it computes would never pause. But small writes to a buffer of
/// HDF5's that follow each other closely are no computation either: HDF5 makes a large write of many such.
///
/// Thread safety: all functions may be called from any thread; what two threads note at once may be lost (model/tally.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/tally.h"

namespace tidelane::model {

class Pauses {
 public:
  explicit Pauses(uint64_t shortest_ns) : shortest_ns_(shortest_ns) {}

  /// A large write has ended.
  void Ended(uint64_t now_ns) { last_end_ns_.Set(now_ns); }
  /// One to HDF5's buffer begins.
  void Buffered(uint64_t now_ns) {
    const uint64_t last_end = last_end_ns();
    const uint64_t since = std::max(buffered_ns_.get(), last_end);
    buffered_ns_.Set(now_ns);
    if (last_end != 0 && now_ns > since && now_ns - since < kInTurnNs)
      last_end_ns_.Set(last_end + (now_ns - since));
  }
  /// Nothing was written yet.
  void Forget() { last_end_ns_.Set(0); }

  /// When the last large write ended, and later by what writes to HDF5's buffer alone have taken since; 0: there was none.
  uint64_t last_end_ns() const { return last_end_ns_.get(); }
  /// Whether the program has paused since.
  bool Pausing(uint64_t now_ns) const { return now_ns >= last_end_ns() + shortest_ns_; }

 private:
  // From one to the next: a program that computes meanwhile takes longer.
  static constexpr uint64_t kInTurnNs = 50'000;

  const uint64_t shortest_ns_;
  Sum last_end_ns_;
  Sum buffered_ns_;  // the last one began
};

}  // namespace tidelane::model
