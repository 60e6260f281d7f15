/// \file
/// Which loops this machine runs.
///
/// Thread safety: any thread; what is forced is for tests.
#include "predicate/loops.h"

#include <atomic>

namespace tidelane::predicate {
namespace {

constexpr int kNotForced = -1;
std::atomic<int> forced{kNotForced};

Instructions Best() {
  if (Has(Instructions::kAvx512)) return Instructions::kAvx512;
  return Has(Instructions::kAvx2) ? Instructions::kAvx2 : Instructions::kBaseline;
}

}  // namespace

bool Has(Instructions instructions) {
  if (instructions == Instructions::kBaseline) return true;
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("popcnt") == 0) return false;
  if (instructions == Instructions::kAvx2) return __builtin_cpu_supports("avx2") != 0;
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0;
#else
  return false;
#endif
}

Loop LoopOf(const Shape& shape) {
  static const Instructions best = Best();
  const int chosen = forced.load(std::memory_order_relaxed);
  switch (chosen == kNotForced ? best : static_cast<Instructions>(chosen)) {
    case Instructions::kAvx512: return Avx512Loop(shape);
    case Instructions::kAvx2: return Avx2Loop(shape);
    case Instructions::kBaseline: break;
  }
  return BaselineLoop(shape);
}

bool ForceInstructions(Instructions instructions) {
  if (!Has(instructions)) return false;
  forced.store(static_cast<int>(instructions), std::memory_order_relaxed);
  return true;
}

void ForceNoInstructions() { forced.store(kNotForced, std::memory_order_relaxed); }

}  // namespace tidelane::predicate
