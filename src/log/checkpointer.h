/// \file
/// The lane's task that moves a file's log into the file, at once or when nothing was committed for a while.
///
/// Invariant: it never outlives its log's use of it.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "base/annotations.h"
#include "lane/lanes.h"

namespace tidelane::log {

class Checkpointer final : public LaneTask, public std::enable_shared_from_this<Checkpointer> {
 public:
  using Delay = std::optional<Lanes::Clock::duration>;

  /// `move`: says after how long it is to come again, if it is.
  Checkpointer(Lanes* lanes, std::function<Delay()> move) : lanes_(lanes), move_(std::move(move)) {}

  /// Whether lanes do anything: otherwise whoever commits does it.
  bool works() const { return lanes_ != nullptr && lanes_->threaded(); }
  bool has_lanes() const { return lanes_ != nullptr; }

  void RunOne() override TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!move_) return;
    if (const Delay again = move_(); again) Come(*again);
  }
  /// After so long; without memory the next commit asks again.
  void Come(Lanes::Clock::duration delay) {
    try {
      if (delay == Lanes::Clock::duration::zero()) return lanes_->Schedule(shared_from_this());
      lanes_->ScheduleAfter(shared_from_this(), delay);
    } catch (const std::bad_alloc&) {
    }
  }
  /// The log has no more use for it; waits until a move that is under way is over.
  void Detach() TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    move_ = nullptr;
  }

 private:
  Lanes* const lanes_;
  Mutex mutex_;
  std::function<Delay()> move_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane::log
