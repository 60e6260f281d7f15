// How a chain of segments begins, and what a commit writes, in which order.
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <utility>

#include "base/counters.h"
#include "extent/test_hooks.h"
#include "log/checkpointer.h"
#include "log/crc32c.h"
#include "log/logged_store.h"

namespace tidelane {
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

int LoggedStore::SyncFile() {
  MutexLock lock(sync_mutex_);
  unsynced_.store(false, std::memory_order_relaxed);
  const int error = parts_.file->Sync();
  if (error != 0) broken_ = error;
  return error;
}

// Waits for one that is under way: what it is asked for is not stored before.
int LoggedStore::SyncWritten() {
  MutexLock lock(sync_mutex_);
  if (const int broken = broken_.load(); broken != 0) return broken;
  if (!unsynced_.exchange(false, std::memory_order_relaxed)) return 0;
  const int error = parts_.file->Sync();
  if (error != 0) broken_ = error;
  return error;
}

// What lies there is the log of another file, which had this name: this one, which we have claimed, is not marked with it. Whoever has that file
// open finds his log by its id (RemoveSegment). Of one that is left somebody may want to know, unless it is of no use to anybody: a kill
// came before its first byte, or after all of it was in the file.
int LoggedStore::MakeRoomFor(const std::string& segment) {
  std::unique_ptr<Device> left;
  int error = parts_.folder->Open(segment, true, left);
  const bool in_use = error == EWOULDBLOCK;
  if (in_use) error = parts_.folder->Open(segment, false, left);
  if (error != 0) return error == ENOENT ? 0 : error;
  log::Sector bytes;
  if (error = left->Read(0, bytes.data(), bytes.size()); error != 0) return error;
  const auto header = log::SegmentHeader::Parse(bytes);
  uint64_t size = 0;
  if (error = left->Size(size); error != 0) return error;
  // Made, and not begun: there is nothing in it.
  bool useless = !in_use && size == 0;
  if (!in_use && header && header->version <= log::kVersion) {
    log::Snapshot snapshot;
    Superblock own;
    useless = Superblock::Find(*parts_.file, own) == 0 && !own.empty() && !own.marked() &&
              log::ReadSnapshot(*parts_.folder, parts_.name, parts_.path, own.Marked(header->id),
                                false, snapshot)
                  .ok() &&
              log::IsApplied(*parts_.file, own, snapshot);
  }
  // Its mark may be on storage yet, if its program has been killed while it took that back.
  if (power() && !MutationEnabled("log_aside_sync")) {
    if (error = SyncFile(); error != 0) return error;
  }
  if (useless) return parts_.folder->Remove(segment, *left);
  // One that cannot be read has no id, and there may be more of them.
  const std::string aside = log::AsideName(segment, header ? header->id : NewId());
  if (error = parts_.folder->Rename(segment, aside); error != 0) return error;
  if (!in_use) {
    std::fprintf(stderr, "tidelane: %s: a log that is not this file's (of %s) is %s now\n",
                 parts_.path.c_str(), header ? header->path.c_str() : "nobody", aside.c_str());
  }
  return 0;
}

void LoggedStore::RemoveSegment(log::Segment& segment) {
  if (parts_.folder->Remove(segment.name(), segment.file()) == 0) return;
  const std::string aside = log::AsideName(segment.name(), segment.id());
  static_cast<void>(parts_.folder->Remove(aside, segment.file()));
}

int LoggedStore::MakeSegment(uint64_t number, std::unique_ptr<Device>& file) {
  const std::string name = log::SegmentName(parts_.name, number);
  int error = parts_.folder->Make(name, file);
  if (error == EEXIST) {
    error = MakeRoomFor(name);
    if (error == 0) error = parts_.folder->Make(name, file);
  }
  if (error == 0 && power() && !MutationEnabled("log_folder_sync")) error = parts_.folder->Sync();
  return error;
}

bool LoggedStore::TakeMarkBack(const Superblock& committed) {
  return PutSuperblock(committed) == 0 && (!power() || SyncFile() == 0);
}

int LoggedStore::BeginLogging() {
  {
    MutexLock lock(mutex_);
    if (current_.segment != nullptr) return 0;
  }
  MutexLock marking(mark_mutex_);
  if (const int broken = broken_.load(); broken != 0) return broken;
  log::SegmentHeader header;
  Superblock committed;
  std::shared_ptr<log::Segment> before;
  {
    MutexLock lock(mutex_);
    if (current_.segment != nullptr) return 0;
    if (committed_.empty()) return EIO;  // it is no HDF5 file that is overwritten
    before = moving_.layer.segment;
    header.before = before == nullptr ? 0 : before->id();
    header.end = committed_end_;
    header.superblock = committed = committed_;
  }
  header.id = NewId();
  header.path = parts_.path;
  std::unique_ptr<Device> file;
  if (spare_ != nullptr && spare_.use_count() == 1) {
    header.number = spare_->header().number + 2;
    file = spare_->Release();
  } else {
    if (spare_ != nullptr) RemoveSegment(*spare_);
    header.number = number_ + 1;
    if (const int error = MakeSegment(header.number, file); error != 0) return error;
  }
  spare_ = nullptr;
  auto segment = std::make_shared<log::Segment>(log::SegmentName(parts_.name, header.number),
                                                std::move(file), header);
  int error = segment->Begin(power());
  // Whoever recovers must not take the segment before for the last one, once this one has a commit.
  if (error == 0 && before != nullptr && !MutationEnabled("log_note")) {
    bool unknown = false;
    error = before->WriteNote({.next = segment->id()}, power(), unknown);
    if (unknown) return broken_ = error;
  }
  if (error == 0 && !marked_ && !MutationEnabled("log_mark")) {
    error = PutSuperblock(committed.Marked(segment->id()));
    unsynced_.store(true, std::memory_order_relaxed);
    // It may be there all the same, and then so must the segment.
    if (error != 0 && !TakeMarkBack(committed)) return broken_ = error;
  }
  if (error != 0) {  // as if it had not begun
    RemoveSegment(*segment);
    return error;
  }
  number_ = header.number;
  marked_ = true;
  MutexLock lock(mutex_);
  current_.segment = std::move(segment);
  return 0;
}

int LoggedStore::Commit(Committing when) {
  MutexLock lock(commit_mutex_);
  ++flushes_;
  const JournalCommits& due = parts_.commits;
  const bool is_due =
      (due.flushes != 0 && flushes_ >= due.flushes) ||
      (due.us != 0 && Lanes::Clock::now() - committed_at_ >= std::chrono::microseconds(due.us));
  int error = is_due || when != Committing::kIfDue ? CommitLocked() : 0;
  if (error == 0 && when == Committing::kIntoFile) error = MoveAll();
  return error;
}

int LoggedStore::CommitLocked() {
  if (!commits() || getpid() != process_) return 0;
  if (const int broken = broken_.load(); broken != 0) return broken;
  try {
    bool nothing_new = false;
    bool nothing_logged = false;
    {
      MutexLock lock(mutex_);
      nothing_new = entries_.empty() && !superblock_changed_;
      nothing_logged =
          entries_.empty() && current_.segment == nullptr && moving_.layer.segment == nullptr;
    }
    // What was there before is committed, too.
    if (nothing_new) return power() ? SyncWritten() : 0;
    const int error = nothing_logged ? CommitSuperblock() : CommitRecord();
    if (error != 0) return error;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  Count(Counter::kCommits);
  flushes_ = 0;
  AfterCommit();
  return 0;
}

// Also a commit that fails may be the one that is found: what it has is not overwritten any more.
void LoggedStore::ProtectBelow(uint64_t end) {
  MutexLock lock(mutex_);
  high_water_ = std::max(high_water_, end);
}

// All else is in the file: the superblock is the commit.
int LoggedStore::CommitSuperblock() {
  MutexLock marking(mark_mutex_);
  Superblock superblock;
  const uint64_t end = size();
  bool created = false;
  {
    MutexLock lock(mutex_);
    superblock = superblock_;
    created = committed_.empty();
  }
  if (superblock.empty()) return 0;
  // Its name is as new as it is.
  if (power() && created && !MutationEnabled("log_created_sync")) {
    if (const int error = parts_.folder->Sync(); error != 0) return broken_ = error;
  }
  if (power() && !MutationEnabled("log_file_sync")) {
    if (const int error = SyncWritten(); error != 0) return error;
  }
  // From now on storage may know of it, whether it comes to an end or not.
  ProtectBelow(end);
  if (const int error = PutSuperblock(superblock.Closed()); error != 0) return error;
  if (power() && !MutationEnabled("log_superblock_sync")) {
    if (const int error = SyncFile(); error != 0) return error;
  }
  marked_ = false;
  MutexLock lock(mutex_);
  committed_ = superblock;
  committed_end_ = end;
  superblock_changed_ = false;
  return 0;
}

int LoggedStore::CommitRecord() {
  if (const int error = BeginLogging(); error != 0) return error;
  if (power() && !MutationEnabled("log_file_sync")) {
    if (const int error = SyncWritten(); error != 0) return error;
  }
  log::CommitRecord record;
  std::shared_ptr<log::Segment> segment;
  Superblock superblock;
  bool changed = false;
  {
    MutexLock lock(mutex_);
    segment = current_.segment;
    record.entries = entries_;
    record.end = size();
    record.stored = direct_->size();
    // From now on storage may know of it, whether it comes to an end or not.
    record.high_water = high_water_ = std::max(high_water_, record.end);
    superblock = superblock_;
    changed = superblock_changed_;
  }
  record.generation = generation_ + 1;
  if (changed) {
    const std::span<const std::byte> bytes = superblock.bytes();
    const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const uint64_t offset = segment->Take(bytes.size());
    if (const int error = segment->Write(offset, &part, 1); error != 0) return error;
    record.entries.push_back({.address = superblock.base(),
                              .size = bytes.size(),
                              .offset = offset,
                              .crc = Crc32c(bytes.data(), bytes.size())});
  }
  ProtectBelow(record.end);
  bool failed_sync = false;
  if (const int error = segment->Commit(record, power(), failed_sync); error != 0) {
    if (failed_sync) broken_ = error;
    return error;
  }
  generation_ = record.generation;
  MutexLock lock(mutex_);
  entries_.clear();
  committed_ = superblock;
  committed_end_ = record.end;
  superblock_changed_ = false;
  return 0;
}

}  // namespace tidelane
