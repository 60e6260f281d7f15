/// \file
/// Sums that every write or read adds to, and that are looked at once an epoch.
///
/// Thread safety: all functions may be called from any thread; what two threads add at once may be lost. A locked addition
/// would cost more than that matters: these are measurements.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
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

/// Whether storage is quick, by its last eight requests: two of them may have waited for a core, for memory, or for other ranks.
class RecentSpeed {
 public:
  /// Before there was a request: what the file system promises. Three slow ones refute that it is quick, one quick one that it is not.
  void Begin(bool quick) { slow_.Set(quick ? 0 : 0xE0); }
  /// After a request that was, or was not.
  bool Quick(bool quick) {
    slow_.Set((slow_.get() << 1 | (quick ? 0 : 1)) & 0xFF);
    return std::popcount(slow_.get()) < 3;
  }

 private:
  Sum slow_;  // a bit for each request, the oldest on the left
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
