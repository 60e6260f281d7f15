// Writes that the program's thread makes itself: because a call asks for it, storage is as quick as memory, or there is no room.
#include <algorithm>
#include <cerrno>
#include <new>

#include "base/incidents.h"
#include "base/trace.h"
#include "buffer/loan.h"
#include "file/write_path.h"

namespace tidelane {

bool WritePath::BeginScattered(uint64_t begin_ns, uint64_t bytes) {
  const WriteCosts::WriteBudget may_wait = BeginLarge(begin_ns, bytes);
  bool chosen = false;
  {
    MutexLock lock(drainer_.mutex());
    const Backlog& backlog = drainer_.backlog();
    chosen = backlog.policy.StorageIsMemorySpeed() &&
             backlog.policy.WritesThrough(may_wait.anywhere) &&
             backlog.pending.queued_bytes() >= may_wait.bytes;
  }
  if (!chosen) file_.costs.End(begin_ns, NowNs(), 0, 0);
  return chosen;
}

void WritePath::EndScattered(uint64_t begin_ns, uint64_t bytes, uint64_t pieces) {
  const uint64_t end_ns = NowNs();
  Count(Fallback::kQuickStorage);
  CountSync(Fallback::kQuickStorage, bytes);
  file_.costs.End(begin_ns, end_ns, 0, 0);
  MutexLock lock(drainer_.mutex());
  drainer_.backlog().policy.Stored(bytes / pieces, begin_ns,
                                   begin_ns + (end_ns - begin_ns) / pieces);
}

Status WritePath::WriteOrKeep(uint64_t address, uint64_t size, const std::byte* bytes,
                              Fallback reason, const CallContext& call) {
  Run direct = DirectRun(address, size);
  {
    MutexLock lock(drainer_.mutex());
    BeginDirectLocked(direct);
  }
  return StoreOrKeep(direct, bytes, reason, call);
}

// What was refused lies in memory of its own: the arena may be what there was no room in.
Status WritePath::StoreOrKeep(Run& direct, const std::byte* bytes, Fallback reason,
                              const CallContext& call) {
  Status status = StoreDirect(direct, bytes, reason);
  if (status.ok() || !call.keeps_refused()) return status;
  Slab* kept = KeepCopy(bytes, direct.size());
  if (kept == nullptr) return status;
  reads_.Written(direct.begin, direct.size(), bytes);
  MutexLock lock(drainer_.mutex());
  InsertLocked({kept->data, direct.size(), kept}, direct.begin, call);
  return {};
}

Status WritePath::WriteAsNatively(uint64_t address, uint64_t size, const void* bytes) {
  const uint64_t begin_ns = size < kLargeWrite ? 0 : NowNs();
  if (begin_ns != 0) (void)BeginLarge(begin_ns, size);
  Run direct = DirectRun(address, size);
  {
    MutexLock lock(drainer_.mutex());
    BeginDirectLocked(direct);
    drainer_.backlog().order.StoredUnseen();
  }
  Status status = StoreDirect(direct, bytes, file_.mode.reason());
  if (begin_ns != 0) file_.costs.End(begin_ns, direct.write_end_ns, 0, 0);
  return status;
}

void WritePath::BeginDirectLocked(const Run& direct) {
  Backlog& backlog = drainer_.backlog();
  drainer_.AwaitFirstSuperblockLocked();
  drainer_.AwaitInFlightLocked(direct.begin, direct.end);
  if (direct.begin < backlog.pending.superblock_end()) backlog.order.Storing();
  // What is queued under it stays there: if this fails, it is the file's content.
  backlog.pending.BeginDirect(direct);
  backlog.order.Captured();
}

Status WritePath::StoreDirect(Run& direct, const void* bytes, Fallback reason) {
  const uint64_t size = direct.size();
  const Waiting waiting(Wait::kWrite, size);
  int error = file_.store->WriteBytes(direct, bytes);
  Count(Counter::kWritesSync);
  if (error != 0) reads_.ForgetBlocks();
  MutexLock lock(drainer_.mutex());
  Backlog& backlog = drainer_.backlog();
  backlog.pending.Complete(direct);
  if (error == 0) {
    backlog.policy.Stored(size, direct.write_begin_ns, direct.write_end_ns);
    try {
      backlog.pending.CutRange(direct.begin, direct.end);
    } catch (const std::bad_alloc&) {
      error = ENOMEM;  // older bytes are still queued, and will be stored over these
    }
  }
  // Also of one that failed in the middle: a later truncation must know.
  const uint64_t stored_end = std::min(direct.end, file_.store->size());
  file_.ExtendTo(stored_end);
  backlog.NoteProgress();
  drainer_.NotifyLocked();
  drainer_.MaybeScheduleLocked();  // lanes may have waited for these bytes
  if (error != 0) {
    Status status = file_.Failure(error, "write", direct.begin, size);
    NoteError(status);
    return status;
  }
  CountSync(reason, size);
  return {};
}

}  // namespace tidelane
