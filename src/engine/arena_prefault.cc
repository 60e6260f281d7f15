#include "engine/arena_prefault.h"

#include <algorithm>

#include "base/trace.h"

namespace tidelane {

void ArenaPrefault::WroteThrough(uint64_t file_bytes) {
  if (cost_model_.phase_bytes() < model::CostModel::kWorthALane) return;
  // Two threads may both be the largest: what is lost is a hint.
  if (file_bytes > largest_file_.load(std::memory_order_relaxed))
    largest_file_.store(file_bytes, std::memory_order_relaxed);
  if (scheduled_.load(std::memory_order_relaxed) ||
      scheduled_.exchange(true, std::memory_order_acquire)) {
    return;
  }
  delay_ = kFirstLook;
  lanes_.ScheduleAfter(shared_from_this(), delay_);
}

void ArenaPrefault::RunOne() {
  const uint64_t now_ns = NowNs();
  if (!cost_model_.pauses().Pausing(
          now_ns)) {  // still writing: a long burst is looked at less and less often
    delay_ = std::min(2 * delay_, std::chrono::milliseconds(kLastLook));
    lanes_.ScheduleAfter(shared_from_this(), delay_);
    return;
  }
  // The lane finds it to do as soon as it is idle.
  arena_.Expect(std::min({cost_model_.Expected(now_ns), arena_.cap() / 2,
                          kFilesAtOnce * largest_file_.load(std::memory_order_relaxed)}));
  scheduled_.store(false, std::memory_order_release);
}

}  // namespace tidelane
