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
constinit std::atomic<uint64_t> fallback_bytes[kFallbackCount] = {};

}  // namespace internal

namespace {

struct CounterWords {
  const char* key;
  const char* text;
};

constexpr CounterWords kCounters[] = {
#define X(name, key, text) {key, text},
    TL_COUNTERS(X)
#undef X
};

struct FallbackWords {
  const char* key;
  const char* unit;
  const char* text;
};

constexpr FallbackWords kFallbacks[] = {
#define X(name, key, unit, text) {key, unit, text},
    TL_FALLBACKS(X)
#undef X
};

const FallbackWords& Words(Fallback reason) { return kFallbacks[static_cast<unsigned>(reason)]; }

}  // namespace

void CountSync(Fallback reason, uint64_t bytes) {
  Count(Counter::kBytesSync, bytes);
  internal::fallback_bytes[static_cast<unsigned>(reason)].fetch_add(bytes,
                                                                    std::memory_order_relaxed);
}

void CountMax(Counter counter, uint64_t value) {
  std::atomic<uint64_t>& slot = internal::counters[static_cast<unsigned>(counter)];
  uint64_t seen = slot.load(std::memory_order_relaxed);
  while (seen < value && !slot.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void ResetCountersAfterFork() {
  for (unsigned i = 0; i < kCounterCount; ++i) {
    if (static_cast<Counter>(i) == Counter::kArenaCapBytes) continue;
    internal::counters[i].store(0, std::memory_order_relaxed);
  }
  for (unsigned i = 0; i < kFallbackCount; ++i) {
    internal::fallbacks[i].store(0, std::memory_order_relaxed);
    internal::fallback_bytes[i].store(0, std::memory_order_relaxed);
  }
}

const char* Name(Counter counter) { return kCounters[static_cast<unsigned>(counter)].key; }
const char* Name(Fallback reason) { return Words(reason).key; }
const char* Text(Counter counter) { return kCounters[static_cast<unsigned>(counter)].text; }
const char* Text(Fallback reason) { return Words(reason).text; }
const char* Unit(Fallback reason) { return Words(reason).unit; }

}  // namespace tidelane
