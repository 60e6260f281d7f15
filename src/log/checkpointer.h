/// \file
/// The lane's task that moves a file's log into the file, at once or when nothing was committed for a while.
///
/// Invariant: it never outlives its log's use of it.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <atomic>
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
    comes_.store(false, std::memory_order_relaxed);
    Look();
  }
  /// After so long, or when it comes in any case: then it asks again. Without memory the next commit asks.
  void Come(Lanes::Clock::duration delay) {
    const bool now = delay == Lanes::Clock::duration::zero();
    if (!now && comes_.exchange(true, std::memory_order_relaxed)) return;
    try {
      if (now) return lanes_->Schedule(std::make_shared<AtOnce>(shared_from_this()));
      lanes_->ScheduleAfter(shared_from_this(), delay);
    } catch (const std::bad_alloc&) {
      if (!now) comes_.store(false, std::memory_order_relaxed);
    }
  }
  /// The log has no more use for it; waits until a move that is under way is over.
  void Detach() TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    move_ = nullptr;
  }

 private:
  // Beside what is to come after a while.
  class AtOnce final : public LaneTask {
   public:
    explicit AtOnce(std::shared_ptr<Checkpointer> checkpointer)
        : checkpointer_(std::move(checkpointer)) {}
    void RunOne() override { checkpointer_->Look(); }

   private:
    const std::shared_ptr<Checkpointer> checkpointer_;
  };

  void Look() TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!move_) return;
    if (const Delay again = move_(); again) Come(*again);
  }

  Lanes* const lanes_;
  std::atomic<bool> comes_{false};  // after a while
  Mutex mutex_;
  std::function<Delay()> move_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane::log
