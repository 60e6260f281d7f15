// The lanes' side of a file: runs, and the drain's last steps. Who waits for them is in file_wait.cc.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/incidents.h"
#include "base/trace.h"
#include "extent/test_hooks.h"
#include "file/file.h"

namespace tidelane {

bool File::TakeRunLocked(Run& run) {
  if (drain_.resizing()) return false;
  // Where a write is no more than a copy, two lanes would only spin on the inode's lock, on cores the program wants.
  if (policy_.quick() && pending_.in_flight() && env_.lanes.threaded()) return false;
  // Reading a gap and writing it back is safe only while nobody else can write there, or natively would lose what he does.
  RunLimits limits = policy_.Runs(HasExclusiveAccess());
  limits.unknown_to_others = order_.unknown_to_others();
  const bool rest_is_done = drain_.MayTakeSuperblock(FactsLocked());
  if (!pending_.TakeRun(limits, order_.order(), rest_is_done, run)) return false;
  if (run.begin < pending_.superblock_end()) order_.Storing();
  return true;
}

void File::RunOne() {
  {
    MutexLock lock(mutex_);
    scheduled_ = false;
  }
  StoreOne();
}

void File::StoreOne() noexcept {
  try {
    StoreNext();
  } catch (const std::bad_alloc&) {
    MutexLock lock(mutex_);
    NoMemoryLocked();
  }
  Finish();
}

void File::NoMemoryLocked() {
  failures_.Note(Status::Failed(ENOMEM, "write").At(path_, 0, pending_.queued_bytes()));
  pending_.FailQueued(failures_.error());
  NoteProgressLocked();  // other ranks do not wait for what nobody stores
  changed_.NotifyAll();
}

void File::StoreNext() {
  Run run;
  bool took = false;
  bool truncate = false;
  {
    MutexLock lock(mutex_);
    TallyLocked();
    if (const auto patience =
            planner_.Look(pending_, policy_.Terms(env_.config.linger_us), !env_.lanes.threaded()))
      LingerLocked(*patience);
    if (WorthwhileLocked()) {
      truncate = drain_.MayResize(FactsLocked());
      if (truncate) drain_.SetResizing(true);
      took = !truncate && TakeRunLocked(run);
    }
    if (took) {
      planner_.Taken(run.extents.size());
      // Another lane may join, if there is something for it, and storage gains from it.
      if (!policy_.quick() && pending_.ordinary() != 0) {
        try {
          MaybeScheduleFlushLocked();
        } catch (const std::bad_alloc&) {  // then none does; this run must not be lost
        }
      }
    } else if (!truncate) {
      NoteProgressLocked();
    }
  }
  if (took) {
    env_.lanes.YieldToReads();
    Working working(run.size());
    const int error = WriteRun(run);
    working.Stop();
    AfterRun(run, error);
  }
  if (truncate) TruncateUp();
}

void File::TruncateUp() {
  const uint64_t size = eof();
  const uint64_t before = store_->size();
  const int error = store_->SetSize(size);
  MutexLock lock(mutex_);
  drain_.SetResizing(false);
  if (error != 0) {
    failures_.NoteNotExtended(Status::Failed(error, "extend").At(path_, before, size - before));
  }
  NoteProgressLocked();
  if (!StuckLocked() && !DrainedLocked()) ScheduleFlushLocked();
  changed_.NotifyAll();
}

int File::WriteRun(Run& run) {
  Count(Counter::kRequestsWritten);
  int error = store_->Write(run);
  if (MutationEnabled("failure")) error = 0;  // negative control: nobody hears of it
  if (error == 0) Count(Counter::kBytesWritten, run.size());
  return error;
}

void File::AfterRun(Run& run, int error) {
  MutexLock lock(mutex_);
  if (error == 0) {
    const bool was_first = order_.first() && run.begin == pending_.superblock_begin();
    pending_.Complete(run);
    if (was_first) order_.FirstStored();
  } else {
    const Status failure = Status::Failed(error, "write").At(path_, run.begin, run.size());
    if (pending_.Fail(run, failure) != 0) failures_.NoteLost(failure);
    failures_.Note(failure);
  }
  try {
    GoOnLocked(run, error);
  } catch (const std::bad_alloc&) {
    NoMemoryLocked();
  }
  changed_.NotifyAll();
}

void File::GoOnLocked(const Run& run, int error) {
  if (error == 0) policy_.Stored(run.size(), run.write_begin_ns, run.write_end_ns);
  NoteProgressLocked();
  // What waited for this run (the same bytes, the drain's next step) can go on now.
  if (WorthwhileLocked() && !DrainedLocked() && !StuckLocked()) {
    ScheduleFlushLocked();
  } else {
    MaybeScheduleFlushLocked();
  }
}

void File::NoteProgressLocked() {
  if (pending_.ordinary() == 0) {
    planner_.NothingQueued();
    writer_.Recycle(false);
  }
  // What could not be stored is told by this rank's flush and close; nobody can wait for it.
  if (dirty_ranges_ != nullptr && (DrainedLocked() || StuckLocked())) dirty_ranges_->Clear();
  if (drain_.CameTo(FactsLocked())) failures_.Drained();
}

void File::Finish() {
  DowngradeIfDrained();
  std::function<void(const std::shared_ptr<File>&)> finished;
  {
    MutexLock lock(mutex_);
    if (!closing_.finished || !DrainedLocked()) return;
    finished = std::move(closing_.finished);
    closing_.finished = nullptr;
  }
  try {
    finished(shared_from_this());
  } catch (const std::bad_alloc&) {
    MutexLock lock(mutex_);
    if (closing_.begun)
      closing_.finished = std::move(finished);  // who waits for it, or the exit, tries again
    changed_.NotifyAll();
  }
}

}  // namespace tidelane
