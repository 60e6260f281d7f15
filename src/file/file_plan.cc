// When queued bytes are worth storing: at once, after lingering for neighbours, or when somebody waits for them.
#include <chrono>
#include <new>

#include "file/file.h"

namespace tidelane {
void File::ScheduleFlushLocked() {
  if (scheduled_ || storing_here_) return;
  env_.lanes.Schedule(shared_from_this());  // first: there may be no memory
  scheduled_ = true;
}

bool File::WorthwhileLocked() const {
  return drain_.wanted() || planner_.Worthwhile(pending_, policy_.held_back(), env_.arena.cap(),
                                                order_.first() && pending_.SuperblockPending());
}

bool File::ShouldStoreInlineLocked() const {
  return policy_.ProgramStores() && !scheduled_ && !storing_here_ &&
         FlushPlanner::ShouldStoreInline(pending_, env_.arena.in_use());
}

void File::MaybeScheduleFlushLocked() {
  if (policy_.ProgramStores()) return;
  // Another rank may be on its way to read it: it would wait out the linger.
  if (dirty_ranges_ != nullptr && pending_.ordinary() != 0 && dirty_ranges_->awaited())
    planner_.Hurry();
  if (WorthwhileLocked()) {
    ScheduleFlushLocked();
  } else if (!planner_.lingering() && pending_.ordinary() != 0) {
    if (const auto linger = planner_.Linger(policy_.Terms(env_.config.linger_us)))
      LingerLocked(*linger);
  }
}

void File::LingerLocked(std::chrono::steady_clock::duration linger) {
  try {
    env_.lanes.ScheduleAfter(shared_from_this(), linger);
  } catch (const std::bad_alloc&) {
    planner_.ForgetLinger();  // nobody would come
    throw;
  }
}

}  // namespace tidelane
