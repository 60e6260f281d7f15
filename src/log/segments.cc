// How a chain of segments begins and goes on, and what stands in its way.
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "extent/test_hooks.h"
#include "log/commit_log.h"

namespace tidelane::log {
namespace {

// Not one whose low bytes, in files with addresses of two bytes, mean nothing or something else.
uint64_t NewId() {
  uint64_t id = 0;
  while ((id & 0xffff) <= kNeverCommitted) {
    if (getrandom(&id, sizeof id, 0) != sizeof id) continue;
  }
  return id;
}

}  // namespace

int CommitLog::LeftSegment::Read() {
  Sector bytes;
  int error = file->Read(0, bytes.data(), bytes.size());
  if (error == 0) error = file->Size(size);
  if (error == 0) header = SegmentHeader::Parse(bytes);
  return error;
}

// A log of which the file has everything: a kill came before its program could remove it. One of no length was made, and not begun.
bool CommitLog::IsUseless(const LeftSegment& left) {
  if (left.size == 0) return true;
  if (!left.header || left.header->version > kVersion) return false;
  const SegmentHeader& header = *left.header;
  Snapshot snapshot;
  Superblock own;
  return Superblock::Find(file_.device(), own) == 0 && !own.empty() && !own.marked() &&
         ReadSnapshot(*parts_.folder, parts_.name, parts_.path, own.Marked(header.id), false,
                      snapshot)
             .ok() &&
         IsApplied(file_.device(), own, snapshot);
}

// Its mark may be on storage yet, if its program has been killed while it took that back; also where a sync has failed since.
int CommitLog::StoreSuperblock() {
  if (!file_.syncs() || MutationEnabled("log_aside_sync")) return 0;
  const int error = file_.PutAgain();
  return error == 0 ? file_.Sync() : error;
}

bool CommitLog::HasLeft() {
  std::unique_ptr<Device> left;
  return parts_.folder->Open(SegmentName(parts_.name, 1), false, left) != ENOENT ||
         parts_.folder->Open(SegmentName(parts_.name, 2), false, left) != ENOENT;
}

// The newest last: it shows whose they are.
void CommitLog::RemoveUseless() {
  if (StoreSuperblock() != 0) return;
  std::vector<LeftSegment> useless;
  for (const uint64_t number : {1, 2}) {
    LeftSegment left{.name = SegmentName(parts_.name, number), .file = nullptr};
    if (parts_.folder->Open(left.name, true, left.file) == 0 && left.Read() == 0 && IsUseless(left))
      useless.push_back(std::move(left));
  }
  std::ranges::sort(useless, {},
                    [](const LeftSegment& left) { return left.header ? left.header->number : 0; });
  for (const LeftSegment& left : useless)
    static_cast<void>(parts_.folder->Remove(left.name, *left.file));
}

// What lies there is the log of another file, which had this name: this one, which we have claimed, is not marked with it. Whoever has that file
// open finds his log by its id (RemoveSegment). Of one that is left somebody may want to know, unless it is of no use to anybody.
int CommitLog::MakeRoomFor(const std::string& segment) {
  std::unique_ptr<Device> left;
  int error = parts_.folder->Open(segment, true, left);
  const bool in_use = error == EWOULDBLOCK;
  if (in_use) error = parts_.folder->Open(segment, false, left);
  if (error != 0) return error == ENOENT ? 0 : error;
  LeftSegment found{.name = segment, .file = std::move(left)};
  if (error = found.Read(); error != 0) return error;
  const bool useless = !in_use && IsUseless(found);
  if (error = StoreSuperblock(); error != 0) return error;
  if (useless) return parts_.folder->Remove(segment, *found.file);
  const auto& header = found.header;
  // One that cannot be read has no id, and there may be more of them.
  const std::string aside = AsideName(segment, header ? header->id : NewId());
  if (error = parts_.folder->Rename(segment, aside); error != 0) return error;
  if (!in_use) {
    std::fprintf(stderr, "tidelane: %s: a log that is not this file's (of %s) is %s now\n",
                 parts_.path.c_str(), header ? header->path.c_str() : "nobody", aside.c_str());
  }
  return 0;
}

void CommitLog::RemoveSegment(Segment& segment) {
  if (parts_.folder->Remove(segment.name(), segment.file()) == 0) return;
  static_cast<void>(parts_.folder->Remove(AsideName(segment.name(), segment.id()), segment.file()));
}

int CommitLog::MakeSegment(uint64_t number, std::unique_ptr<Device>& made) {
  const std::string name = SegmentName(parts_.name, number);
  int error = parts_.folder->Make(name, made);
  if (error == EEXIST) {
    error = MakeRoomFor(name);
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
