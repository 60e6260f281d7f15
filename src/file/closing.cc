#include "file/closing.h"

#include <cerrno>
#include <new>
#include <utility>

#include "base/incidents.h"
#include "base/trace.h"

namespace tidelane {

void Closing::Begin(CloseState::Finished finished, const CallContext& call) {
  MutexLock lock(drainer_.mutex());
  Backlog& backlog = drainer_.backlog();
  epochs_.AddBarrier(backlog, call);
  backlog.closing.Begin(std::move(finished));
  backlog.drain.Want();
  // Even if nothing is pending: closing may be slow, too, and then it is the lane's business.
  drainer_.ScheduleLocked();
}

bool Closing::Adopt() {
  // Natively an open begins with nothing: others, who heed no lock, may have changed it.
  reads_.Forget();
  MutexLock lock(drainer_.mutex());
  Backlog& backlog = drainer_.backlog();
  if (!backlog.closing.begun() || !backlog.closing.unfinished()) return false;
  const PendingMap& pending = backlog.pending;
  // The last superblock is on its way: storage is about to look closed. Too late, as when it has finished.
  if (pending.InFlight(pending.superblock_begin(), pending.superblock_end())) return false;
  // If storage looks closed already, the next superblock write marks it as open, as in a file opened anew.
  if (!pending.SuperblockPending()) backlog.order.LooksClosed();
  backlog.closing.Cancel();
  drainer_.NotifyLocked();
  return true;
}

void Closing::SetRefused(bool refused) {
  MutexLock lock(drainer_.mutex());
  drainer_.backlog().closing.SetRefused(refused);
}

bool Closing::being_closed() const {
  MutexLock lock(drainer_.mutex());
  const CloseState& closing = drainer_.backlog().closing;
  return closing.begun() && !closing.unfinished();
}

Status Closing::CloseDevice() {
  reads_.deferred_reads().AwaitAll();
  reads_.prefetch().Stop();
  Store& store = *file_.store;
  Status status;
  bool refused = false;
  {
    MutexLock lock(drainer_.mutex());
    drainer_.backlog().writer.Recycle(true);
    status = drainer_.backlog().failures.lost();
    refused = drainer_.backlog().closing.refused();
    if (refused) Withhold(Withholding::kLost);
  }
  // HDF5 could not write all that it had: what is there is no commit, and the last one is found instead.
  if (status.ok() && refused && store.commits()) status = file_.Failure(EIO, "commit", 0, 0);
  // Another process that creates the file truncates it before it finds our lock: our bytes are gone, and somebody must say so.
  if (const int error = status.ok() ? store.Finish() : 0; error != 0)
    status = file_.Failure(error, "commit", 0, 0);
  uint64_t size = store.size();
  if (status.ok() && file_.writable && file_.traits.owns_size) store.EndReservations(size);
  if (size < store.size()) {
    status =
        file_.Failure(EIO, "keep (another process cut the file short)", size, store.size() - size);
  }
  if (status.ok()) status = store.Publish(Publishing::kWithLastClose);
  const int error = store.Close();
  if (status.ok() && error != 0) status = file_.Failure(error, "close", 0, 0);
  // Before anybody hears that the file is closed: the program's summary may be next.
  if (!status.ok()) {
    try {
      NoteError(status);
      NoteNotStored(file_.path);
    } catch (const std::bad_alloc&) {  // whoever waits for this is told all the same
    }
  }
  MutexLock lock(drainer_.mutex());
  Backlog& backlog = drainer_.backlog();
  backlog.closing.End();
  if (!status.ok()) backlog.failures.NoteNotClosed(status);
  drainer_.NotifyLocked();
  return status;
}

Status Closing::WaitClosed(Wait why) {
  {
    MutexLock lock(drainer_.mutex());
    const Backlog& backlog = drainer_.backlog();
    if (backlog.IsDrained() && !backlog.closing.begun()) return backlog.failures.closed();
  }
  const Waiting waiting(why);
  if (Status status = drainer_.Drain(why); !status.ok()) return status;
  MutexLock lock(drainer_.mutex());
  const Backlog& backlog = drainer_.backlog();
  // A fork's child has no lane that was told.
  drainer_.AwaitLocked(Drainer::By::kKicking, kForEver, [&] { return !backlog.closing.begun(); });
  return backlog.failures.closed();
}

bool Closing::AwaitClosed(Wait why) {
  const Waiting waiting(why);
  MutexLock lock(drainer_.mutex());
  Backlog& backlog = drainer_.backlog();
  drainer_.AwaitLocked(Drainer::By::kHelping, kForEver, [&] {
    if (!backlog.closing.begun() || backlog.IsStuck()) return true;
    if (!backlog.IsDrained()) backlog.drain.Want();
    return false;
  });
  return !backlog.closing.begun();
}

Status Closing::WaitStored(std::chrono::steady_clock::time_point deadline, bool& stored) {
  if (Status status = drainer_.DrainUntil(Wait::kRequest, deadline, stored);
      !status.ok() || !stored) {
    return status;
  }
  MutexLock lock(drainer_.mutex());
  const Backlog& backlog = drainer_.backlog();
  stored = drainer_.AwaitLocked(Drainer::By::kKicking, deadline,
                                [&] { return !backlog.closing.begun(); });
  return backlog.failures.closed();
}

}  // namespace tidelane
