// A file's own state: settings, truncation, locks, its descriptor. Capture is in file_write.cc, when to store in
// file_plan.cc, storing in file_drain.cc, waiting in file_wait.cc, reading in file_read.cc, the superblock's order in
// file_superblock.cc.
#include "file/file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/notices.h"
#include "extent/test_hooks.h"
#include "ranks/bell.h"

namespace tidelane {
namespace {

// What is no regular file has no size, and is not empty.
bool IsEmpty(Device& device) {
  uint64_t size = 0;
  return device.Size(size) == 0 && size == 0;
}

}  // namespace

File::File(Environment environment, std::unique_ptr<Device> device, FileIdentity identity,
           std::string path, bool writable, Kind kind)
    : env_(std::move(environment)),
      device_(std::move(device)),
      store_(env_.make_store(device_)),
      identity_(identity),
      path_(std::move(path)),
      writable_(writable),
      shared_(kind == Kind::kShared),
      eof_(store_->size()),
      superblock_(!IsEmpty(*device_)),
      lock_(device_),
      mode_(env_.config.mode),
      costs_(env_.cost_model, identity_.device),
      reads_(content_, {.config = env_.config,
                        .lanes = env_.lanes,
                        .cost_model = env_.cost_model,
                        .device = identity_.device,
                        .prefetch_budget = env_.prefetch_budget,
                        .watched = !writable}),
      policy_(costs_, shared_, env_.config, store_->memory_speed()),
      writer_(env_.arena),
      order_(eof_) {}

File::~File() {
  reads_.prefetch().Stop();
  MutexLock lock(mutex_);
  TallyLocked();
}

FileSettings File::settings() const {
  MutexLock lock(mutex_);
  return policy_.settings();
}

void File::SetSettings(const FileSettings& settings) {
  reservation_.Want(settings.reserve && writable_ && !shared_);
  if (settings.defers()) StoreSignature();
  MutexLock lock(mutex_);
  policy_.Set(settings);
  mode_.Set(settings);
  MaybeScheduleFlushLocked();
}

void File::SetDirtyRanges(std::unique_ptr<DirtyRangeTable> table) {
  dirty_ranges_ = std::move(table);
  try {
    Bell::Get().Add(weak_from_this(), [this] {
      if (dirty_ranges_->awaited()) Start();
    });
  } catch (const std::bad_alloc&) {  // the ranks have agreed: without a bell, bytes linger
  }
}

void File::AwaitOthers(uint64_t address, uint64_t size, Whose whose) {
  if (dirty_ranges_ == nullptr || !dirty_ranges_->OthersHold(address, address + size, whose))
    return;
  const Waiting waiting(Wait::kRanks);
  const uint64_t lost = dirty_ranges_->lost();
  dirty_ranges_->AwaitOthers(address, address + size, whose);
  // What is read is then what storage has; that it is not what was written is said nowhere else.
  if (dirty_ranges_->lost() != lost)
    std::fprintf(stderr, "tidelane: %s: a process ended before it had stored what it wrote there\n",
                 path_.c_str());
}

void File::SetPaused(bool paused) {
  if (shared_) return;  // other ranks may wait for it
  MutexLock lock(mutex_);
  policy_.SetPaused(paused);
  MaybeScheduleFlushLocked();
}

void File::SetDelay(uint64_t us) {
  if (shared_) return;  // likewise
  MutexLock lock(mutex_);
  policy_.SetDelay(us);
  MaybeScheduleFlushLocked();
}

void File::Start() {
  MutexLock lock(mutex_);
  policy_.SetPaused(false);
  if (pending_.ordinary() == 0) return;
  planner_.Hurry();
  ScheduleFlushLocked();
}

bool File::CloseMayBeDeferred(const CallContext& call) const {
  return !shared_ && call.MayDeferClose();
}

bool File::CallIsSynchronous(const CallContext& call) const {
  if (call.request() != nullptr) return false;
  return mode_.implicit_sync() || call.writes_through();
}

bool File::nameless() const {
  struct stat found;
  struct stat by_name;
  const int descriptor = *device_->descriptor();
  if (descriptor < 0 || fstat(descriptor, &found) != 0 || found.st_nlink != 0) return false;
  // There are file systems that count no links.
  return stat(path_.c_str(), &by_name) != 0 || by_name.st_ino != found.st_ino ||
         by_name.st_dev != found.st_dev;
}

void File::GiveUp() {
  deferred_reads().AwaitAll();
  reads_.ForgetBlocks();
  MutexLock lock(mutex_);
  pending_.CutRange(0, UINT64_MAX);
  AwaitInFlightLocked(0, UINT64_MAX);
  pending_.CutRange(0, UINT64_MAX);  // again: what failed while we waited came back
  eof_.store(store_->size(), std::memory_order_relaxed);
  NoteProgressLocked();
  changed_.NotifyAll();
}

void File::Abandon() {
  GiveUp();
  reads_.prefetch().Stop();
  (void)store_->Close();
}

Status File::Truncate(uint64_t size) {
  const uint64_t old = eof_.load(std::memory_order_relaxed);
  if (MutationEnabled("truncate")) {  // negative control: cut storage now, whatever is on its way
    eof_.store(size, std::memory_order_relaxed);
    (void)device_->Truncate(size);  // past the store, too
    return {};
  }
  if (size >= old) {
    eof_.store(size, std::memory_order_relaxed);
    return {};
  }
  deferred_reads().Await(size, UINT64_MAX);
  reads_.CutFrom(size);
  AwaitFirstSuperblock();
  bool cut_storage = false;
  {
    MutexLock lock(mutex_);
    pending_.CutRange(size, UINT64_MAX);
    AwaitInFlightLocked(size, UINT64_MAX);
    pending_.CutRange(size, UINT64_MAX);  // again: what failed while we waited came back
    reservation_.CutFrom(size);
    eof_.store(size, std::memory_order_relaxed);
    cut_storage = store_->size() > size;
    drain_.SetResizing(cut_storage);
  }
  const int error = cut_storage ? store_->SetSize(size) : 0;
  MutexLock lock(mutex_);
  if (cut_storage)
    drain_.SetResizing(false);  // else it is a lane's, which has begun to extend the file
  // So that the next attempt finds something to cut.
  if (error != 0) eof_.store(store_->size(), std::memory_order_relaxed);
  NoteProgressLocked();
  MaybeScheduleFlushLocked();
  changed_.NotifyAll();
  if (error != 0) return Status::Failed(error, "truncate").At(path_, size, old - size);
  return {};
}

Status File::Lock(bool exclusive) {
  if (const int error = lock_.Take(exclusive, drained()); error != 0) {
    return Status::Failed(error, exclusive ? "lock for writing" : "lock for reading")
        .At(path_, 0, 0);
  }
  DowngradeIfDrained();  // lanes may have finished meanwhile
  reads_.prefetch().CheckTakenOver(*store_);
  return {};
}

void File::DowngradeIfDrained() {
  if (lock_.awaits_downgrade() && drained()) lock_.Downgrade();
}

Status File::Unlock(const CallContext& call) {
  // A file whose close is deferred keeps its lock until it is whole; closing the descriptor releases it.
  if (CloseMayBeDeferred(call)) return {};
  deferred_reads().AwaitAll();
  Status status = Drain(Wait::kClose);
  reads_.Forget();
  const int error = lock_.Release();
  if (status.ok() && error != 0) status = Status::Failed(error, "unlock").At(path_, 0, 0);
  return status;
}

Status File::WriteThrough(Fallback reason) {
  if (mode_.SetThrough(reason)) {
    deferred_reads().AwaitAll();
    reads_.DropFetched();
    Count(reason);
    if (reason != Fallback::kModeSync) NoteNative(reason, path_);
  }
  return Drain(Wait::kOther);
}

Status File::Descriptor(int*& descriptor, const CallContext& call) {
  descriptor = device_->descriptor();
  const bool out = call.hands_out_descriptor();
  if (!out && !call.starts_swmr()) return {};
  lock_.HandOut();
  reads_.ForgetBlocks();
  return WriteThrough(out ? Fallback::kHandleOut : Fallback::kSwmrWrite);
}

}  // namespace tidelane
