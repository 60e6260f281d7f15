// Capture: bytes are copied, or taken as they lie where the program lends them.
#include "file/write_path.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "base/trace.h"
#include "buffer/copy.h"
#include "buffer/loan.h"

namespace tidelane {
namespace {

constexpr uint64_t kQuickPiece =
    1u << 20;  // written by the caller at a time: storage may be slower the next time
constexpr size_t kTooManyExtents = 1u << 18;  // bounds the map
constexpr uint64_t kSmallestLoan = 4096;      // copying less is cheaper than keeping it apart
constexpr auto kArenaWait = std::chrono::milliseconds(5);
constexpr auto kIdleArenaWait = std::chrono::microseconds(100);  // where lanes have nothing to do

// How much of a write this thread makes at a time: `scrap` is not worth a lane.
uint64_t PieceOf(uint64_t address, uint64_t size, uint64_t scrap) {
  const uint64_t piece = std::min(size, kQuickPiece - address % kQuickPiece);
  return size - piece <= scrap ? size : piece;
}

// What is no regular file has no size, and is not empty.
bool IsEmpty(Device& device) {
  uint64_t size = 0;
  return device.Size(size) == 0 && size == 0;
}

}  // namespace

WritePath::WritePath(FileContext& file, Drainer& drainer, FileEpochs& epochs, ReadPath& reads)
    : file_(file),
      drainer_(drainer),
      epochs_(epochs),
      reads_(reads),
      commits_(file, drainer),
      superblock_(!IsEmpty(*file.device)) {}

Status WritePath::Write(uint64_t address, uint64_t size, const void* bytes,
                        const CallContext& call) {
  if (size == 0) return {};
  reads_.deferred_reads().Await(address, address + size);
  const bool write_through = file_.mode.through();
  // Before anyone is told of the bytes: if there is no space, the file does not have them.
  if (!write_through && reservation_.wanted()) {
    if (const int error = reservation_.Cover(*file_.store, address, size); error != 0)
      return file_.Failure(error, "reserve space for", address, size);
  }
  reads_.Written(address, size, bytes);
  if (write_through) {
    if (commits_.enabled() && superblock_.MayBeIn(address, size))
      FindSuperblock(address, size, bytes);
    return WriteAsNatively(address, size, bytes);
  }
  Span span(SpanKind::kWrite, size);
  if (file_.traits.owns_superblock && superblock_.MayBeIn(address, size))
    FindSuperblock(address, size, bytes);
  const auto* at = static_cast<const std::byte*>(bytes);
  const bool through = IsSynchronous(call);
  const bool apart = superblock_.IsApartFrom(address, size);
  if (apart && !through) return Capture(address, size, at, call);
  return WriteAtSuperblock(address, size, at, through, call);
}

bool WritePath::IsSynchronous(const CallContext& call) const {
  return call.request() == nullptr && (file_.mode.implicit_sync() || call.writes_through());
}

WriteCosts::WriteBudget WritePath::BeginLarge(uint64_t now_ns, uint64_t size) const {
  const Arena& arena = file_.env.arena;
  return file_.costs.Begin(now_ns, file_.path, file_.mode.mode(), arena.cap(), arena.in_use(),
                           size);
}

void WritePath::InsertLocked(const SlabWriter::Space& space, uint64_t address,
                             const CallContext& call) {
  Backlog& backlog = drainer_.backlog();
  // No request waits for the superblock, which may have to wait for a drain: only barriers do.
  const bool superblock = superblock_.Holds(address);
  uint64_t epoch = Epochs::kUntracked;
  try {
    if (!superblock) epoch = epochs_.OfCall(backlog, call);
  } catch (const std::bad_alloc&) {
    Arena::Unref(space.slab);
    throw;
  }
  backlog.pending.Insert({.address = address,
                          .size = space.size,
                          .data = space.data,
                          .slab = space.slab,
                          .epoch = epoch,
                          .place = call.PlaceOf(address)});
  backlog.order.Captured();
  backlog.captured.bytes += space.size;
  const uint64_t end = address + space.size;
  if (file_.dirty_ranges != nullptr) file_.dirty_ranges->Extend(address, end);
  file_.ExtendTo(end);
  drainer_.MaybeScheduleLocked();
}

// From the program's own buffer, which it keeps as it is until the request has completed, or from memory of ours.
bool WritePath::CaptureLent(uint64_t address, uint64_t size, const std::byte* bytes,
                            const CallContext& call) {
  if (size < kSmallestLoan) return false;
  Slab* loan = call.held() != nullptr ? call.held()->SlabOf(bytes, size) : nullptr;
  const bool ours = loan != nullptr;
  if (!ours && call.request() != nullptr) loan = call.request()->LoanOf(bytes, size);
  if (loan == nullptr) return false;
  MutexLock lock(drainer_.mutex());
  Backlog& backlog = drainer_.backlog();
  if ((!ours && backlog.loans.over) || backlog.pending.queued_extents() >= kTooManyExtents) {
    Arena::Unref(loan);
    return false;
  }
  if (!ours) backlog.loans.any = true;
  InsertLocked({const_cast<std::byte*>(bytes), size, loan}, address, call);
  ++backlog.captured.writes;
  Count(ours ? Counter::kBytesHeld : Counter::kBytesLent, size);
  // The program need not store what it has not copied: lanes do, while it copies more from a device, or computes.
  if (ours && backlog.policy.ProgramStores()) drainer_.HurryLocked();
  return true;
}

Status WritePath::Capture(uint64_t address, uint64_t size, const std::byte* from,
                          const CallContext& call) {
  if (CaptureSuperblock(address, size, from, call)) return {};
  BufferedWrite capturing{.bytes = size, .call = call};
  const uint64_t called_ns = size >= kLargeWrite ? NowNs() : 0;
  if (called_ns != 0) capturing.may_wait = BeginLarge(called_ns, size);
  if ((call.request() != nullptr || call.held() != nullptr) &&
      CaptureLent(address, size, from, call)) {
    // What is not copied costs the program the copy from the device, if anything.
    const uint64_t copy_ns = call.held() != nullptr ? call.held()->TakeCopyNs() : 0;
    if (called_ns != 0) file_.costs.End(called_ns - copy_ns, NowNs(), size, copy_ns);
    return {};
  }
  capturing.piece_ns = called_ns;
  if (Status status = CapturePieces(address, size, from, capturing); !status.ok()) return status;
  if (capturing.enough) drainer_.StoreInline();
  if (called_ns != 0) {
    file_.costs.End(called_ns, capturing.enough ? NowNs() : capturing.piece_ns,
                    size - capturing.through_bytes, capturing.copy_ns);
    if (capturing.went_through) file_.env.wrote_through(file_.eof.load(std::memory_order_relaxed));
    Count(Counter::kCopyNs, capturing.copy_ns);
  }
  return {};
}

Status WritePath::CapturePieces(uint64_t address, uint64_t size, const std::byte* from,
                                BufferedWrite& capturing) {
  while (size != 0) {
    SlabWriter::Space space;
    Run direct;  // what this thread writes itself, because that is better or because there is no room
    Fallback reason = Fallback::kArenaFull;
    bool chosen = false;
    {
      MutexLock lock(drainer_.mutex());
      Backlog& backlog = drainer_.backlog();
      chosen = size >= kLargeWrite && backlog.policy.WritesThrough(capturing.may_wait.anywhere) &&
               backlog.pending.queued_bytes() >= capturing.may_wait.bytes;
      if (chosen) {
        reason = backlog.policy.WhyThrough();
        direct = DirectRun(address, PieceOf(address, size, kSmallCopy));
        BeginDirectLocked(direct);
      } else if (backlog.pending.queued_extents() < kTooManyExtents) {
        space = backlog.writer.Take(size, address);
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
        direct = DirectRun(address, PieceOf(address, size, kSmallCopy));
        MutexLock lock(drainer_.mutex());
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
      MutexLock lock(drainer_.mutex());
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

void WritePath::CapturedLocked(const SlabWriter::Space& space, uint64_t address,
                               BufferedWrite& capturing) {
  Backlog& backlog = drainer_.backlog();
  if (backlog.writer.PinsTooMuch(backlog.pending)) backlog.planner.Hurry();
  InsertLocked(space, address, capturing.call);
  backlog.captured.writes += std::exchange(capturing.uncounted, 0);
  capturing.enough = drainer_.ShouldStoreInlineLocked();
}

bool WritePath::MakeRoom(uint64_t wanted) {
  const Waiting waiting(Wait::kArena);
  bool room = false;
  // Twice idle: between one look and the next a lane may be between two tasks.
  for (unsigned idle = 0; idle < 2 && !room;) {
    file_.env.relieve_arena();
    RelieveArena();
    if (!file_.env.lanes.threaded()) {
      while (file_.env.lanes.RunQueued()) {
      }
    }
    // When failed extents fill the arena nothing will make room, and every write comes here.
    const auto late =
        std::chrono::steady_clock::now() +
        (file_.env.lanes.idle() ? std::chrono::nanoseconds(kIdleArenaWait) : kArenaWait);
    bool extents_bound = false;
    {
      MutexLock lock(drainer_.mutex());
      Backlog& backlog = drainer_.backlog();
      extents_bound = backlog.pending.queued_extents() >= kTooManyExtents;
      if (extents_bound && !backlog.IsStuck()) drainer_.WaitLocked(late);
      room = extents_bound && backlog.pending.queued_extents() < kTooManyExtents;
    }
    if (room) break;
    Slab* slab = extents_bound ? nullptr : file_.env.arena.AcquireUntil(late);
    if (slab != nullptr) {
      MutexLock lock(drainer_.mutex());
      Backlog& backlog = drainer_.backlog();
      room = backlog.writer.Use(slab, wanted);
    } else {
      idle = file_.env.lanes.idle() ? idle + 1 : 0;
    }
  }
  return room;
}

void WritePath::RelieveArena() {
  reads_.DropFetched();
  MutexLock lock(drainer_.mutex());
  drainer_.backlog().writer.Recycle(true);
  drainer_.HurryLocked();
}

}  // namespace tidelane
