// A file's own state: settings, truncation, flushes, locks, its descriptor. Reading is in file_read.cc; the rest in its parts (file.h).
#include "file/file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <new>
#include <utility>

#include "base/not_journalled.h"
#include "base/notices.h"
#include "base/trace.h"
#include "extent/test_hooks.h"
#include "ranks/bell.h"

namespace tidelane {

File::File(FileEnvironment environment, std::unique_ptr<Device> device, FileIdentity identity,
           std::string path, bool writable, const FileTraits& traits)
    : context_(std::move(environment), std::move(device), identity, std::move(path), writable,
               traits, [this] { return shared_from_this(); }),
      drainer_(context_),
      epochs_(context_, drainer_),
      content_(context_, drainer_),
      reads_(content_, {.config = context_.env.config,
                        .lanes = context_.env.lanes,
                        .costs = {context_.env.cost_model, identity.device},
                        .prefetch_budget = context_.env.prefetch_budget,
                        .watched = !writable}),
      writes_(context_, drainer_, epochs_, reads_),
      closing_(context_, drainer_, epochs_, reads_) {}

File::~File() {
  reads_.prefetch().Stop();
  drainer_.CountCaptured();
}

FileSettings File::settings() const {
  MutexLock lock(drainer_.mutex());
  return drainer_.backlog().policy.settings();
}

void File::SetSettings(const FileSettings& settings) {
  writes_.reservation().Want(settings.reserve && context_.writable && context_.traits.owns_size);
  if (settings.defers()) writes_.StoreSignature();
  MutexLock lock(drainer_.mutex());
  drainer_.backlog().policy.Set(settings);
  context_.mode.Set(settings);
  drainer_.MaybeScheduleLocked();
}

void File::SetDirtyRanges(std::unique_ptr<DirtyRangeTable> table) {
  context_.dirty_ranges = std::move(table);
  try {
    Bell::Get().Add(weak_from_this(), [this] {
      if (context_.dirty_ranges->awaited()) Start();
    });
  } catch (const std::bad_alloc&) {  // the ranks have agreed: without a bell, bytes linger
  }
}

void File::AwaitOthers(uint64_t address, uint64_t size, DirtyRangeTable::Whose whose) {
  DirtyRangeTable* const ranges = context_.dirty_ranges.get();
  if (ranges == nullptr || !ranges->OthersHold(address, address + size, whose)) return;
  const Waiting waiting(Wait::kRanks);
  const uint64_t lost = ranges->lost();
  ranges->AwaitOthers(address, address + size, whose);
  // What is read is then what storage has; that it is not what was written is said nowhere else.
  if (ranges->lost() != lost)
    std::fprintf(stderr, "tidelane: %s: a process ended before it had stored what it wrote there\n",
                 path().c_str());
}

void File::SetPaused(bool paused) {
  if (context_.traits.peers_may_wait) return;
  MutexLock lock(drainer_.mutex());
  drainer_.backlog().policy.SetPaused(paused);
  drainer_.MaybeScheduleLocked();
}

void File::SetDelay(uint64_t us) {
  if (context_.traits.peers_may_wait) return;
  MutexLock lock(drainer_.mutex());
  drainer_.backlog().policy.SetDelay(us);
  drainer_.MaybeScheduleLocked();
}

void File::Start() {
  MutexLock lock(drainer_.mutex());
  drainer_.backlog().policy.SetPaused(false);
  drainer_.HurryLocked();
}

bool File::nameless() const {
  struct stat found;
  struct stat by_name;
  const int descriptor = *context_.device->descriptor();
  if (descriptor < 0 || fstat(descriptor, &found) != 0 || found.st_nlink != 0) return false;
  // There are file systems that count no links.
  return stat(path().c_str(), &by_name) != 0 || by_name.st_ino != found.st_ino ||
         by_name.st_dev != found.st_dev;
}

void File::GiveUp() {
  reads_.deferred_reads().AwaitAll();
  reads_.ForgetBlocks();
  context_.store->Withhold(Withholding::kLost);
  MutexLock lock(drainer_.mutex());
  Backlog& backlog = drainer_.backlog();
  backlog.pending.CutRange(0, UINT64_MAX);
  drainer_.AwaitInFlightLocked(0, UINT64_MAX);
  backlog.pending.CutRange(0, UINT64_MAX);  // again: what failed while we waited came back
  context_.eof.store(context_.store->size(), std::memory_order_relaxed);
  backlog.NoteProgress();
  drainer_.NotifyLocked();
}

void File::Abandon() {
  GiveUp();
  reads_.prefetch().Stop();
  (void)context_.store->Close();
}

Status File::Truncate(uint64_t size) {
  const uint64_t old = eof();
  if (MutationEnabled("truncate")) {  // negative control: cut storage now, whatever is on its way
    context_.eof.store(size, std::memory_order_relaxed);
    (void)context_.device->Truncate(size);  // past the store, too
    return {};
  }
  if (size >= old) {
    context_.eof.store(size, std::memory_order_relaxed);
    return {};
  }
  reads_.deferred_reads().Await(size, UINT64_MAX);
  reads_.CutFrom(size);
  Store& store = *context_.store;
  bool cut_storage = false;
  {
    MutexLock lock(drainer_.mutex());
    Backlog& backlog = drainer_.backlog();
    drainer_.AwaitFirstSuperblockLocked();
    backlog.pending.CutRange(size, UINT64_MAX);
    drainer_.AwaitInFlightLocked(size, UINT64_MAX);
    backlog.pending.CutRange(size, UINT64_MAX);  // again: what failed while we waited came back
    writes_.reservation().CutFrom(size);
    context_.eof.store(size, std::memory_order_relaxed);
    cut_storage = store.size() > size;
    backlog.drain.SetResizing(cut_storage);
  }
  const int error = cut_storage ? store.SetSize(size) : 0;
  MutexLock lock(drainer_.mutex());
  Backlog& backlog = drainer_.backlog();
  if (cut_storage)
    backlog.drain.SetResizing(false);  // else it is a lane's, which has begun to extend the file
  // So that the next attempt finds something to cut.
  if (error != 0) context_.eof.store(store.size(), std::memory_order_relaxed);
  backlog.NoteProgress();
  drainer_.MaybeScheduleLocked();
  drainer_.NotifyLocked();
  if (error != 0) return context_.Failure(error, "truncate", size, old - size);
  return {};
}

Status File::Flush(bool closing, const CallContext& call) {
  if (call.is_flush_of_open()) {
    // The end of HDF5's open: the mark is there when it returns, as natively. What storage refuses is told by the next call
    // that changes the file, and stored before anything else: to fail the open would leave half a mark.
    {
      MutexLock lock(drainer_.mutex());
      drainer_.AwaitFirstSuperblockLocked();
    }
    if (settings().defers()) writes_.StoreSignature();
    return {};
  }
  // What is written after a flush must not be in its commit.
  const bool early = call.MayFlushEarly(settings());
  const bool commits = writes_.commits().enabled();
  if (early && commits) Count(Fallback::kJournalFlush);
  if (!early || commits) {
    Status status = drainer_.Drain(closing || call.is_close() ? Wait::kClose : Wait::kFlush);
    if (status.ok()) (void)writes_.superblock().LacksSignature();  // all of it is stored
    return status;
  }
  // Who has a request, or waits by itself, knows when to look.
  if (!call.is_awaited()) writes_.StoreSignature();
  MutexLock lock(drainer_.mutex());
  Backlog& backlog = drainer_.backlog();
  if (backlog.IsDrained()) return {};
  drainer_.StartLocked();
  epochs_.AddBarrier(backlog, call);
  return {};
}

Status File::Lock(bool exclusive) {
  if (const int error = context_.lock.Take(exclusive, drainer_.drained()); error != 0)
    return context_.Failure(error, exclusive ? "lock for writing" : "lock for reading", 0, 0);
  drainer_.DowngradeIfDrained();  // lanes may have finished meanwhile
  reads_.CheckTakenOver();
  return {};
}

Status File::Unlock(const CallContext& call) {
  // A file whose close is deferred keeps its lock until it is whole; closing the descriptor releases it.
  if (closing_.MayBegin(call)) return {};
  reads_.deferred_reads().AwaitAll();
  Status status = drainer_.Drain(Wait::kClose);
  reads_.Forget();
  const int error = context_.lock.Release();
  if (status.ok() && error != 0) status = context_.Failure(error, "unlock", 0, 0);
  return status;
}

Status File::WriteThrough(Fallback reason) {
  if (context_.mode.SetThrough(reason)) {
    reads_.deferred_reads().AwaitAll();
    reads_.DropFetched();
    Count(reason);
    if (reason != Fallback::kModeSync) NoteNative(reason, path());
  }
  return drainer_.Drain(Wait::kOther);
}

Status File::Descriptor(int*& descriptor, const CallContext& call) {
  descriptor = context_.device->descriptor();
  const bool out = call.hands_out_descriptor();
  if (!out && !call.starts_swmr()) return {};
  const Fallback reason = out ? Fallback::kJournalHandle : Fallback::kJournalSwmr;
  if (out && writes_.commits().enabled() && settings().journal_required) {
    Count(reason);
    return NotJournalled(reason, path());
  }
  context_.lock.HandOut();
  reads_.ForgetBlocks();
  if (Status status = writes_.commits().End(reason); !status.ok()) return status;
  return WriteThrough(out ? Fallback::kHandleOut : Fallback::kSwmrWrite);
}

void File::UnlockAfterFork(bool child) {
  if (child) context_.dirty_ranges = nullptr;  // it is the parent's
  drainer_.UnlockAfterFork(child);
}

}  // namespace tidelane
