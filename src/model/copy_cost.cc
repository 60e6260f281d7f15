#include "model/copy_cost.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "base/trace.h"

namespace tidelane::model {
namespace {

double PowerOf(double write_bytes) {
  const double power = std::log2(std::max(write_bytes, 1.0)) - CopyCost::kSmallestPower;
  return std::clamp(power, 0.0, static_cast<double>(CopyCost::kSizes - 1));
}

}  // namespace

void CopyCost::Add(double write_bytes, double bytes, double seconds) {
  if (!(bytes >= 1) || !(seconds > 0) || !std::isfinite(seconds / bytes)) return;
  costs_[static_cast<unsigned>(std::lround(PowerOf(write_bytes)))].Add(seconds / bytes);
}

void CopyCost::Merge(const CopyCost& other) {
  for (unsigned i = 0; i < kSizes; ++i) costs_[i].Merge(other.costs_[i]);
}

bool CopyCost::known() const {
  return std::ranges::any_of(costs_, [](const RecentMean& cost) { return cost.count() != 0; });
}

double CopyCost::Seconds(double write_bytes, double bytes) const {
  const double power = PowerOf(write_bytes);
  double below = -1, above = -1;  // the nearest sizes that were measured
  for (unsigned i = 0; i < kSizes; ++i) {
    if (costs_[i].count() == 0) continue;
    if (i <= power) below = i;
    if (i >= power && above < 0) above = i;
  }
  if (below < 0 && above < 0) return 0;
  if (below < 0) below = above;
  if (above < 0) above = below;
  const double from = costs_[static_cast<unsigned>(below)].mean();
  const double to = costs_[static_cast<unsigned>(above)].mean();
  const double way = above > below ? (power - below) / (above - below) : 0;
  return std::max(bytes, 0.0) * (from + way * (to - from));
}

bool CopyCost::SetState(const State& state) {
  for (const RecentMean& cost : state) {
    if (cost.count() != 0 && !(cost.mean() > 0 && std::isfinite(cost.mean()))) return false;
  }
  costs_ = state;
  return true;
}

void CalibrateCopy(CopyCost& cost) {
  constexpr size_t kSize =
      size_t{1} << 20;  // what caches hold would be copied faster than any program's data
  constexpr int kTimes = 3;
  const std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[2 * kSize]);
  if (memory == nullptr) return;
  std::memset(memory.get(), 1, 2 * kSize);
  uint64_t quickest_ns = UINT64_MAX;  // what else the machine does is no cost of a copy
  for (int i = 0; i < kTimes; ++i) {
    const uint64_t begin_ns = NowNs();
    std::memcpy(memory.get() + kSize, memory.get(), kSize);
    // The compiler must believe that somebody reads it.
    __asm__ volatile("" : : "g"(memory.get()) : "memory");
    quickest_ns = std::min(quickest_ns, NowNs() - begin_ns);
  }
  cost.Add(kSize, kSize, static_cast<double>(std::max<uint64_t>(quickest_ns, 1)) / 1e9);
}

}  // namespace tidelane::model
