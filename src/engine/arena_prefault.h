/// \file
/// Gets memory ready for the burst to come, while the program pauses.
///
/// On storage as quick as memory the first burst is written through (model/cost_model.h). If the program then pauses, the
/// next one will be deferred, and fresh pages for it would cost the program more than the copy itself: a lane faults
/// them in meanwhile. A program that only writes never pauses, and gets none; nor does one that writes little.
///
/// A burst that goes to the same places again and again takes less memory than it has bytes: no more is got ready than a few files as
/// large as the largest one so far would take.
///
/// Invariant: at most one look is scheduled at a time.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "buffer/arena.h"
#include "lane/lanes.h"
#include "model/cost_model.h"

namespace tidelane {

class ArenaPrefault final : public LaneTask, public std::enable_shared_from_this<ArenaPrefault> {
 public:
  ArenaPrefault(Arena& arena, Lanes& lanes, model::CostModel& cost_model)
      : arena_(arena), lanes_(lanes), cost_model_(cost_model) {}

  /// A large write went through, to a file that then was so large.
  void WroteThrough(uint64_t file_bytes);
  void RunOne() override;

 private:
  static constexpr uint64_t kFilesAtOnce = 4;
  static constexpr auto kFirstLook = std::chrono::milliseconds(2);
  static constexpr auto kLastLook = std::chrono::milliseconds(100);

  Arena& arena_;
  Lanes& lanes_;
  model::CostModel& cost_model_;
  std::atomic<uint64_t> largest_file_{0};
  std::atomic<bool> scheduled_{false};
  std::chrono::milliseconds delay_ = kFirstLook;  // of whoever set scheduled_
};

}  // namespace tidelane
