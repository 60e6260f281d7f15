// The program's side of a file: capture, truncation, locks.
#include "engine/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/trace.h"
#include "buffer/copy.h"
#include "engine/call_scope.h"
#include "engine/superblock.h"
#include "extent/broken.h"

namespace tidelane {
namespace {

constexpr uint64_t kSmallCopy = 64 * 1024;  // copied under the lock: cheaper than taking it twice
constexpr uint64_t kRunBytes = 1u << 20;    // a request worth making
constexpr uint64_t kScatteredMean =
    16 * 1024;  // smaller extents, on average, are worth more with their neighbours
constexpr unsigned kPatience = 250;           // and linger so many times longer
constexpr size_t kManyExtents = 1u << 16;     // what one sweep has to merge
constexpr size_t kTooManyExtents = 1u << 18;  // bounds the map
constexpr uint64_t kQuickBacklog =
    2u << 20;                             // as much may wait for storage that is as quick as memory
constexpr uint64_t kSmallestLoan = 4096;  // copying less is cheaper than keeping it apart
constexpr uint64_t kReserveStep = 1u << 20;
constexpr auto kArenaWait = std::chrono::milliseconds(5);

}  // namespace

File::File(Environment environment, std::unique_ptr<Device> device, FileIdentity identity,
           std::string path, bool writable)
    : config_(environment.config),
      arena_(environment.arena),
      lanes_(environment.lanes),
      relieve_arena_(std::move(environment.relieve_arena)),
      device_(std::move(device)),
      identity_(identity),
      path_(std::move(path)),
      writable_(writable),
      cache_(config_.read_ahead),
      settings_(config_),
      writer_(arena_) {
  uint64_t size = 0;
  if (device_->Size(size) == 0) {
    disk_size_ = size;
    eof_.store(size, std::memory_order_relaxed);
  }
}

std::atomic<unsigned> File::untold_files_{0};

File::~File() {
  MutexLock lock(mutex_);
  ToldLocked();
}

FileSettings File::settings() const {
  MutexLock lock(mutex_);
  return settings_;
}

void File::SetSettings(const FileSettings& settings) {
  reserving_ = settings.reserve && writable_;
  MutexLock lock(mutex_);
  settings_ = settings;
  implicit_sync_.store(settings.implicit_sync, std::memory_order_relaxed);
  PlanLocked();
}

void File::SetPaused(bool paused) {
  MutexLock lock(mutex_);
  settings_.paused = paused;
  PlanLocked();
}

void File::SetDelay(uint64_t us) {
  MutexLock lock(mutex_);
  settings_.delay_us = us;
  PlanLocked();
}

void File::Start() {
  MutexLock lock(mutex_);
  settings_.paused = false;
  if (pending_.ordinary() == 0) return;
  urgent_ = true;
  KickLocked();
}

bool File::CloseMayBeDeferred() const {
  if (CallScope::Allows(CallScope::kCloseMayBeDeferred)) return true;
  return CallScope::Allows(CallScope::kCloseAsSet) && settings().close_deferred;
}

bool File::CallIsSynchronous() const {
  const CallScope* scope = CallScope::current();
  if (scope != nullptr && scope->tracks()) return false;
  return implicit_sync_.load(std::memory_order_relaxed) ||
         CallScope::Allows(CallScope::kWriteThrough);
}

Status File::Write(uint64_t address, uint64_t size, const void* bytes) {
  if (size == 0) return {};
  {
    MutexLock lock(read_mutex_);
    cache_.Update(address, size, bytes);
  }
  if (write_through_.load(std::memory_order_relaxed))
    return WriteDirect(address, size, bytes, through_reason_.load(std::memory_order_relaxed));
  if (Status status = Reserve(address, size); !status.ok()) return status;
  Span span(SpanKind::kWrite, size);
  if (address <= base_address_ && base_address_ < address + size)
    FindSuperblock(address, size, bytes);
  const auto* at = static_cast<const std::byte*>(bytes);
  const bool through = CallIsSynchronous();
  // HDF5's metadata accumulator merges the superblock with its neighbours: capture it apart, it has its own order.
  const uint64_t cuts[] = {superblock_begin_, superblock_end_, address + size};
  for (const uint64_t cut : cuts) {
    if (cut <= address || cut > address + size) continue;
    const uint64_t piece = cut - address;
    const bool superblock = address == superblock_begin_ && superblock_end_ != 0;
    if (superblock) AwaitFirstSuperblock();
    // The superblock is captured even so: what other calls left pending must be stored before it.
    Status status;
    if (through && !superblock) {
      Count(Fallback::kImplicitOff);
      status = WriteDirect(address, piece, at, Fallback::kImplicitOff);
    } else {
      status = Capture(address, piece, at);
    }
    if (!status.ok()) return status;
    address += piece, at += piece, size -= piece;
    if (size == 0) break;
  }
  return {};
}

void File::FindSuperblock(uint64_t address, uint64_t size, const void* bytes) {
  const uint64_t skip = base_address_ - address;
  const uint64_t length = SuperblockSize(static_cast<const std::byte*>(bytes) + skip, size - skip);
  if (length == 0) return;
  superblock_begin_ = base_address_;
  superblock_end_ = base_address_ + length;
  MutexLock lock(mutex_);
  if (pending_.held_begin() != superblock_begin_ || pending_.held_end() != superblock_end_) {
    pending_.SetHeld(superblock_begin_, superblock_end_);
  }
  // A file that had a superblock must be marked on storage before its contents change, or a killed writer would leave a
  // file that looks clean. A new file has none until its first drain, and needs no mark.
  if (!captured_any_ && disk_size_ > base_address_) order_ = PendingMap::Order::kHeldFirst;
}

void File::AwaitFirstSuperblock() {
  MutexLock lock(mutex_);
  if (order_ != PendingMap::Order::kHeldFirst || !pending_.HeldPending()) return;
  const Waiting waiting(Wait::kOther);
  while (order_ == PendingMap::Order::kHeldFirst && pending_.HeldPending() && !StuckLocked()) {
    urgent_ = true;
    KickLocked();
    WaitLocked();
  }
}

void File::AwaitInFlightLocked(uint64_t begin, uint64_t end) {
  if (!resizing_ && !pending_.InFlight(begin, end)) return;
  const Waiting waiting(Wait::kOther);
  while (resizing_ || pending_.InFlight(begin, end)) WaitLocked();
}

uint64_t File::CurrentEpochLocked() {
  CallScope* scope = CallScope::current();
  if (scope != nullptr && scope->tracks()) {
    uint64_t epoch = scope->EpochOf(this);
    if (epoch == 0) {
      epoch = ++epoch_;
      scope->Touch(shared_from_this(), epoch, false);
    }
    epoch_closed_ = true;
    return epoch;
  }
  if (epoch_closed_) {
    ++epoch_;
    epoch_closed_ = false;
  }
  return epoch_;
}

uint64_t File::OpenBarrierLocked() {
  epoch_closed_ = true;
  return epoch_;
}

void File::InsertLocked(const SlabWriter::Space& space, uint64_t address) {
  // No request waits for the superblock, which may have to wait for a drain: only barriers do.
  const bool superblock = address < superblock_end_ && address >= superblock_begin_;
  const uint64_t epoch = superblock ? Epochs::kUntracked : CurrentEpochLocked();
  pending_.Insert({address, space.size, space.data, space.slab, epoch, false});
  captured_any_ = true;
  const uint64_t end = address + space.size;
  if (end > eof_.load(std::memory_order_relaxed)) eof_.store(end, std::memory_order_relaxed);
  PlanLocked();
}

// From the program's own buffer, which it keeps as it is until the request has completed.
bool File::CaptureLent(uint64_t address, uint64_t size, const std::byte* bytes) {
  CallScope* scope = CallScope::current();
  if (scope == nullptr || size < kSmallestLoan) return false;
  Slab* loan = scope->LoanOf(bytes, size);
  if (loan == nullptr) return false;
  MutexLock lock(mutex_);
  if (pending_.queued_extents() >= kTooManyExtents) {
    Arena::Unref(loan);
    return false;
  }
  has_loans_ = true;
  InsertLocked({const_cast<std::byte*>(bytes), size, loan}, address);
  Count(Counter::kBytesDeferred, size);
  Count(Counter::kBytesLent, size);
  return true;
}

// Space is reserved in larger steps than it is written in, for a program that appends a little at a time.
Status File::Reserve(uint64_t address, uint64_t size) {
  const uint64_t end = address + size;
  if (!reserving_ || reserved_.Covers(address, end)) return {};
  uint64_t stepped = (end / kReserveStep + 1) * kReserveStep;
  int error = device_->Reserve(address, stepped - address);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    stepped = end;
    error = device_->Reserve(address, size);
  }
  if (error == EOPNOTSUPP || error == ENOSYS || error == EINVAL) {
    reserving_ = false;
    Count(Fallback::kNoReservation);
    return {};
  }
  if (error != 0) return Status::Failed(error, "reserve space for").At(path_, address, size);
  reserved_.Add(address, stepped);
  return {};
}

