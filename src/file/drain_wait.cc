// Who waits for a file's bytes, and how: asleep, or doing the lanes' work where storage takes a write for a copy.
#include <cerrno>
#include <new>

#include "base/trace.h"
#include "file/drainer.h"

namespace tidelane {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

bool Drainer::drained() const {
  MutexLock lock(mutex_);
  return backlog_.IsDrained();
}

bool Drainer::stuck() const {
  MutexLock lock(mutex_);
  return backlog_.IsStuck();
}

bool Drainer::failing() const {
  MutexLock lock(mutex_);
  return backlog_.IsFailing();
}

bool Drainer::HasPending(uint64_t address, uint64_t size) const {
  MutexLock lock(mutex_);
  return backlog_.pending.Touches(address, address + size);
}

void Drainer::CountCaptured() {
  MutexLock lock(mutex_);
  backlog_.captured.Tell();
}

bool Drainer::WaitLocked(Deadline deadline) {
  if (!file_.env.lanes.threaded()) {
    mutex_.unlock();  // nobody else works: the waiter does
    (void)file_.env.lanes.RunQueued();
    mutex_.lock();
    return Clock::now() < deadline;
  }
  if (deadline != kForEver) return changed_.WaitUntil(mutex_, deadline);
  changed_.Wait(mutex_);
  return true;
}

bool Drainer::StoreHereLocked(Here when) {
  const bool something = backlog_.closing.unfinished() || !backlog_.IsDrained();
  const bool quick = backlog_.policy.StorageIsMemorySpeed() && something && !storing_here_ &&
                     !scheduled_ && !backlog_.drain.resizing() && !backlog_.pending.in_flight();
  if (when == Here::kIfQuick && !quick) return false;
  storing_here_ = true;
  mutex_.unlock();
  StoreOne();
  mutex_.lock();
  storing_here_ = false;
  NotifyLocked();  // others wait, too, and this thread may have what it wanted
  return true;
}

bool Drainer::ScheduleOrStoreLocked() {
  try {
    ScheduleLocked();
  } catch (const std::bad_alloc&) {
    StoreHereLocked(Here::kAnyway);
    return false;
  }
  return true;
}

bool Drainer::StoreOrWaitLocked(Deadline deadline) {
  // Where a write is no more than a copy, waking a lane for it takes longer than doing it. Not so for who has only so
  // much time, which storage may exceed.
  if (deadline == kForEver && StoreHereLocked(Here::kIfQuick)) return true;
  if (!ScheduleOrStoreLocked()) return Clock::now() < deadline;
  return WaitLocked(deadline);
}

void Drainer::StoreInline() {
  const Waiting waiting(Wait::kWrite);
  MutexLock lock(mutex_);
  // Somebody else who stores is not waited for: the next write looks again, and the arena is the limit.
  while (backlog_.pending.ordinary() != 0 && !backlog_.IsStuck() &&
         backlog_.policy.ProgramStores()) {
    backlog_.planner.Hurry();
    if (!StoreHereLocked(Here::kIfQuick)) break;
  }
  HandOverLocked();
}

void Drainer::HandOverLocked() {
  const auto left = [&]() TL_REQUIRES(mutex_) {
    if (storing_here_ || backlog_.IsStuck()) return false;
    return backlog_.closing.unfinished() || (backlog_.IsWorthwhile() && !backlog_.IsDrained());
  };
  while (left() && !ScheduleOrStoreLocked()) {
  }
}

void Drainer::AwaitInFlightLocked(uint64_t begin, uint64_t end) {
  const auto nobody_stores = [&]() TL_REQUIRES(mutex_) {
    return !backlog_.drain.resizing() && !backlog_.pending.InFlight(begin, end);
  };
  if (nobody_stores()) return;
  const Waiting waiting(Wait::kOther);
  AwaitLocked(By::kSleeping, kForEver, nobody_stores);
}

void Drainer::AwaitFirstSuperblockLocked() {
  if (!backlog_.AwaitsFirstSuperblock()) return;
  const Waiting waiting(Wait::kOther);
  AwaitLocked(By::kHelping, kForEver, [this]() TL_REQUIRES(mutex_) {
    return !backlog_.AwaitsFirstSuperblock() || backlog_.IsStuck();
  });
}

Status Drainer::Drain(Wait why) {
  bool drained = false;
  Status status = DrainUntil(why, kForEver, drained);
  DowngradeIfDrained();  // who waited for that may be about to lock the file
  return status;
}

Status Drainer::DrainUntil(Wait why, Deadline deadline, bool& drained) {
  const uint64_t asked_ns = NowNs();
  file_.costs.Asked(asked_ns);
  MutexLock lock(mutex_);
  FailureState& failures = backlog_.failures;
  backlog_.captured.Tell();
  drained = backlog_.IsDrained();
  if (drained) {
    failures.MarkReported();  // what had failed was cut, or replaced by what did not fail
    return failures.lost();
  }
  backlog_.Retry();
  const bool rest = why == Wait::kClose && !backlog_.closing.BeginWait();
  const Waiting waiting(why, 0, rest ? Waiting::kRest : Waiting::kCounted);
  AwaitLocked(By::kHelping, deadline, [&]() TL_REQUIRES(mutex_) {
    // Asked once: the end of the file moves without the lock, and the answer with it.
    drained = backlog_.IsDrained();
    if (drained || backlog_.IsStuck()) return true;
    backlog_.drain
        .Want();  // again: a drained moment that another thread's write ended has reset it
    return false;
  });
  file_.costs.Waited(NowNs() - asked_ns);
  if (!drained && !backlog_.IsStuck()) return {};  // too late, and nothing has failed
  failures.MarkReported();
  return drained ? failures.lost() : failures.error();
}

void Drainer::StartLocked() {
  backlog_.Retry();
  backlog_.drain.Want();
  ScheduleLocked();
}

Status Drainer::Test(bool& stored) {
  MutexLock lock(mutex_);
  stored = backlog_.IsDrained();
  if (!stored) {
    backlog_.drain.Want();
    ScheduleLocked();
    stored = backlog_.IsDrained();
  }
  return backlog_.IsStuck() ? backlog_.failures.error() : backlog_.failures.lost();
}

Status Drainer::RetryAndReport() {
  {
    MutexLock lock(mutex_);
    if (!backlog_.failures.unreported()) return {};
  }
  return Drain(Wait::kOther);
}

void Drainer::LockForFork() {
  mutex_.lock();
  // Lanes are parked, but other threads of the program may be storing: in the child they would never end.
  while (backlog_.pending.in_flight() || backlog_.drain.resizing()) changed_.Wait(mutex_);
  // What storage has refused is the child's, too, which has no staging memory (buffer/staging.h).
  backlog_.Keep(Slab::Kind::kOwned, "keep for a fork");
}

void Drainer::UnlockAfterFork(bool child) {
  if (child) {
    scheduled_ = false;
    storing_here_ = false;
    backlog_.planner.ForgetLinger();
    new (&changed_) Condition();
  }
  mutex_.unlock();
}

}  // namespace tidelane
