// What a commit writes, in which order.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/counters.h"
#include "extent/test_hooks.h"
#include "log/commit_log.h"
#include "log/crc32c.h"

namespace tidelane::log {

int CommitLog::Commit(Committing when) {
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

int CommitLog::CommitLocked() {
  if (getpid() != process_) return 0;
  if (file_.broken() != 0) return file_.broken();
  try {
    bool nothing_new = false;
    bool nothing_logged = false;
    {
      MutexLock lock(mutex_);
      // Without a superblock it is no HDF5 file yet.
      nothing_new = (parts_.place.all && superblock_.empty()) ||
                    (entries_.fresh().empty() && !superblock_changed_);
      nothing_logged = entries_.fresh().empty() && current_.segment == nullptr &&
                       moving_.layer.segment == nullptr;
    }
    if (nothing_new) return file_.syncs() ? CommitFound() : 0;
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

// What was there before is committed, too.
int CommitLog::CommitFound() {
  if (!file_.synced()) {
    MutexLock marking(mark_mutex_);
    if (const int error = file_.PutAgain(); error != 0) return error;
  }
  return file_.SyncWritten();
}

// Also a commit that fails may be the one that is found: what it has is not overwritten any more.
void CommitLog::ProtectBelow(uint64_t end) {
  MutexLock lock(mutex_);
  places_.high_water = std::max(places_.high_water, end);
}

void CommitLog::Committed(const Superblock& superblock, uint64_t end) {
  MutexLock lock(mutex_);
  entries_.Committed();
  committed_ = superblock;
  committed_end_ = end;
  superblock_changed_ = false;
}

// A state that is written again and again would fill the segment with what no commit shows any more. Who says once more what is seen can
// have that space again; which is not worth it where saying it takes as many bytes.
bool CommitLog::IsWorthReuse() const {
  if (writing_ != 0) return false;
  const uint64_t hidden = entries_.Hidden(current_.pieces, current_.segment->taken());
  return hidden >= parts_.reuse_bytes &&
         hidden / 4 >= current_.pieces.count() * CommitRecord::kEntry;
}

// `needed`: by the last commit, which is found if the next one does not come to an end.
void CommitLog::Reuse(Segment& segment, std::span<const CommitEntry> needed) {
  try {
    MutexLock lock(mutex_);
    segment.KeepOnly(needed);
    entries_.KeepSeen(current_.pieces, segment.taken());
  } catch (const std::bad_alloc&) {  // the commit has happened all the same
  }
}

// All else is in the file: the superblock is the commit.
int CommitLog::CommitSuperblock() {
  MutexLock marking(mark_mutex_);
  Superblock superblock;
  const uint64_t end = size_.load(std::memory_order_acquire);
  bool created = false;
  {
    MutexLock lock(mutex_);
    superblock = superblock_;
    created = committed_.empty();
  }
  if (superblock.empty()) return 0;
  // Its name is as new as it is.
  if (file_.syncs() && created && !MutationEnabled("log_created_sync")) {
    if (const int error = parts_.place.folder->Sync(); error != 0) return file_.Break(error);
  }
  // What a file in a tier has grown by without a byte is nowhere yet.
  if (const int error = file_.Lengthen(end); error != 0) return error;
  if (file_.syncs() && !MutationEnabled("log_file_sync")) {
    if (const int error = file_.SyncWritten(); error != 0) return error;
  }
  ProtectBelow(end);
  // Nobody recovers a file without a mark: it must not say either that HDF5 has it open.
  if (const int error = file_.Put(superblock.Closed()); error != 0) return error;
  if (file_.syncs() && !MutationEnabled("log_superblock_sync")) {
    if (const int error = file_.Sync(); error != 0) return error;
  }
  marked_ = false;
  Committed(superblock, end);
  return 0;
}

int CommitLog::CommitRecord() {
  if (const int error = BeginLogging(); error != 0) return error;
  Superblock first;
  {
    MutexLock lock(mutex_);
    if (committed_.empty()) first = superblock_;
  }
  // Storage may have refused it when it was written.
  if (const int error = first.empty() ? 0 : MarkCreated(first); error != 0) return error;
  if (file_.syncs() && !MutationEnabled("log_file_sync")) {
    if (const int error = file_.SyncWritten(); error != 0) return error;
  }
  struct CommitRecord record;
  std::shared_ptr<Segment> segment;
  Superblock superblock;
  bool changed = false;
  bool whole = false;
  record.end = size_.load(std::memory_order_acquire);
  ProtectBelow(record.end);
  {
    MutexLock lock(mutex_);
    segment = current_.segment;
    whole = IsWorthReuse();
    if (whole) {
      record.entries = entries_.Seen(current_.pieces);
    } else {
      record.entries.assign(entries_.fresh().begin(), entries_.fresh().end());
    }
    record.stored = file_.direct().size();
    record.high_water = places_.high_water;
    superblock = superblock_;
    changed = superblock_changed_;
  }
  record.generation = generation_ + 1;
  if (changed || whole) {
    const std::span<const std::byte> bytes = superblock.bytes();
    const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const uint64_t offset = segment->Take(bytes.size());
    if (const int error = segment->Write(offset, &part, 1); error != 0) {
      segment->GiveBack(offset, bytes.size());
      return OfPlace(parts_.place, error);
    }
    record.entries.push_back({.address = superblock.base(),
                              .size = bytes.size(),
                              .offset = offset,
                              .crc = Crc32c(bytes.data(), bytes.size())});
  }
  if (whole && MutationEnabled("log_reuse")) segment->KeepOnly(record.entries);
  bool failed_sync = false;
  if (const int error = segment->Commit(record, whole, file_.syncs(), failed_sync); error != 0)
    return failed_sync ? file_.Break(error) : OfPlace(parts_.place, error);
  generation_ = record.generation;
  Committed(superblock, record.end);
  if (whole) Reuse(*segment, record.entries);
  return 0;
}

}  // namespace tidelane::log
