// When lanes come, and what they do: runs, and the drain's last steps. Who waits for them is in drain_wait.cc.
#include "file/drainer.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "base/incidents.h"
#include "base/trace.h"
#include "extent/test_hooks.h"

namespace tidelane {
namespace {

int WriteRun(Store& store, Run& run) {
  Count(Counter::kRequestsWritten);
  int error = store.Write(run);
  if (MutationEnabled("failure")) error = 0;  // negative control: nobody hears of it
  if (error == 0) Count(Counter::kBytesWritten, run.size());
  return error;
}

}  // namespace

void Drainer::ScheduleLocked() {
  if (scheduled_ || storing_here_) return;
  // First: there may be no memory. A lane keeps the file.
  file_.env.lanes.Schedule({file_.whole(), this});
  scheduled_ = true;
}

bool Drainer::ShouldStoreInlineLocked() const {
  return backlog_.policy.ProgramStores() && !scheduled_ && !storing_here_ &&
         FlushPlanner::ShouldStoreInline(backlog_.pending, file_.env.arena.in_use());
}

void Drainer::MaybeScheduleLocked() {
  if (backlog_.policy.ProgramStores()) return;
  // Another rank may be on its way to read it: it would wait out the linger.
  if (file_.dirty_ranges != nullptr && backlog_.pending.ordinary() != 0 &&
      file_.dirty_ranges->awaited())
    backlog_.planner.Hurry();
  if (backlog_.IsWorthwhile()) {
    ScheduleLocked();
  } else if (!backlog_.planner.lingering() && backlog_.pending.ordinary() != 0) {
    if (const auto linger = backlog_.planner.Linger(backlog_.Terms())) LingerLocked(*linger);
  }
}

void Drainer::HurryLocked() {
  if (backlog_.pending.ordinary() == 0) return;
  backlog_.planner.Hurry();
  ScheduleLocked();
}

void Drainer::LingerLocked(std::chrono::steady_clock::duration linger) {
  try {
    file_.env.lanes.ScheduleAfter({file_.whole(), this}, linger);
  } catch (const std::bad_alloc&) {
    backlog_.planner.ForgetLinger();  // nobody would come
    throw;
  }
}

void Drainer::RunOne() {
  {
    MutexLock lock(mutex_);
    scheduled_ = false;
  }
  StoreOne();
}

void Drainer::StoreOne() noexcept {
  try {
    StoreNext();
  } catch (const std::bad_alloc&) {
    MutexLock lock(mutex_);
    NoMemoryLocked();
  }
  Finish();
}

void Drainer::NoMemoryLocked() {
  backlog_.FailQueued();
  backlog_.NoteProgress();  // other ranks do not wait for what nobody stores
  NotifyLocked();
}

void Drainer::StoreNext() {
  Run run;
  bool took = false;
  bool truncate = false;
  {
    MutexLock lock(mutex_);
    backlog_.captured.Tell();
    if (const auto patience =
            backlog_.planner.Look(backlog_.pending, backlog_.Terms(), !file_.env.lanes.threaded()))
      LingerLocked(*patience);
    if (backlog_.IsWorthwhile()) {
      truncate = backlog_.drain.MayResize(backlog_.Facts());
      if (truncate) backlog_.drain.SetResizing(true);
      took = !truncate && backlog_.TakeRun(run);
    }
    if (took) {
      // Another lane may join, if there is something for it, and storage gains from it.
      if (!backlog_.policy.quick() && backlog_.pending.ordinary() != 0) {
        try {
          MaybeScheduleLocked();
        } catch (const std::bad_alloc&) {  // then none does; this run must not be lost
        }
      }
    } else if (!truncate) {
      backlog_.NoteProgress();
    }
  }
  if (took) {
    file_.env.lanes.YieldToReads();
    Working working(run.size());
    const int error = WriteRun(*file_.store, run);
    working.Stop();
    AfterRun(run, error);
  }
  if (truncate) TruncateUp();
}

void Drainer::TruncateUp() {
  const uint64_t size = file_.eof.load(std::memory_order_relaxed);
  const uint64_t before = file_.store->size();
  const int error = file_.store->SetSize(size);
  MutexLock lock(mutex_);
  backlog_.drain.SetResizing(false);
  if (error != 0)
    backlog_.failures.NoteNotExtended(file_.Failure(error, "extend", before, size - before));
  backlog_.NoteProgress();
  if (!backlog_.IsStuck() && !backlog_.IsDrained()) ScheduleLocked();
  NotifyLocked();
}

void Drainer::AfterRun(Run& run, int error) {
  MutexLock lock(mutex_);
  backlog_.EndRun(run, error);
  try {
    GoOnLocked(run, error);
  } catch (const std::bad_alloc&) {
    NoMemoryLocked();
  }
  NotifyLocked();
}

void Drainer::GoOnLocked(const Run& run, int error) {
  if (error == 0) backlog_.policy.Stored(run.size(), run.write_begin_ns, run.write_end_ns);
  backlog_.NoteProgress();
  // What waited for this run (the same bytes, the drain's next step) can go on now.
  if (backlog_.IsWorthwhile() && !backlog_.IsDrained() && !backlog_.IsStuck()) {
    ScheduleLocked();
  } else {
    MaybeScheduleLocked();
  }
}

void Drainer::DowngradeIfDrained() {
  if (file_.lock.awaits_downgrade() && drained()) file_.lock.Downgrade();
}

void Drainer::Finish() {
  DowngradeIfDrained();
  CloseState::Finished finished;
  {
    MutexLock lock(mutex_);
    if (!backlog_.closing.unfinished() || !backlog_.IsDrained()) return;
    finished = backlog_.closing.Take();
  }
  try {
    finished(file_.whole());
  } catch (const std::bad_alloc&) {
    MutexLock lock(mutex_);
    // Who waits for it, or the exit, tries again.
    backlog_.closing.GiveBack(std::move(finished));
    NotifyLocked();
  }
}

}  // namespace tidelane