Status File::Capture(uint64_t address, uint64_t size, const void* bytes) {
  Count(Counter::kWritesDeferred);
  if (CaptureLent(address, size, static_cast<const std::byte*>(bytes))) return {};
  const uint64_t total = size;
  const uint64_t begin_ns = total > kSmallCopy ? NowNs() : 0;
  const auto* from = static_cast<const std::byte*>(bytes);
  while (size != 0) {
    SlabWriter::Space space;
    bool quick = false;
    {
      MutexLock lock(mutex_);
      quick = size > kSmallCopy && quick_storage_ && !HeldBackLocked() &&
              pending_.queued_bytes() > kQuickBacklog;
      if (!quick && pending_.queued_extents() < kTooManyExtents)
        space = writer_.Take(size, address);
      if (space.data != nullptr && space.size <= kSmallCopy) {
        std::memcpy(space.data, from, space.size);
        InsertLocked(space, address);
      }
    }
    if (space.data == nullptr) {
      if (!quick && MakeRoom()) continue;
      const Fallback reason = quick ? Fallback::kQuickStorage : Fallback::kArenaFull;
      Count(reason);
      const uint64_t piece =
          std::min(size, kRunBytes - address % kRunBytes);  // storage may be slower the next time
      if (Status status = WriteDirect(address, piece, from, reason); !status.ok()) return status;
      address += piece, from += piece, size -= piece;
      continue;
    }
    if (space.size > kSmallCopy) {
      CopyBytes(space.data, from, space.size, total);
      MutexLock lock(mutex_);
      InsertLocked(space, address);
    }
    Count(Counter::kBytesDeferred, space.size);
    address += space.size, from += space.size, size -= space.size;
  }
  if (begin_ns != 0) Count(Counter::kCopyNs, NowNs() - begin_ns);
  return {};
}

