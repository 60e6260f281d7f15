/// \file
/// Storage and names of the counters; the lists themselves are in counters.h.
///
/// Invariant: the arrays are constant-initialised, so that counting works before main and after
/// static destruction.
///
/// Thread safety: as counters.h.
#include "base/counters.h"

namespace tidelane {
namespace internal {

constinit std::atomic<uint64_t> counters[kCounterCount] = {};
constinit std::atomic<uint64_t> fallbacks[kFallbackCount] = {};

}  // namespace internal

void CountMax(Counter counter, uint64_t value) {
  std::atomic<uint64_t>& slot = internal::counters[static_cast<unsigned>(counter)];
  uint64_t seen = slot.load(std::memory_order_relaxed);
  while (seen < value && !slot.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

const char* Name(Counter counter) {
  static constexpr const char* kNames[] = {
#define X(name, key) key,
      TL_COUNTERS(X)
#undef X
  };
  return kNames[static_cast<unsigned>(counter)];
}

const char* Name(Fallback reason) {
  static constexpr const char* kNames[] = {
#define X(name, key) key,
      TL_FALLBACKS(X)
#undef X
  };
  return kNames[static_cast<unsigned>(reason)];
}

}  // namespace tidelane
