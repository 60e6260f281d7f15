#include "file/backlog.h"

#include <cerrno>

#include "base/counters.h"

namespace tidelane {

void CapturedTally::Tell() {
  if (bytes == 0) return;
  Count(Counter::kWritesDeferred, writes);
  Count(Counter::kBytesDeferred, bytes);
  *this = {};
}

bool Backlog::IsFailing() const {
  return pending.failed_extents() != 0 || failures.extend_failed() || !failures.lost().ok() ||
         (failures.unreported() && !IsDrained());
}

Epochs::State Backlog::StateOf(uint64_t which, bool and_older, Status& error) const {
  const Epochs& epochs = pending.epochs();
  Epochs::State state = and_older ? epochs.StateUpTo(which, error) : epochs.StateOf(which, error);
  if (state == Epochs::State::kFailed) return state;
  if (and_older && !failures.lost().ok()) {
    error = failures.lost();
    return Epochs::State::kFailed;
  }
  // A request for a close is done when others can open the file: when its lock is gone, too.
  if (and_older && (file.TooShort() || drain.resizing() || closing.begun()))
    state = Epochs::State::kPending;
  // Nothing that is left can be stored without a retry, which is the program's to ask for: do not let it wait.
  if ((state == Epochs::State::kPending && IsStuck()) ||
      (and_older && (failures.extend_failed() || failures.close_failed()))) {
    error = failures.error();
    return Epochs::State::kFailed;
  }
  return state;
}

bool Backlog::TakeRun(Run& run) {
  if (drain.resizing()) return false;
  // Where a write is no more than a copy, two lanes would only spin on the inode's lock, on cores the program wants.
  if (policy.quick() && pending.in_flight() && file.env.lanes.threaded()) return false;
  // Reading a gap and writing it back is safe only while nobody else can write there, or natively would lose what he does.
  RunLimits limits = policy.Runs(file.HasExclusiveAccess());
  limits.unknown_to_others = order.unknown_to_others();
  const bool rest_is_done = drain.MayTakeSuperblock(Facts());
  if (!pending.TakeRun(limits, order.order(), rest_is_done, run)) return false;
  if (run.begin < pending.superblock_end()) order.Storing();
  planner.Taken(run.extents.size());
  return true;
}

void Backlog::EndRun(Run& run, int error) {
  if (error == 0) {
    const bool was_first = order.first() && run.begin == pending.superblock_begin();
    pending.Complete(run);
    if (was_first) order.FirstStored();
    return;
  }
  const Status failure = file.Failure(error, "write", run.begin, run.size());
  if (pending.Fail(run, failure) != 0) failures.NoteLost(failure);
  failures.Note(failure);
}

void Backlog::FailQueued() {
  failures.Note(file.Failure(ENOMEM, "write", 0, pending.queued_bytes()));
  pending.FailQueued(failures.error());
}

void Backlog::NoteProgress() {
  if (pending.ordinary() == 0) {
    planner.NothingQueued();
    writer.Recycle(false);
  }
  // What could not be stored is told by this rank's flush and close; nobody can wait for it.
  if (file.dirty_ranges != nullptr && (IsDrained() || IsStuck())) file.dirty_ranges->Clear();
  if (drain.CameTo(Facts())) failures.Drained();
}

void Backlog::Keep(Slab::Kind kind, const char* why) {
  const Status no_memory = file.Failure(ENOMEM, why, 0, 0);
  if (pending.Keep(kind, no_memory) != 0) failures.NoteLost(no_memory);
}

}  // namespace tidelane
