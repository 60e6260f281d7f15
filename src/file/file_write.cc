// The program's side of writing: bytes are captured, lent or written through.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/incidents.h"
#include "base/trace.h"
#include "buffer/copy.h"
#include "buffer/loan.h"
#include "file/file.h"

namespace tidelane {
namespace {

constexpr uint64_t kSmallCopy =
    uint64_t{64} * 1024;  // copied under the lock: cheaper than taking it twice
constexpr uint64_t kLargeWrite =
    uint64_t{16} * 1024;  // a copy of it takes longer than what else a request costs
constexpr size_t kTooManyExtents = 1u << 18;  // bounds the map
constexpr uint64_t kQuickPiece =
    1u << 20;  // written by the caller at a time: storage may be slower the next time
constexpr uint64_t kSmallestLoan = 4096;  // copying less is cheaper than keeping it apart
constexpr auto kArenaWait = std::chrono::milliseconds(5);
constexpr auto kIdleArenaWait = std::chrono::microseconds(100);  // where lanes have nothing to do

// What this thread writes itself at a time.
Run DirectPiece(uint64_t address, uint64_t size) {
  uint64_t piece = std::min(size, kQuickPiece - address % kQuickPiece);
  if (size - piece <= kSmallCopy) piece = size;  // no scrap for a lane
  Run direct;
  direct.begin = address;
  direct.end = address + piece;
  return direct;
}

}  // namespace

Status File::Write(uint64_t address, uint64_t size, const void* bytes, const CallContext& call) {
  if (size == 0) return {};
  deferred_reads().Await(address, address + size);
  const bool write_through = mode_.through();
  // Before anyone is told of the bytes: if there is no space, the file does not have them.
  if (!write_through && reservation_.wanted()) {
    if (const int error = reservation_.Cover(*store_, address, size); error != 0)
      return Status::Failed(error, "reserve space for").At(path_, address, size);
  }
  reads_.Written(address, size, bytes);
  if (write_through) return WriteAsNatively(address, size, bytes);
  Span span(SpanKind::kWrite, size);
  if (!shared_ && superblock_.MayBeIn(address, size)) FindSuperblock(address, size, bytes);
  const auto* at = static_cast<const std::byte*>(bytes);
  const bool through = CallIsSynchronous(call);
  const bool apart = superblock_.IsApartFrom(address, size);
  if (apart && !through) return Capture(address, size, at, call);
  return WriteAtSuperblock(address, size, at, through, call);
}

void File::AwaitInFlightLocked(uint64_t begin, uint64_t end) {
  const auto nobody_stores = [&]() TL_REQUIRES(mutex_) {
    return !drain_.resizing() && !pending_.InFlight(begin, end);
  };
  if (nobody_stores()) return;
  const Waiting waiting(Wait::kOther);
  AwaitLocked(By::kSleeping, kForEver, nobody_stores);
}

uint64_t File::CurrentEpochLocked(const CallContext& call) {
  CallScope* const request = call.request();
  if (request == nullptr) return epoch_.OfOthers();
  const uint64_t last = request->EpochOf(this);
  const uint64_t epoch = epoch_.OfRequest(last);
  if (epoch != last) request->Touch(shared_from_this(), epoch, false);
  return epoch;
}

void File::InsertLocked(const SlabWriter::Space& space, uint64_t address, const CallContext& call) {
  // No request waits for the superblock, which may have to wait for a drain: only barriers do.
  const bool superblock = superblock_.Holds(address);
  uint64_t epoch = Epochs::kUntracked;
  try {
    if (!superblock) epoch = CurrentEpochLocked(call);
  } catch (const std::bad_alloc&) {
    Arena::Unref(space.slab);
    throw;
  }
  pending_.Insert({.address = address,
                   .size = space.size,
                   .data = space.data,
                   .slab = space.slab,
                   .epoch = epoch,
                   .place = call.PlaceOf(address)});
  order_.Captured();
  tally_.bytes += space.size;
  const uint64_t end = address + space.size;
  if (dirty_ranges_ != nullptr) dirty_ranges_->Extend(address, end);
  if (end > eof_.load(std::memory_order_relaxed)) eof_.store(end, std::memory_order_relaxed);
  MaybeScheduleFlushLocked();
}

// Two atomic additions a write would be a tenth of a small one's cost; two a run are nothing.
void File::CountCaptured() {
  MutexLock lock(mutex_);
  TallyLocked();
}

void File::TallyLocked() {
  if (tally_.bytes == 0) return;
  Count(Counter::kWritesDeferred, tally_.writes);
  Count(Counter::kBytesDeferred, tally_.bytes);
  tally_ = {};
}

// From the program's own buffer, which it keeps as it is until the request has completed, or from memory of ours.
bool File::CaptureLent(uint64_t address, uint64_t size, const std::byte* bytes,
                       const CallContext& call) {
  if (size < kSmallestLoan) return false;
  Slab* loan = call.held() != nullptr ? call.held()->SlabOf(bytes, size) : nullptr;
  const bool ours = loan != nullptr;
  if (!ours && call.request() != nullptr) loan = call.request()->LoanOf(bytes, size);
  if (loan == nullptr) return false;
  MutexLock lock(mutex_);
  if ((!ours && loans_.over) || pending_.queued_extents() >= kTooManyExtents) {
    Arena::Unref(loan);
    return false;
  }
  if (!ours) loans_.any = true;
  InsertLocked({const_cast<std::byte*>(bytes), size, loan}, address, call);
  ++tally_.writes;
  if (!ours) {
    Count(Counter::kBytesLent, size);
  } else if (policy_.ProgramStores()) {
    // The program need not store what it has not copied: lanes do, while it copies more from the device.
    planner_.Hurry();
    ScheduleFlushLocked();
  }
  return true;
}

// It stays until the drain: apart, so that it pins no slab.
bool File::CaptureSuperblock(uint64_t address, uint64_t size, const std::byte* bytes,
                             const CallContext& call) {
  if (!superblock_.Is(address, size)) return false;
  Slab* const kept = KeepCopy(bytes, size);
  if (kept == nullptr) return false;
  MutexLock lock(mutex_);
  InsertLocked({kept->data, size, kept}, address, call);
  ++tally_.writes;
  return true;
}

bool File::BeginScattered(uint64_t begin_ns, uint64_t bytes) {
  const WriteCosts::WriteBudget may_wait = BeginLarge(begin_ns, bytes);
  bool chosen = false;
  {
    MutexLock lock(mutex_);
    chosen = policy_.StorageIsMemorySpeed() && policy_.WritesThrough(may_wait.anywhere) &&
             pending_.queued_bytes() >= may_wait.bytes;
  }
  if (!chosen) costs_.End(begin_ns, NowNs(), 0, 0);
  return chosen;
}

void File::EndScattered(uint64_t begin_ns, uint64_t bytes, uint64_t pieces) {
  const uint64_t end_ns = NowNs();
  Count(Fallback::kQuickStorage);
  CountSync(Fallback::kQuickStorage, bytes);
  costs_.End(begin_ns, end_ns, 0, 0);
  MutexLock lock(mutex_);
  policy_.Stored(bytes / pieces, begin_ns, begin_ns + (end_ns - begin_ns) / pieces);
}

Status File::Capture(uint64_t address, uint64_t size, const std::byte* from,
                     const CallContext& call) {
  if (CaptureSuperblock(address, size, from, call)) return {};
  BufferedWrite capturing{.bytes = size, .call = call};
  const uint64_t called_ns = size >= kLargeWrite ? NowNs() : 0;
  if (called_ns != 0) capturing.may_wait = BeginLarge(called_ns, size);
  if ((call.request() != nullptr || call.held() != nullptr) &&
      CaptureLent(address, size, from, call)) {
    // What is not copied costs the program the copy from the device, if anything.
    const uint64_t copy_ns = call.held() != nullptr ? call.held()->TakeCopyNs() : 0;
    if (called_ns != 0) costs_.End(called_ns - copy_ns, NowNs(), size, copy_ns);
    return {};
  }
  capturing.piece_ns = called_ns;
  if (Status status = CapturePieces(address, size, from, capturing); !status.ok()) return status;
  if (capturing.enough) StoreInline();
  if (called_ns != 0) {
    costs_.End(called_ns, capturing.enough ? NowNs() : capturing.piece_ns,
               size - capturing.through_bytes, capturing.copy_ns);
    if (capturing.went_through) env_.wrote_through(eof_.load(std::memory_order_relaxed));
    Count(Counter::kCopyNs, capturing.copy_ns);
  }
  return {};
}

Status File::CapturePieces(uint64_t address, uint64_t size, const std::byte* from,
                           BufferedWrite& capturing) {
  while (size != 0) {
    SlabWriter::Space space;
    Run direct;  // what this thread writes itself, because that is better or because there is no room
    Fallback reason = Fallback::kArenaFull;
    bool chosen = false;
    {
      MutexLock lock(mutex_);
      chosen = size >= kLargeWrite && policy_.WritesThrough(capturing.may_wait.anywhere) &&
               pending_.queued_bytes() >= capturing.may_wait.bytes;
      if (chosen) {
        reason = policy_.WhyThrough();
        direct = DirectPiece(address, size);
        BeginDirectLocked(direct);
      } else if (pending_.queued_extents() < kTooManyExtents) {
        space = writer_.Take(size, address);
      }
      if (space.data != nullptr && space.size <= kSmallCopy) {
        std::memcpy(space.data, from, space.size);
        CapturedLocked(space, address, capturing);
      }
    }
    uint64_t done = space.size;
    if (space.data == nullptr) {
      if (!chosen && MakeRoom(size)) {
        if (capturing.piece_ns != 0) capturing.piece_ns = NowNs();
        continue;
      }
      if (!chosen) {
        direct = DirectPiece(address, size);
        MutexLock lock(mutex_);
        BeginDirectLocked(direct);
      }
      Count(reason);
      if (Status status = StoreOrKeep(direct, from, reason, capturing.call); !status.ok())
        return status;
      done = direct.size();
      capturing.went_through |= chosen;
      capturing.through_bytes += done;
      if (capturing.piece_ns != 0) capturing.piece_ns = direct.write_end_ns;
    } else if (space.size > kSmallCopy) {
      CopyBytes(space.data, from, space.size, capturing.bytes);
      MutexLock lock(mutex_);
      CapturedLocked(space, address, capturing);
    }
    if (space.data != nullptr && capturing.piece_ns != 0) {
      const uint64_t now_ns = NowNs();
      capturing.copy_ns += now_ns - std::exchange(capturing.piece_ns, now_ns);
    }
    address += done, from += done, size -= done;
  }
  return {};
}

void File::CapturedLocked(const SlabWriter::Space& space, uint64_t address,
                          BufferedWrite& capturing) {
  if (writer_.PinsTooMuch(pending_)) planner_.Hurry();
  InsertLocked(space, address, capturing.call);
  tally_.writes += std::exchange(capturing.uncounted, 0);
  capturing.enough = ShouldStoreInlineLocked();
}

bool File::MakeRoom(uint64_t wanted) {
  const Waiting waiting(Wait::kArena);
  bool room = false;
  // Twice idle: between one look and the next a lane may be between two tasks.
  for (unsigned idle = 0; idle < 2 && !room;) {
    env_.relieve_arena();
    RelieveArena();
    if (!env_.lanes.threaded()) {
      while (env_.lanes.RunQueued()) {
      }
    }
    // When failed extents fill the arena nothing will make room, and every write comes here.
    const auto late = std::chrono::steady_clock::now() +
                      (env_.lanes.idle() ? std::chrono::nanoseconds(kIdleArenaWait) : kArenaWait);
    bool extents_bound = false;
    {
      MutexLock lock(mutex_);
      extents_bound = pending_.queued_extents() >= kTooManyExtents;
      if (extents_bound && !StuckLocked()) WaitLocked(late);
      room = extents_bound && pending_.queued_extents() < kTooManyExtents;
    }
    if (room) break;
    Slab* slab = extents_bound ? nullptr : env_.arena.AcquireUntil(late);
    if (slab != nullptr) {
      MutexLock lock(mutex_);
      room = writer_.Use(slab, wanted);
    } else {
      idle = env_.lanes.idle() ? idle + 1 : 0;
    }
  }
  return room;
}

void File::RelieveArena() {
  reads_.DropFetched();
  MutexLock lock(mutex_);
  writer_.Recycle(true);
  if (pending_.ordinary() == 0) return;
  planner_.Hurry();
  ScheduleFlushLocked();
}

Status File::WriteOrKeep(uint64_t address, uint64_t size, const std::byte* bytes, Fallback reason,
                         const CallContext& call) {
  Run direct;
  direct.begin = address;
  direct.end = address + size;
  {
    MutexLock lock(mutex_);
    BeginDirectLocked(direct);
  }
  return StoreOrKeep(direct, bytes, reason, call);
}

// What was refused lies in memory of its own: the arena may be what there was no room in.
Status File::StoreOrKeep(Run& direct, const std::byte* bytes, Fallback reason,
                         const CallContext& call) {
  Status status = StoreDirect(direct, bytes, reason);
  if (status.ok() || !call.keeps_refused()) return status;
  Slab* kept = KeepCopy(bytes, direct.size());
  if (kept == nullptr) return status;
  reads_.Written(direct.begin, direct.size(), bytes);
  MutexLock lock(mutex_);
  InsertLocked({kept->data, direct.size(), kept}, direct.begin, call);
  return {};
}

Status File::WriteAsNatively(uint64_t address, uint64_t size, const void* bytes) {
  const uint64_t begin_ns = size < kLargeWrite ? 0 : NowNs();
  if (begin_ns != 0) (void)BeginLarge(begin_ns, size);
  Run direct;
  direct.begin = address;
  direct.end = address + size;
  {
    MutexLock lock(mutex_);
    BeginDirectLocked(direct);
    order_.StoredUnseen();
  }
  Status status = StoreDirect(direct, bytes, mode_.reason());
  if (begin_ns != 0) costs_.End(begin_ns, direct.write_end_ns, 0, 0);
  return status;
}

void File::BeginDirectLocked(const Run& direct) {
  AwaitFirstSuperblockLocked();
  AwaitInFlightLocked(direct.begin, direct.end);
  if (direct.begin < pending_.superblock_end()) order_.Storing();
  // What is queued under it stays there: if this fails, it is the file's content.
  pending_.BeginDirect(direct);
  order_.Captured();
}

Status File::StoreDirect(Run& direct, const void* bytes, Fallback reason) {
  const uint64_t size = direct.size();
  const Waiting waiting(Wait::kWrite, size);
  int error = store_->WriteBytes(direct, bytes);
  Count(Counter::kWritesSync);
  if (error != 0) reads_.ForgetBlocks();
  MutexLock lock(mutex_);
  pending_.Complete(direct);
  if (error == 0) {
    policy_.Stored(size, direct.write_begin_ns, direct.write_end_ns);
    try {
      pending_.CutRange(direct.begin, direct.end);
    } catch (const std::bad_alloc&) {
      error = ENOMEM;  // older bytes are still queued, and will be stored over these
    }
  }
  // Also of one that failed in the middle: a later truncation must know.
  const uint64_t stored_end = std::min(direct.end, store_->size());
  if (stored_end > eof_.load(std::memory_order_relaxed))
    eof_.store(stored_end, std::memory_order_relaxed);
  NoteProgressLocked();
  changed_.NotifyAll();
  MaybeScheduleFlushLocked();  // lanes may have waited for these bytes
  if (error != 0) {
    Status status = Status::Failed(error, "write").At(path_, direct.begin, size);
    NoteError(status);
    return status;
  }
  CountSync(reason, size);
  return {};
}

}  // namespace tidelane
