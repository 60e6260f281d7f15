// How a log's bytes move to the file, and a chain ends.
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "base/counters.h"
#include "extent/test_hooks.h"
#include "log/commit_log.h"

namespace tidelane::log {
namespace {

using Clock = Lanes::Clock;

// A program that flushes again soon would have the same bytes moved again and again.
constexpr auto kQuiet = std::chrono::seconds(1);

}  // namespace

// All that is logged must be committed, and nobody writing there.
bool CommitLog::BeginMoving() {
  if (moving_.layer.segment != nullptr || current_.segment == nullptr ||
      !entries_.fresh().empty() || writing_ != 0)
    return false;
  moving_ = {.layer = std::exchange(current_, {}), .superblock = committed_, .end = committed_end_};
  entries_ = {};
  return true;
}

int CommitLog::Move() {
  MutexLock moving(move_mutex_);
  std::shared_ptr<Segment> segment;
  Superblock superblock;
  const Layer* layer = nullptr;
  uint64_t end = 0;
  {
    MutexLock lock(mutex_);
    segment = moving_.layer.segment;
    superblock = moving_.superblock;
    end = moving_.end;
    layer = &moving_.layer;  // others read it meanwhile; nobody changes it
  }
  if (segment == nullptr) return 0;
  if (const int error = MoveBytes(*segment, *layer, end); error != 0) return error;
  return EndMove(std::move(segment), superblock);
}

int CommitLog::MoveBytes(Segment& segment, const Layer& layer, uint64_t end) {
  if (file_.broken() != 0) return file_.broken();
  {
    // From now on its last commit is no torn one that could be left out.
    MutexLock marking(mark_mutex_);
    bool unknown = false;
    const int error = segment.WriteNote({.whole = segment.generation()}, file_.syncs(), unknown);
    if (unknown) file_.Break(error);
    if (error != 0) return error;
  }
  // With the zeros of what was cut off: if the file grows again, they are seen.
  if (const int error = CopyTo(file_.device(), layer, UINT64_MAX, parts_.request_bytes); error != 0)
    return error;
  if (const int error = file_.Lengthen(end); error != 0) return error;
  return file_.syncs() && !MutationEnabled("log_move_sync") ? file_.Sync() : 0;
}

// The file is marked with the segment that goes on, or not any more.
int CommitLog::EndMove(std::shared_ptr<Segment> segment, const Superblock& superblock) {
  MutexLock marking(mark_mutex_);
  std::shared_ptr<Segment> next;
  {
    MutexLock lock(mutex_);
    next = current_.segment;
  }
  const int error =
      file_.Put(next == nullptr ? superblock.Closed() : superblock.Marked(next->id()));
  if (error != 0) {
    // It may have no mark all the same: who begins another segment gives it that one's.
    if (next == nullptr) marked_ = false;
    return error;
  }
  if (file_.syncs() && !MutationEnabled("log_unmark_sync")) {
    if (const int failed = file_.Sync(); failed != 0) return failed;
  }
  marked_ = next != nullptr;
  Count(Counter::kCheckpoints);
  {
    MutexLock lock(mutex_);
    moving_ = {};
  }
  if (next != nullptr) {
    maker_.Keep(std::move(segment));
    return 0;
  }
  maker_.End(*segment);
  return 0;
}

int CommitLog::MoveAll() {
  try {
    if (const int error = Move(); error != 0) return error;
    {
      MutexLock lock(mutex_);
      if (!BeginMoving()) return 0;
    }
    return Move();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

// The commit has happened: what cannot be moved now is moved later.
void CommitLog::AfterCommit() {
  committed_at_ = Clock::now();
  bool logged = false;
  bool full = false;
  bool begun = false;
  {
    MutexLock lock(mutex_);
    logged = current_.segment != nullptr || moving_.layer.segment != nullptr;
    full = current_.segment != nullptr && current_.segment->bytes() >= parts_.place.segment_bytes;
    if (full && checkpointer_->works()) begun = BeginMoving();
  }
  if (!logged) return;
  if (begun) return checkpointer_->Come(Clock::duration::zero());
  // Both segments are full: who fills them waits. Or there is nobody else.
  if (full || !checkpointer_->has_lanes()) return static_cast<void>(MoveAll());
  MoveWhenQuiet();
}

void CommitLog::MoveWhenQuiet() {
  if (checkpointer_->has_lanes()) checkpointer_->Come(kQuiet);
}

Checkpointer::Delay CommitLog::MoveIfDue() {
  if (getpid() != process_ || file_.broken() != 0) return std::nullopt;
  {
    MutexLock lock(commit_mutex_);
    const auto quiet = Clock::now() - committed_at_;
    MutexLock state(mutex_);
    if (moving_.layer.segment == nullptr) {
      if (current_.segment == nullptr) return std::nullopt;
      if (quiet < kQuiet) return kQuiet - quiet;
      if (!BeginMoving()) return std::nullopt;
    }
  }
  try {
    if (Move() != 0) return std::nullopt;
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
  MutexLock state(mutex_);
  if (current_.segment == nullptr) return std::nullopt;
  return kQuiet;
}

int CommitLog::FinishInLog(bool& stays) {
  MutexLock lock(commit_mutex_);
  const int error = CommitLocked();
  MutexLock state(mutex_);
  stays = current_.segment != nullptr || moving_.layer.segment != nullptr;
  return error;
}

int CommitLog::Finish() {
  MutexLock lock(commit_mutex_);
  int error = CommitLocked();
  if (error == 0) error = MoveAll();
  MutexLock state(mutex_);
  const bool logged = current_.segment != nullptr || moving_.layer.segment != nullptr;
  return error == 0 && logged ? EBUSY : error;
}

}  // namespace tidelane::log
