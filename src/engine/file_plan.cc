// When queued bytes are worth storing: at once, after lingering for neighbours, or when somebody waits for them.
#include <chrono>
#include <new>

#include "engine/file.h"
#include "extent/broken.h"

namespace tidelane {
void File::KickLocked() {
  if (scheduled_ || storing_here_) return;
  env_.lanes.Schedule(shared_from_this());  // first: there may be no memory
  scheduled_ = true;
}

LingerTerms File::TermsLocked() const {
  return {.linger_us = env_.config.linger_us,
          .delay_us = settings_.delay_us,
          .paused = settings_.paused,
          .others_wait = shared_};
}

bool File::WorthwhileLocked() const {
  return drain_wanted_ || planner_.Worthwhile(pending_, HeldBackLocked(), env_.arena.cap(),
                                              order_.first() && pending_.HeldPending());
}

bool File::GatheredEnoughLocked() const {
  return ProgramStoresLocked() && !scheduled_ && !storing_here_ &&
         FlushPlanner::GatheredEnough(pending_);
}

void File::PlanLocked() {
  if (ProgramStoresLocked()) return;
  // Another rank may be on its way to read it: it would wait out the linger.
  if (board_ != nullptr && pending_.ordinary() != 0 && board_->awaited()) planner_.Hurry();
  if (WorthwhileLocked()) {
    KickLocked();
  } else if (!planner_.lingering() && pending_.ordinary() != 0) {
    if (const auto linger = planner_.Linger(TermsLocked())) LingerLocked(*linger);
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

model::Chooser::Allowance File::BeginLarge(uint64_t now_ns, uint64_t size) {
  model::Chooser::Allowance allowed = env_.chooser->Begin(
      now_ns,
      {.device = identity_.device, .file = path_, .mode = mode_.mode(), .room = env_.arena.cap()},
      size);
  if (Broken("whims")) allowed = {Whim(true) ? UINT64_MAX : 0, Whim(true)};
  return allowed;
}

bool File::ProgramStoresLocked() const {
  // Of a shared file other ranks may wait for what is gathered, while the program does something else.
  return !shared_ && WriteIsCopyLocked() && !HeldBackLocked() &&
         !Whim(env_.chooser->Defers(identity_.device));
}

void File::NoteSpeedLocked(uint64_t bytes, uint64_t begin_ns, uint64_t end_ns) {
  quick_storage_ = Whim(env_.chooser->Stored(identity_.device, bytes, begin_ns, end_ns));
}

}  // namespace tidelane
