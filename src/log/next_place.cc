// How a log goes on elsewhere, where its place has no room for what no commit has yet.
#include <utility>

#include "base/counters.h"
#include "extent/test_hooks.h"
#include "log/commit_log.h"

namespace tidelane::log {

// The file by itself is the last commit, or it has none: it is marked with no segment of the place that is left. An error: it is marked as it was.
int CommitLog::LeaveMark(const Segment& segment) {
  Superblock put;
  Superblock marked;
  {
    MutexLock lock(mutex_);
    if (MutationEnabled("log_leave_mark")) return 0;
    const Superblock& own = committed_.empty() ? superblock_ : committed_;
    // A new file's superblock may not have come yet.
    if (own.empty() || !marked_) return 0;
    put = committed_.empty() ? own.Marked(kNeverCommitted) : own.Closed();
    marked = own.Marked(segment.id());
  }
  if (const int error = file_.Put(put); error != 0)
    return file_.Put(marked) == 0 ? error : file_.Break(error);
  if (file_.syncs() && !MutationEnabled("log_leave_sync")) {
    if (const int error = file_.Sync(); error != 0) return error;
  }
  MutexLock lock(mutex_);
  marked_ = committed_.empty();
  return 0;
}

int CommitLog::GoToNextPlace() {
  MutexLock commit(commit_mutex_);
  if (file_.broken() != 0) return file_.broken();
  // Of two segments the older one comes first.
  if (const int error = Move(); error != 0) return error;
  MutexLock moving(move_mutex_);
  Layer last;  // what commits have
  Layer fresh;
  bool committed = false;
  uint64_t end = 0;
  {
    MutexLock lock(mutex_);
    last = {current_.segment, entries_.CommittedPieces()};
    fresh = {current_.segment, entries_.FreshPieces(current_.pieces)};
    committed = !committed_.empty();
    end = committed_end_;
  }
  if (last.segment != nullptr && committed && !MutationEnabled("log_leave_moves")) {
    if (const int error = MoveBytes(*last.segment, last, end); error != 0) return error;
  }
  MutexLock marking(mark_mutex_);
  if (last.segment != nullptr) {
    if (const int error = LeaveMark(*last.segment); error != 0) return error;
  }
  {
    MutexLock lock(mutex_);
    left_behind_ = std::move(fresh);
    current_ = {};
    entries_ = {};
    // None that has failed can be found any more.
    if (!committed) places_.high_water = 0;
  }
  if (last.segment != nullptr) maker_.End(*last.segment);
  maker_.Made(0);
  parts_.place = std::move(*parts_.next);
  parts_.next.reset();
  Count(Counter::kCheckpoints);
  return 0;
}

Layer CommitLog::left_behind() const {
  MutexLock lock(mutex_);
  return left_behind_;
}

void CommitLog::ForgetLeftBehind() {
  MutexLock lock(mutex_);
  left_behind_ = {};
}

}  // namespace tidelane::log
