// How a log's bytes move to the file, and a chain ends.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/counters.h"
#include "extent/test_hooks.h"
#include "log/checkpointer.h"
#include "log/logged_store.h"

namespace tidelane {
namespace {

using Clock = Lanes::Clock;

// A program that flushes again soon would have the same bytes moved again and again.
constexpr auto kQuiet = std::chrono::seconds(1);

}  // namespace

void LoggedStore::Checkpointer::RunOne() {
  MutexLock lock(mutex_);
  if (store_ == nullptr) return;
  const auto again = store_->MoveIfDue();
  if (again) {
    try {
      store_->parts_.lanes->ScheduleAfter(shared_from_this(), *again);
    } catch (const std::bad_alloc&) {  // the next commit does
    }
  }
}

// All that is logged is committed, and nobody is writing there.
bool LoggedStore::MayMove() {
  return current_.segment != nullptr && entries_.empty() && writing_ == 0;
}

bool LoggedStore::BeginMoving() {
  if (moving_.layer.segment != nullptr || !MayMove()) return false;
  moving_ = {.layer = std::exchange(current_, {}), .superblock = committed_};
  return true;
}

int LoggedStore::Move() {
  MutexLock moving(move_mutex_);
  std::shared_ptr<log::Segment> segment;
  {
    MutexLock lock(mutex_);
    segment = moving_.layer.segment;
  }
  if (segment == nullptr) return 0;
  // Others read it meanwhile; nobody changes it.
  const auto& layer = [this]() TL_NO_ANALYSIS -> const log::Layer& { return moving_.layer; }();
  Superblock superblock;
  {
    MutexLock lock(mutex_);
    superblock = moving_.superblock;
  }
  if (broken_.load() != 0) return broken_.load();
  {
    // From now on its last commit is no torn one that could be left out.
    MutexLock marking(mark_mutex_);
    bool unknown = false;
    const int error = segment->WriteNote({.whole = segment->generation()}, power(), unknown);
    if (unknown) broken_ = error;
    if (error != 0) return error;
  }
  // With the zeros of what was cut off: if the file grows again, they are seen.
  if (const int error = log::CopyTo(*parts_.file, layer, UINT64_MAX); error != 0) return error;
  if (power() && !MutationEnabled("log_move_sync")) {
    if (const int error = SyncFile(); error != 0) return error;
  }
  MutexLock marking(mark_mutex_);
  std::shared_ptr<log::Segment> next;
  {
    MutexLock lock(mutex_);
    next = current_.segment;
  }
  if (const int error = PutSuperblock(next == nullptr ? superblock : superblock.Marked(next->id()));
      error != 0) {
    // It may have no mark all the same: who begins another segment gives it that one's.
    if (next == nullptr) marked_ = false;
    return error;
  }
  if (power() && !MutationEnabled("log_unmark_sync")) {
    if (const int error = SyncFile(); error != 0) return error;
  }
  marked_ = next != nullptr;
  Count(Counter::kCheckpoints);
  {
    MutexLock lock(mutex_);
    moving_ = {};
  }
  if (next != nullptr) {
    spare_ = std::move(segment);
  } else {
    RemoveSegment(*segment);
    if (spare_ != nullptr) RemoveSegment(*spare_);
    spare_ = nullptr;
  }
  return 0;
}

int LoggedStore::MoveAll() {
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
void LoggedStore::AfterCommit() {
  committed_at_ = Clock::now();
  bool logged = false;
  bool full = false;
  bool begun = false;
  {
    MutexLock lock(mutex_);
    logged = current_.segment != nullptr || moving_.layer.segment != nullptr;
    full = current_.segment != nullptr && current_.segment->bytes() >= parts_.segment_bytes;
    if (full) begun = BeginMoving();
  }
  if (!logged) return;
  if (parts_.lanes == nullptr || !parts_.lanes->threaded()) {
    if (full || parts_.lanes == nullptr) static_cast<void>(MoveAll());
    return;
  }
  try {
    if (begun) return parts_.lanes->Schedule(checkpointer_);
    // Both segments are full: who fills them waits.
    if (full) return static_cast<void>(MoveAll());
    parts_.lanes->ScheduleAfter(checkpointer_, kQuiet);
  } catch (const std::bad_alloc&) {  // the next commit does
  }
}

// After how long to come again.
std::optional<Clock::duration> LoggedStore::MoveIfDue() {
  if (!commits() || getpid() != process_ || broken_.load() != 0) return std::nullopt;
  {
    MutexLock lock(commit_mutex_);
    bool begun = false;
    bool logged = false;
    {
      MutexLock state(mutex_);
      begun = moving_.layer.segment != nullptr;
      logged = current_.segment != nullptr;
    }
    if (!begun) {
      if (!logged) return std::nullopt;
      const auto quiet = Clock::now() - committed_at_;
      if (quiet < kQuiet) return kQuiet - quiet;
      MutexLock state(mutex_);
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

int LoggedStore::Finish() {
  MutexLock lock(commit_mutex_);
  const Way way = way_.load(std::memory_order_relaxed);
  if (way != Way::kJournal || getpid() != process_ || !claimed_.load()) return 0;
  int error = CommitLocked();
  if (error == 0) error = MoveAll();
  {
    MutexLock state(mutex_);
    if (error == 0 && (current_.segment != nullptr || moving_.layer.segment != nullptr))
      error = EBUSY;
  }
  if (error != 0) return error;
  way_.store(Way::kFinished, std::memory_order_relaxed);
  return direct_->size() == size() ? 0 : direct_->SetSize(size());
}

int LoggedStore::EndCommits() {
  if (const int error = Finish(); error != 0) return error;
  way_.store(Way::kThrough, std::memory_order_relaxed);
  return 0;
}

}  // namespace tidelane
