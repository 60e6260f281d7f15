/// \file
/// Which loops this machine runs.
///
/// Thread safety: any thread; what is forced is for tests.
#include "predicate/loops.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <atomic>
#include <cstdint>

namespace tidelane::predicate {
namespace {

constexpr int kNotForced = -1;
std::atomic<int> forced{kNotForced};

#ifdef __x86_64__
// Not __builtin_cpu_supports, which makes each program that loads us ask for all there is to know (log/crc32c.cc). Which registers the
// operating system keeps for a thread (XCR0):
constexpr uint64_t kYmm = 0x6;
constexpr uint64_t kZmm = 0xe6;

uint64_t RegistersKept() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}
#endif

Instructions Best() {
  if (Has(Instructions::kAvx512)) return Instructions::kAvx512;
  return Has(Instructions::kAvx2) ? Instructions::kAvx2 : Instructions::kBaseline;
}

}  // namespace

bool Has(Instructions instructions) {
  if (instructions == Instructions::kBaseline) return true;
#ifdef __x86_64__
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_POPCNT) == 0 || (c & bit_OSXSAVE) == 0) {
    return false;
  }
  const uint64_t kept = RegistersKept();
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if (instructions == Instructions::kAvx2) return (b & bit_AVX2) != 0 && (kept & kYmm) == kYmm;
  return (b & bit_AVX512F) != 0 && (b & bit_AVX512BW) != 0 && (kept & kZmm) == kZmm;
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
