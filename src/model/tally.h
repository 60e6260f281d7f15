/// \file
/// Sums that every write or read adds to, and that are looked at once an epoch.
///
/// Thread safety: all functions may be called from any thread; what two threads add at once may be lost. A locked addition
/// would cost more than that matters: these are measurements.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tidelane::model {

constexpr double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

class Sum {
 public:
  void Add(uint64_t n) { Set(get() + n); }
  void Set(uint64_t n) { sum_.store(n, std::memory_order_relaxed); }
  uint64_t get() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> sum_{0};
};

/// Whether storage that was quick is slow now: a single request may have waited for a core, for memory, or for other ranks.
class SlowInTurn {
 public:
  /// A request was `quick` to what `was_quick` before. Returns whether that still is, or has become so.
  bool Quick(bool was_quick, bool quick) {
    const uint64_t slow = quick || !was_quick ? 0 : seen_.get() + 1;
    seen_.Set(slow % kMost);
    return quick || seen_.get() != 0;
  }

 private:
  static constexpr uint64_t kMost = 3;

  Sum seen_;
};

/// Requests to storage: how much they moved, and the time in which at least one was under way. They are told of when they
/// end.
class Requests {
 public:
  void Add(uint64_t bytes, uint64_t begin_ns, uint64_t end_ns) {
    bytes_.Add(bytes);
    const uint64_t until = until_ns_.get();
    if (end_ns <= until) return;
    busy_ns_.Add(end_ns - std::max(begin_ns, until));
    until_ns_.Set(end_ns);
  }
  void Clear() { bytes_.Set(0), busy_ns_.Set(0); }
  uint64_t bytes() const { return bytes_.get(); }
  double seconds() const { return Seconds(busy_ns_.get()); }

 private:
  Sum bytes_, busy_ns_, until_ns_;
};

}  // namespace tidelane::model