bool File::MakeRoom() {
  const Waiting waiting(Wait::kArena);
  bool room = false;
  // Twice idle: between one look and the next a lane may be between two tasks.
  for (unsigned idle = 0; idle < 2 && !room;) {
    relieve_arena_();
    RelieveArena();
    if (!lanes_.threaded()) {
      while (lanes_.RunQueued()) {
      }
    }
    bool extents_bound = false;
    {
      MutexLock lock(mutex_);
      extents_bound = pending_.queued_extents() >= kTooManyExtents;
      if (extents_bound && !StuckLocked())
        WaitUntilLocked(std::chrono::steady_clock::now() + kArenaWait);
      room = extents_bound && pending_.queued_extents() < kTooManyExtents;
    }
    if (room) break;
    Slab* slab = extents_bound ? nullptr
                               : arena_.AcquireUntil(std::chrono::steady_clock::now() + kArenaWait);
    if (slab != nullptr) {
      MutexLock lock(mutex_);
      room = writer_.Use(slab);
    } else {
      idle = lanes_.idle() ? idle + 1 : 0;
    }
  }
  return room;
}

void File::RelieveArena() {
  MutexLock lock(mutex_);
  writer_.Recycle(true);
  if (pending_.ordinary() == 0) return;
  urgent_ = true;
  KickLocked();
}

