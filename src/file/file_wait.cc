// Everybody who waits for a file's bytes: drains, flushes, closes, requests and forks. The lanes' side is in file_drain.cc.
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "base/incidents.h"
#include "base/trace.h"
#include "file/file.h"

namespace tidelane {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

bool File::drained() const {
  MutexLock lock(mutex_);
  return DrainedLocked();
}

bool File::stuck() const {
  MutexLock lock(mutex_);
  return StuckLocked();
}

bool File::failing() const {
  MutexLock lock(mutex_);
  // Also while what failed is being tried again, until somebody was told.
  return pending_.failed_extents() != 0 || failures_.extend_failed() || !failures_.lost().ok() ||
         (failures_.unreported() && !DrainedLocked());
}

bool File::being_closed() const {
  MutexLock lock(mutex_);
  return closing_.begun && closing_.finished == nullptr;
}

bool File::HasPending(uint64_t address, uint64_t size) const {
  MutexLock lock(mutex_);
  return pending_.Touches(address, address + size);
}

bool File::WaitLocked(Clock::time_point deadline) {
  if (!env_.lanes.threaded()) {
    mutex_.unlock();  // nobody else works: the waiter does
    (void)env_.lanes.RunQueued();
    mutex_.lock();
    return Clock::now() < deadline;
  }
  if (deadline != Clock::time_point::max()) return changed_.WaitUntil(mutex_, deadline);
  changed_.Wait(mutex_);
  return true;
}

bool File::StoreHereLocked() {
  const bool something = closing_.finished != nullptr || !DrainedLocked();
  if (!policy_.StorageIsMemorySpeed() || !something || storing_here_ || scheduled_ ||
      drain_.resizing() || pending_.in_flight()) {
    return false;
  }
  storing_here_ = true;
  mutex_.unlock();
  StoreOne();
  mutex_.lock();
  storing_here_ = false;
  changed_.NotifyAll();  // others wait, too, and this thread may have what it wanted
  return true;
}

bool File::StoreOrWaitLocked(Clock::time_point deadline) {
  // Where a write is no more than a copy, waking a lane for it takes longer than doing it. Not so for who has only so
  // much time, which storage may exceed.
  if (deadline == Clock::time_point::max() && StoreHereLocked()) return true;
  ScheduleFlushLocked();
  return WaitLocked(deadline);
}

void File::StoreInline() {
  const Waiting waiting(Wait::kWrite);
  MutexLock lock(mutex_);
  // Somebody else who stores is not waited for: the next write looks again, and the arena is the limit.
  while (pending_.ordinary() != 0 && !StuckLocked() && policy_.ProgramStores()) {
    planner_.Hurry();
    if (!StoreHereLocked()) break;
  }
  HandOverLocked();
}

void File::HandOverLocked() {
  if (storing_here_ || StuckLocked()) return;
  if (closing_.finished != nullptr || (WorthwhileLocked() && !DrainedLocked()))
    ScheduleFlushLocked();
}

Status File::Drain(Wait why) {
  bool drained = false;
  Status status = DrainUntil(why, Clock::time_point::max(), drained);
  DowngradeIfDrained();  // who waited for that may be about to lock the file
  return status;
}

Status File::DrainUntil(Wait why, Clock::time_point deadline, bool& drained) {
  const uint64_t asked_ns = NowNs();
  costs_.Asked(asked_ns);
  MutexLock lock(mutex_);
  TallyLocked();
  drained = DrainedLocked();
  if (drained) {
    failures_.MarkReported();  // what had failed was cut, or replaced by what did not fail
    return failures_.lost();
  }
  pending_.RetryFailed();
  failures_.Retry();
  // A close waits in steps (its flush, the last superblock), and counts once.
  const bool rest = why == Wait::kClose && std::exchange(closing_.waited, true);
  const Waiting waiting(why, 0, rest ? Waiting::kRest : Waiting::kCounted);
  AwaitLocked(By::kHelping, deadline, [&]() TL_REQUIRES(mutex_) {
    // Asked once: the end of the file moves without the lock, and the answer with it.
    drained = DrainedLocked();
    if (drained || StuckLocked()) return true;
    drain_.Want();  // again: a drained moment that another thread's write ended has reset it
    return false;
  });
  costs_.Waited(NowNs() - asked_ns);
  if (!drained && !StuckLocked()) return {};  // too late, and nothing has failed
  failures_.MarkReported();
  return drained ? failures_.lost() : failures_.error();
}

Status File::WaitStored(Clock::time_point deadline, bool& stored) {
  if (Status status = DrainUntil(Wait::kRequest, deadline, stored); !status.ok() || !stored) {
    return status;
  }
  MutexLock lock(mutex_);
  stored =
      AwaitLocked(By::kKicking, deadline, [this]() TL_REQUIRES(mutex_) { return !closing_.begun; });
  return failures_.closed();
}

Status File::Test(bool& stored) {
  MutexLock lock(mutex_);
  stored = DrainedLocked();
  if (!stored) {
    drain_.Want();
    ScheduleFlushLocked();
    stored = DrainedLocked();
  }
  return StuckLocked() ? failures_.error() : failures_.lost();
}

Status File::RetryAndReport() {
  {
    MutexLock lock(mutex_);
    if (!failures_.unreported()) return {};
  }
  return Drain(Wait::kOther);
}

Status File::Flush(bool closing, const CallContext& call) {
  if (call.is_flush_of_open()) {
    // The end of HDF5's open: the mark is there when it returns, as natively. What storage refuses is told by the next call
    // that changes the file, and stored before anything else: to fail the open would leave half a mark.
    AwaitFirstSuperblock();
    if (settings().defers()) StoreSignature();
    return {};
  }
  if (!call.MayFlushEarly(settings())) {
    Status status = Drain(closing || call.is_close() ? Wait::kClose : Wait::kFlush);
    if (status.ok()) (void)superblock_.LacksSignature();  // all of it is stored
    return status;
  }
  // Who has a request, or waits by itself, knows when to look.
  if (!call.is_awaited()) StoreSignature();
  {
    MutexLock lock(mutex_);
    if (DrainedLocked()) return {};
    pending_.RetryFailed();
    failures_.Retry();
    drain_.Want();
    ScheduleFlushLocked();
    if (CallScope* const request = call.request(); request != nullptr) {
      request->Touch(shared_from_this(), epoch_.Barrier(), true);
    }
  }
  return {};
}

void File::DrainInBackground(std::function<void(const std::shared_ptr<File>&)> finished,
                             const CallContext& call) {
  MutexLock lock(mutex_);
  closing_.begun = true;
  if (CallScope* const request = call.request(); request != nullptr) {
    request->Touch(shared_from_this(), epoch_.Barrier(), true);
  }
  closing_.finished = std::move(finished);
  drain_.Want();
  ScheduleFlushLocked();  // even if nothing is pending: closing may be slow, too, and then it is the lane's business
}

bool File::Adopt() {
  reads_
      .Forget();  // natively an open begins with nothing: others, who heed no lock, may have changed it
  MutexLock lock(mutex_);
  if (!closing_.begun || !closing_.finished) return false;
  // The last superblock is on its way: storage is about to look closed. Too late, as when it has finished.
  if (pending_.InFlight(pending_.superblock_begin(), pending_.superblock_end())) return false;
  // If storage looks closed already, the next superblock write marks it as open, as in a file opened anew.
  if (!pending_.SuperblockPending()) order_.LooksClosed();
  closing_.begun = false;
  closing_.finished = nullptr;
  changed_.NotifyAll();
  return true;
}

Status File::CloseDevice() {
  deferred_reads().AwaitAll();
  reads_.prefetch().Stop();
  Status status;
  {
    MutexLock lock(mutex_);
    writer_.Recycle(true);
    status = failures_.lost();
  }
  // Another process that creates the file truncates it before it finds our lock: our bytes are gone, and somebody must say so.
  uint64_t size = store_->size();
  if (writable_ && !shared_) store_->EndReservations(size);
  if (size < store_->size()) {
    status = Status::Failed(EIO, "keep (another process cut the file short)")
                 .At(path_, size, store_->size() - size);
  }
  const int error = store_->Close();
  if (status.ok() && error != 0) status = Status::Failed(error, "close").At(path_, 0, 0);
  // Before anybody hears that the file is closed: the program's summary may be next.
  if (!status.ok()) {
    try {
      NoteError(status);
      NoteNotStored(path_);
    } catch (const std::bad_alloc&) {  // whoever waits for this is told all the same
    }
  }
  MutexLock lock(mutex_);
  closing_.begun = false;
  if (!status.ok()) failures_.NoteNotClosed(status);
  changed_.NotifyAll();
  return status;
}

Status File::WaitClosed(Wait why) {
  {
    MutexLock lock(mutex_);
    if (DrainedLocked() && !closing_.begun) return failures_.closed();
  }
  const Waiting waiting(why);
  if (Status status = Drain(why); !status.ok()) return status;
  MutexLock lock(mutex_);
  // A fork's child has no lane that was told.
  AwaitLocked(By::kKicking, kForEver, [this]() TL_REQUIRES(mutex_) { return !closing_.begun; });
  return failures_.closed();
}

bool File::AwaitClosed(Wait why) {
  const Waiting waiting(why);
  MutexLock lock(mutex_);
  AwaitLocked(By::kHelping, kForEver, [this]() TL_REQUIRES(mutex_) {
    if (!closing_.begun || StuckLocked()) return true;
    if (!DrainedLocked()) drain_.Want();
    return false;
  });
  return !closing_.begun;
}

void File::LockForFork() {
  mutex_.lock();
  // Lanes are parked, but other threads of the program may be storing: in the child they would never end.
  while (pending_.in_flight() || drain_.resizing()) changed_.Wait(mutex_);
  // What storage has refused is the child's, too, which has no staging memory (buffer/staging.h).
  const Status no_memory = Status::Failed(ENOMEM, "keep for a fork").At(path_, 0, 0);
  if (pending_.Keep(Slab::Kind::kOwned, no_memory) != 0) failures_.NoteLost(no_memory);
}

void File::UnlockAfterFork(bool child) {
  if (child) {
    scheduled_ = false;
    storing_here_ = false;
    planner_.ForgetLinger();
    new (&changed_) Condition();
    dirty_ranges_ = nullptr;  // it is the parent's
  }
  mutex_.unlock();
}

Epochs::State File::StateLocked(uint64_t epoch, bool and_older, Status& error) const {
  const Epochs& epochs = pending_.epochs();
  Epochs::State state = and_older ? epochs.StateUpTo(epoch, error) : epochs.StateOf(epoch, error);
  if (state == Epochs::State::kFailed) return state;
  if (and_older && !failures_.lost().ok()) {
    error = failures_.lost();
    return Epochs::State::kFailed;
  }
  // A request for a close is done when others can open the file: when its lock is gone, too.
  if (and_older && (TooShort() || drain_.resizing() || closing_.begun))
    state = Epochs::State::kPending;
  // Nothing that is left can be stored without a retry, which is the program's to ask for: do not let it wait.
  if ((state == Epochs::State::kPending && StuckLocked()) ||
      (and_older && (failures_.extend_failed() || failures_.close_failed()))) {
    error = failures_.error();
    return Epochs::State::kFailed;
  }
  return state;
}

void File::EndLoans() {
  MutexLock lock(mutex_);
  EndLoansLocked();
}

void File::EndLoansLocked() {
  loans_.over = true;
  if (!loans_.any) return;
  if (pending_.LentInFlight()) {
    const Waiting waiting(Wait::kRequest);
    AwaitLocked(By::kSleeping, kForEver,
                [this]() TL_REQUIRES(mutex_) { return !pending_.LentInFlight(); });
  }
  const Status no_memory =
      Status::Failed(ENOMEM, "keep a copy of what could not be written").At(path_, 0, 0);
  if (pending_.Keep(Slab::Kind::kLent, no_memory) != 0) failures_.NoteLost(no_memory);
  loans_.any = false;
}

Epochs::State File::Poll(uint64_t epoch, bool and_older, Status& error) {
  MutexLock lock(mutex_);
  const Epochs::State state = StateLocked(epoch, and_older, error);
  if (state == Epochs::State::kFailed) EndLoansLocked();
  if (state != Epochs::State::kPending) return state;
  WantLocked(and_older);
  ScheduleFlushLocked();
  return state;
}

void File::WantLocked(bool and_older) {
  planner_.Hurry();
  if (and_older) drain_.Want();
}

Epochs::State File::WaitFor(uint64_t epoch, bool and_older, Clock::time_point deadline,
                            Status& error) {
  const uint64_t asked_ns = NowNs();
  costs_.Asked(asked_ns);
  MutexLock lock(mutex_);
  Epochs::State state = StateLocked(epoch, and_older, error);
  if (state == Epochs::State::kPending) {
    const Waiting waiting(Wait::kRequest);
    AwaitLocked(By::kHelping, deadline, [&]() TL_REQUIRES(mutex_) {
      state = StateLocked(epoch, and_older, error);
      if (state != Epochs::State::kPending) return true;
      WantLocked(and_older);
      return false;
    });
    costs_.Waited(NowNs() - asked_ns);
  }
  if (state == Epochs::State::kFailed) EndLoansLocked();
  return state;
}

}  // namespace tidelane
