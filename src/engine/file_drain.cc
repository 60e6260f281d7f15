// The lanes' side of a file: runs, and the drain's last steps. Who waits for them is in file_wait.cc.
#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/incidents.h"
#include "base/trace.h"
#include "engine/file.h"
#include "extent/broken.h"

namespace tidelane {
namespace {

constexpr uint64_t kLongestRun =
    1u << 20;  // longer writes hold the inode's lock against the program's own
constexpr std::byte kZeros[4096]{};
constexpr uint64_t kLongPiece =
    4096;  // on quick storage a request takes no longer than reading and writing so much again

// How many parts a run has at most, with zeros in its gaps.
size_t MostParts(const Run& run) {
  const size_t extents = run.extents.size();
  return run.gap_bytes == 0 ? extents : 2 * extents + run.gap_bytes / sizeof kZeros;
}

}  // namespace

bool File::TakeRunLocked(Run& run) {
  if (resizing_) return false;
  // Where a write is no more than a copy, two lanes would only spin on the inode's lock, on cores the program wants.
  if (quick_storage_ && pending_.in_flight() && lanes_.threaded()) return false;
  RunLimits limits;
  limits.bytes = kLongestRun;
  // Reading a gap and writing it back is safe only while nobody else can write there.
  limits.gap = Alone() ? settings_.gap_bytes : 0;
  if (quick_storage_) limits.long_piece = kLongPiece;
  const bool rest_is_done = drain_wanted_ && pending_.only_held() && !NeedsTruncateLocked();
  return pending_.TakeRun(limits, order_, rest_is_done, run);
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
  NoteFailureLocked(Status::Failed(ENOMEM, "write").At(path_, 0, pending_.queued_bytes()));
  pending_.FailQueued(error_);
  SettleLocked();  // other ranks do not wait for what nobody stores
  changed_.NotifyAll();
}

void File::StoreNext() {
  Run run;
  bool took = false;
  bool truncate = false;
  uint64_t stored = 0;
  {
    MutexLock lock(mutex_);
    TallyLocked();
    stored = disk_size_;
    if (LingeredEnoughLocked()) sweep_extents_ = pending_.ordinary();
    if (WorthwhileLocked()) {
      truncate = drain_wanted_ && !resizing_ && !extend_failed_ && pending_.only_held() &&
                 NeedsTruncateLocked();
      resizing_ = resizing_ || truncate;
      took = !truncate && TakeRunLocked(run);
    }
    if (took) {
      sweep_extents_ -= std::min(sweep_extents_, run.extents.size());
      // Another lane may join, if there is something for it, and storage gains from it.
      if (!quick_storage_ && pending_.ordinary() != 0) {
        try {
          PlanLocked();
        } catch (const std::bad_alloc&) {  // then none does; this run must not be lost
        }
      }
    } else if (!truncate) {
      SettleLocked();
    }
  }
  if (took) {
    lanes_.YieldToReads();
    Working working(run.size());
    const int error = WriteRun(run, stored);
    working.Stop();
    AfterRun(run, error);
  }
  if (truncate) TruncateUp();
}

void File::TruncateUp() {
  const uint64_t size = eof();
  const int error = device_->Truncate(size);
  MutexLock lock(mutex_);
  resizing_ = false;
  if (error == 0) {
    NoteSize(size);
  } else {
    extend_failed_ = true;
    NoteFailureLocked(Status::Failed(error, "extend").At(path_, disk_size_, size - disk_size_));
  }
  SettleLocked();
  if (!StuckLocked() && !DrainedLocked()) KickLocked();
  changed_.NotifyAll();
}

int File::WriteTimed(Run& run, const iovec* parts, size_t count) {
  run.write_begin_ns = NowNs();
  const int error = device_->Write(run.begin, parts, count);
  run.write_end_ns = NowNs();
  return error;
}

// In gaps lies nothing yet: zeros, then.
int File::WriteParts(Run& run) {
  std::vector<iovec> parts;
  parts.reserve(MostParts(run));
  uint64_t at = run.begin;
  for (const Extent& extent : run.extents) {
    for (; at < extent.address; at += parts.back().iov_len) {
      const uint64_t gap = std::min<uint64_t>(extent.address - at, sizeof kZeros);
      parts.push_back({const_cast<std::byte*>(kZeros), gap});
    }
    parts.push_back({const_cast<std::byte*>(extent.data), extent.size});
    at = extent.end();
  }
  return WriteTimed(run, parts.data(), parts.size());
}

// One buffer for the whole run: with gaps it is read first, and written back with what is new on top.
int File::WriteWhole(Run& run, uint64_t stored) {
  // Local memory, not the arena: a lane that waited for the arena could wait for itself.
  const auto whole = std::make_unique_for_overwrite<std::byte[]>(run.size());
  if (run.gap_bytes != 0 && run.begin >= stored) {
    std::memset(whole.get(), 0, run.size());
  } else if (run.gap_bytes != 0) {
    Span span(SpanKind::kGapRead, run.size());
    Count(Counter::kGapFillReads);
    Count(Counter::kGapFillBytes, run.gap_bytes);
    if (const int error = device_->Read(run.begin, whole.get(), run.size()); error != 0)
      return error;
  }
  for (const Extent& extent : run.extents) {
    std::memcpy(whole.get() + (extent.address - run.begin), extent.data, extent.size);
  }
  const iovec part{whole.get(), run.size()};
  return WriteTimed(run, &part, 1);
}

int File::WriteRun(Run& run, uint64_t stored) {
  Count(Counter::kRequestsWritten);
  const bool nothing_to_keep = run.gap_bytes == 0 || run.begin >= stored;
  const bool in_parts =
      nothing_to_keep && MostParts(run) <= IOV_MAX;  // more would be several requests
  int error = 0;
  try {
    error = in_parts ? WriteParts(run) : WriteWhole(run, stored);
  } catch (const std::bad_alloc&) {
    error = ENOMEM;  // as any failure: the bytes stay, and are tried again
  }
  if (Broken("failure")) error = 0;  // negative control: nobody hears of it
  if (error == 0) Count(Counter::kBytesWritten, run.size());
  return error;
}

void File::AfterRun(Run& run, int error) {
  const uint64_t stored_end = error == 0 ? run.end : EndAfterFailure(*device_, run.end);
  MutexLock lock(mutex_);
  if (error == 0) {
    const bool was_first =
        order_ == PendingMap::Order::kHeldFirst && run.begin == pending_.held_begin();
    pending_.Complete(run);
    if (was_first) order_ = PendingMap::Order::kHeldLast;
  } else {
    const Status failure = Status::Failed(error, "write").At(path_, run.begin, run.size());
    if (pending_.Fail(run, failure) != 0) lost_ = failure;
    NoteFailureLocked(failure);
  }
  NoteSize(stored_end);
  try {
    GoOnLocked(run, error);
  } catch (const std::bad_alloc&) {
    NoMemoryLocked();
  }
  changed_.NotifyAll();
}

void File::GoOnLocked(const Run& run, int error) {
  if (error == 0) NoteSpeedLocked(run.size(), run.write_begin_ns, run.write_end_ns);
  SettleLocked();
  // What waited for this run (the same bytes, the drain's next step) can go on now.
  if (WorthwhileLocked() && !DrainedLocked() && !StuckLocked()) {
    KickLocked();
  } else {
    PlanLocked();
  }
}

void File::SettleLocked() {
  if (pending_.ordinary() == 0) {
    sweep_extents_ = 0;
    urgent_ = false;
  }
  if (pending_.ordinary() == 0) writer_.Recycle(false);
  // What could not be stored is told by this rank's flush and close; nobody can wait for it.
  if (board_ != nullptr && (DrainedLocked() || StuckLocked())) board_->Clear();
  if (!DrainedLocked()) return;
  drain_wanted_ = false;
  extend_failed_ = false;  // it need not be longer any more
  if (downgrade_when_drained_) {
    downgrade_when_drained_ = false;
    exclusive_.store(false, std::memory_order_relaxed);
    (void)device_->Lock(
        false);  // from exclusive to shared on one's own descriptor: nobody can be in the way
  }
}

void File::Finish() {
  std::function<void(const std::shared_ptr<File>&)> finished;
  {
    MutexLock lock(mutex_);
    if (!finished_ || !DrainedLocked()) return;
    finished = std::move(finished_);
    finished_ = nullptr;
  }
  try {
    finished(shared_from_this());
  } catch (const std::bad_alloc&) {
    MutexLock lock(mutex_);
    if (closing_) finished_ = std::move(finished);  // who waits for it, or the exit, tries again
    changed_.NotifyAll();
  }
}

}  // namespace tidelane
