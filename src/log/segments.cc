// How a chain of segments begins and goes on.
#include <cerrno>
#include <utility>

#include "extent/test_hooks.h"
#include "log/commit_log.h"

namespace tidelane::log {

int CommitLog::BeginLogging() {
  {
    MutexLock lock(mutex_);
    if (current_.segment != nullptr) return 0;
  }
  MutexLock marking(mark_mutex_);
  if (file_.broken() != 0) return file_.broken();
  SegmentHeader header;
  Superblock first;  // of a new file: not committed yet
  std::shared_ptr<Segment> before;
  {
    MutexLock lock(mutex_);
    if (current_.segment != nullptr) return 0;
    if (committed_.empty()) {
      if (!parts_.place.all) return EIO;  // it is no HDF5 file that is overwritten
      first = superblock_;
    }
    before = moving_.layer.segment;
    header.before = before == nullptr ? 0 : before->id();
    header.end = committed_end_;
    header.superblock = committed_;
  }
  header.id = NewId();
  header.path = parts_.path;
  std::shared_ptr<Segment> segment;
  int error = maker_.Next(header, segment);
  if (segment == nullptr) return OfPlace(parts_.place, error);
  const bool is_made = error == 0;
  // Whoever recovers must not take the segment before for the last one, once this one has a commit.
  if (error == 0 && before != nullptr) {
    bool unknown = false;
    // Nor cut that one's last commit, over which this one's will be laid.
    error = before->WriteNote({.next = header.id, .whole = before->generation()}, file_.syncs(),
                              unknown);
    if (unknown) return file_.Break(error);
  }
  if (error == 0 && (!header.superblock.empty() || !first.empty()))
    error = parts_.place.folder->Announce();
  if (error == 0 && header.superblock.empty()) {
    // A new file's bytes come before its superblock, which is marked when it comes.
    if (!first.empty()) error = file_.Put(first.Marked(header.id));
  } else if (error == 0 && !marked_ && !MutationEnabled("log_mark")) {
    error = file_.Mark(header.superblock, header.id);
    if (file_.broken() != 0) return error;  // it may be marked, and then the segment must be there
  }
  if (error != 0) {  // as if it had not begun
    maker_.Remove(*segment);
    return is_made ? error : OfPlace(parts_.place, error);
  }
  maker_.Made(header.number);
  marked_ = !header.superblock.empty() || !first.empty();
  MutexLock lock(mutex_);
  current_.segment = std::move(segment);
  return 0;
}

void CommitLog::GoOn(Snapshot left) {
  const auto [segment, last] = left.newest;
  if (MutationEnabled("log_continue_space")) left.needed.resize(left.needed.size() / 2);
  segment->GoOn(last, std::move(left.needed));
  {
    MutexLock commit(commit_mutex_);
    generation_ = last.generation;
  }
  {
    MutexLock marking(mark_mutex_);
    marked_ = true;
    maker_.Made(segment->header().number);
    MutexLock lock(mutex_);
    committed_end_ = left.end;
    committed_ = superblock_ = left.superblock.Closed();
    places_ = {left.end, committed_.base(), committed_.end(), 0};
    current_ = std::move(left.layers.back());
    entries_.GoOn(std::move(left.entries));
  }
  MoveWhenQuiet();
}

void CommitLog::End(bool removes) {
  MutexLock marking(mark_mutex_);
  MutexLock lock(mutex_);
  for (const auto& segment : {current_.segment, moving_.layer.segment}) {
    if (removes && segment != nullptr) maker_.Remove(*segment);
  }
  maker_.Forget(removes);
  current_ = {};
  moving_ = {};
}

}  // namespace tidelane::log