Status File::WriteDirect(uint64_t address, uint64_t size, const void* bytes, Fallback reason) {
  const Waiting waiting(Wait::kWrite, size);
  AwaitFirstSuperblock();
  Run direct;
  direct.begin = address;
  direct.end = address + size;
  {
    MutexLock lock(mutex_);
    AwaitInFlightLocked(direct.begin, direct.end);
    pending_.BeginDirect(
        direct);  // what is queued under it stays there: if this fails, it is the file's content
    captured_any_ = true;
  }
  const iovec part{const_cast<void*>(bytes), size};
  const int error = device_->Write(address, &part, 1);
  Count(Counter::kWritesSync);
  if (error != 0) {
    MutexLock lock(read_mutex_);
    cache_.Clear();  // it was told of bytes that the file does not have
  }
  const uint64_t stored_end = error == 0 ? direct.end : EndAfterFailure(direct.end);
  MutexLock lock(mutex_);
  pending_.Complete(direct);
  if (error == 0) pending_.CutRange(direct.begin, direct.end);
  NoteSize(stored_end);
  if (stored_end > eof_.load(std::memory_order_relaxed))
    eof_.store(stored_end, std::memory_order_relaxed);
  SettleLocked();
  PlanLocked();  // lanes may have waited for these bytes
  changed_.NotifyAll();
  if (error != 0) {
    Count(Counter::kErrors);
    return Status::Failed(error, "write").At(path_, address, size);
  }
  CountSync(reason, size);
  return {};
}

void File::KickLocked() {
  if (scheduled_) return;
  scheduled_ = true;
  lanes_.Schedule(shared_from_this());
}

bool File::PatientLocked() const {
  // Written at once, scattered bytes cost a request each, and bytes that keep being replaced cost one every time. Both
  // lose nothing by waiting: a flush, a close, a request or a full arena ends it.
  const uint64_t bytes = pending_.queued_bytes();
  const size_t extents = pending_.queued_extents();
  return extents > 1 && (bytes / extents < kScatteredMean || pending_.replaced_bytes() > bytes);
}

bool File::WorthwhileLocked() const {
  if (urgent_ || drain_wanted_ || sweep_extents_ != 0) return true;
  if (order_ == PendingMap::Order::kHeldFirst && pending_.HeldPending()) return true;
  if (pending_.queued_extents() >= kManyExtents) return true;
  if (HeldBackLocked()) return false;
  return pending_.queued_bytes() >=
         (PatientLocked() ? std::max(arena_.cap() / 4, kRunBytes) : kRunBytes);
}

void File::PlanLocked() {
  if (WorthwhileLocked()) {
    KickLocked();
  } else if (!lingering_ && !settings_.paused && pending_.ordinary() != 0) {
    lingering_ = true;
    lingering_since_ = std::chrono::steady_clock::now();
    const uint64_t delay_us = settings_.delay_us;
    LingerLocked(std::chrono::microseconds(delay_us != 0 ? delay_us : config_.linger_us));
  }
}

void File::LingerLocked(std::chrono::steady_clock::duration linger) {
  linger_due_ = lingering_since_ + linger;
  lanes_.ScheduleAfter(shared_from_this(), linger_due_ - std::chrono::steady_clock::now());
}

bool File::LingeredEnoughLocked() {
  if (!lingering_) return false;
  if (settings_.paused) {
    lingering_ = false;
    return false;
  }
  if (lanes_.threaded()) {
    const auto now = std::chrono::steady_clock::now();
    if (now < linger_due_) return false;
    const auto patience = std::chrono::microseconds(config_.linger_us * kPatience);
    if (settings_.delay_us == 0 && PatientLocked() && now < lingering_since_ + patience) {
      LingerLocked(patience);
      return false;
    }
  }
  lingering_ = false;
  return true;
}

