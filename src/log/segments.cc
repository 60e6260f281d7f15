// How a chain of segments begins and goes on.
#include <cerrno>
#include <utility>

#include "extent/test_hooks.h"
#include "log/commit_log.h"

namespace tidelane::log {

void CommitLog::RemoveSegment(Segment& segment) {
  if (parts_.folder->Remove(segment.name(), segment.file()) == 0) return;
  static_cast<void>(parts_.folder->Remove(AsideName(segment.name(), segment.id()), segment.file()));
}

int CommitLog::MakeSegment(uint64_t number, std::unique_ptr<Device>& made) {
  const std::string name = SegmentName(parts_.name, number);
  int error = parts_.folder->Make(name, made);
  if (error == EEXIST) {
    error = left_.MakeRoomFor(name);
    if (error == 0) error = parts_.folder->Make(name, made);
  }
  if (error == 0 && file_.syncs() && !MutationEnabled("log_folder_sync"))
    error = parts_.folder->Sync();
  return error;
}

// The one that was moved, if nobody reads it any more, or a new one.
int CommitLog::NextSegment(SegmentHeader& header, std::shared_ptr<Segment>& segment) {
  std::unique_ptr<Device> made;
  if (spare_ != nullptr && spare_.use_count() == 1) {
    header.number = spare_->header().number + 2;
    made = spare_->Release();
  } else {
    if (spare_ != nullptr) RemoveSegment(*spare_);
    header.number = number_ + 1;
    if (const int error = MakeSegment(header.number, made); error != 0) return error;
  }
  spare_ = nullptr;
  segment =
      std::make_shared<Segment>(SegmentName(parts_.name, header.number), std::move(made), header);
  return segment->Begin(file_.syncs());
}

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
      if (!parts_.all) return EIO;  // it is no HDF5 file that is overwritten
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
  int error = NextSegment(header, segment);
  if (segment == nullptr) return error;
  // Whoever recovers must not take the segment before for the last one, once this one has a commit.
  if (error == 0 && before != nullptr) {
    bool unknown = false;
    // Nor cut that one's last commit, over which this one's will be laid.
    error = before->WriteNote({.next = header.id, .whole = before->generation()}, file_.syncs(),
                              unknown);
    if (unknown) return file_.Break(error);
  }
  if (error == 0 && (!header.superblock.empty() || !first.empty()))
    error = parts_.folder->Announce();
  if (error == 0 && header.superblock.empty()) {
    // A new file's bytes come before its superblock, which is marked when it comes.
    if (!first.empty()) error = file_.Put(first.Marked(header.id));
  } else if (error == 0 && !marked_ && !MutationEnabled("log_mark")) {
    error = file_.Mark(header.superblock, header.id);
    if (file_.broken() != 0) return error;  // it may be marked, and then the segment must be there
  }
  if (error != 0) {  // as if it had not begun
    RemoveSegment(*segment);
    return error;
  }
  number_ = header.number;
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
    number_ = segment->header().number;
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
  for (const auto& segment : {current_.segment, moving_.layer.segment, spare_}) {
    if (removes && segment != nullptr) RemoveSegment(*segment);
  }
  current_ = {};
  moving_ = {};
  spare_ = nullptr;
}

}  // namespace tidelane::log