Status File::Truncate(uint64_t size) {
  const uint64_t old = eof_.load(std::memory_order_relaxed);
  if (Broken("truncate")) {  // negative control: cut storage now, whatever is on its way
    eof_.store(size, std::memory_order_relaxed);
    (void)device_->Truncate(size);
    return {};
  }
  if (size >= old) {
    eof_.store(size, std::memory_order_relaxed);
    return {};
  }
  {
    MutexLock lock(read_mutex_);
    cache_.CutFrom(size);
  }
  AwaitFirstSuperblock();
  bool cut_storage = false;
  {
    MutexLock lock(mutex_);
    pending_.CutFrom(size);
    AwaitInFlightLocked(size, UINT64_MAX);
    pending_.CutFrom(size);  // again: what failed while we waited came back
    reserved_.CutFrom(size);
    eof_.store(size, std::memory_order_relaxed);
    cut_storage = resizing_ = disk_size_ > size;
  }
  const int error = cut_storage ? device_->Truncate(size) : 0;
  MutexLock lock(mutex_);
  resizing_ = false;
  if (error == 0) {
    disk_size_ = std::min(disk_size_, size);
  } else {
    eof_.store(disk_size_,
               std::memory_order_relaxed);  // so that the next attempt finds something to cut
  }
  SettleLocked();
  PlanLocked();
  changed_.NotifyAll();
  if (error != 0) return Status::Failed(error, "truncate").At(path_, size, old - size);
  return {};
}

Status File::Lock(bool exclusive) {
  {
    MutexLock lock(mutex_);
    if (exclusive_.load(
            std::memory_order_relaxed)) {  // an adopted file still has its writer's lock
      downgrade_when_drained_ = !exclusive && !DrainedLocked();
      if (exclusive || downgrade_when_drained_) return {};
    }
  }
  if (const int error = device_->Lock(exclusive); error != 0) {
    return Status::Failed(error, exclusive ? "lock for writing" : "lock for reading")
        .At(path_, 0, 0);
  }
  exclusive_.store(exclusive, std::memory_order_relaxed);
  locked_.store(true, std::memory_order_relaxed);
  return {};
}

Status File::Unlock() {
  // A file whose close is deferred keeps its lock until it is whole; closing the descriptor releases it.
  if (CloseMayBeDeferred()) return {};
  Status status = Drain(Wait::kClose);
  locked_.store(false, std::memory_order_relaxed);
  exclusive_.store(false, std::memory_order_relaxed);
  {
    MutexLock lock(read_mutex_);
    cache_.Clear();
  }
  const int error = device_->Unlock();
  if (status.ok() && error != 0) status = Status::Failed(error, "unlock").At(path_, 0, 0);
  return status;
}

Status File::WriteThrough(Fallback reason) {
  if (!write_through_.load(std::memory_order_relaxed)) {  // the program's side: one caller
    through_reason_.store(reason, std::memory_order_relaxed);
    write_through_.store(true, std::memory_order_relaxed);
    Count(reason);
  }
  return Drain(Wait::kOther);
}

Status File::Descriptor(int*& descriptor) {
  descriptor = device_->descriptor();
  if (CallScope::Allows(CallScope::kFindFile)) CallScope::current()->Found(shared_from_this());
  const bool out = CallScope::Allows(CallScope::kHandOutDescriptor);
  const bool swmr = CallScope::Allows(CallScope::kStartSwmr);
  if (!out && !swmr) return {};
  handed_out_.store(true, std::memory_order_relaxed);
  {
    MutexLock lock(read_mutex_);
    cache_.Clear();
  }
  return WriteThrough(out ? Fallback::kHandleOut : Fallback::kSwmrWrite);
}

}  // namespace tidelane
