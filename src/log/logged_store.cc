// Where a write goes, what is read, how long the file is.
#include "log/logged_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/counters.h"
#include "base/trace.h"
#include "device/claim.h"
#include "extent/test_hooks.h"
#include "log/checkpointer.h"
#include "log/crc32c.h"

namespace tidelane {

namespace {

int CrcOf(log::Segment& segment, uint64_t offset, uint64_t size, uint32_t& crc) {
  std::vector<std::byte> bytes(size);
  if (const int error = segment.Read(offset, bytes.data(), size); error != 0) return error;
  crc = Crc32c(bytes.data(), size);
  return 0;
}

}  // namespace

LoggedStore::LoggedStore(LoggedFile parts)
    : parts_(std::move(parts)),
      direct_(std::make_unique<DirectStore>(parts_.file)),
      process_(getpid()),
      checkpointer_(std::make_shared<Checkpointer>(this)) {
  size_.store(direct_->size(), std::memory_order_relaxed);
}

LoggedStore::~LoggedStore() { checkpointer_->Detach(); }

Status LoggedStore::Settle() {
  const auto failed = [&](int error, const char* operation) {
    return Status::Failed(error, operation).At(parts_.path, 0, 0);
  };
  Superblock found;
  if (const int error = Superblock::Find(*parts_.file, found); error != 0)
    return failed(error, "read the superblock of");
  Way way = parts_.journal != Journal::kOff && parts_.writable ? Way::kJournal : Way::kThrough;
  if (found.marked()) {
    if (parts_.writable) {
      if (const int error = Claimed(); error != 0)
        return failed(error, error == EWOULDBLOCK ? "recover, while a program is writing it,"
                                                  : "lock, to recover it,");
      // Somebody else may just have recovered it.
      if (const int error = Superblock::Find(*parts_.file, found); error != 0)
        return failed(error, "read the superblock of");
      direct_ = std::make_unique<DirectStore>(parts_.file);
      size_.store(direct_->size(), std::memory_order_release);
    }
  }
  // What a file had that is written anew must not come back under what is written now.
  if (way == Way::kJournal && power() && direct_->size() == 0) {
    if (const int error = SyncFile(); error != 0) return failed(error, "sync");
  }
  if (found.marked()) {
    log::Snapshot snapshot;
    Status status = log::ReadSnapshot(*parts_.folder, parts_.name, parts_.path, found,
                                      parts_.writable, snapshot);
    if (status.ok() && parts_.writable) {
      status = log::Restore(*parts_.file, *parts_.folder, parts_.path, snapshot);
      if (status.ok()) Count(Counter::kFilesRecovered);
    }
    if (!status.ok()) return status;
    if (parts_.writable) {
      direct_ = std::make_unique<DirectStore>(parts_.file);
      size_.store(direct_->size(), std::memory_order_release);
      found = snapshot.superblock.empty() ? Superblock() : snapshot.superblock.Closed();
    } else {
      way = Way::kSnapshot;
      snapshot_ = std::move(snapshot.layers);
      size_.store(snapshot.end, std::memory_order_release);
      found = snapshot.superblock.empty() ? Superblock() : snapshot.superblock.Closed();
    }
  }
  if (way == Way::kThrough && claimed_.exchange(false)) GiveUpClaim(*parts_.file->descriptor());
  way_.store(way, std::memory_order_release);
  MutexLock lock(mutex_);
  high_water_ = committed_end_ = direct_->size();
  committed_ = superblock_ = found;
  superblock_begin_ = found.base();
  superblock_end_ = found.end();
  return {};
}

void LoggedStore::SetSuperblock(uint64_t begin, uint64_t end) {
  if (!commits()) return;
  MutexLock lock(mutex_);
  superblock_begin_ = begin;
  superblock_end_ = end;
}

// Nobody else recovers the file, or takes its log for a dead program's, while this process has it.
int LoggedStore::Claimed() {
  if (claimed_.load(std::memory_order_acquire)) return 0;
  MutexLock lock(mutex_);
  if (claimed_.load(std::memory_order_relaxed)) return 0;
  const int descriptor = *parts_.file->descriptor();
  const int error = descriptor < 0 ? 0 : Claim(descriptor);
  if (error == 0) claimed_.store(true, std::memory_order_release);
  return error;
}

void LoggedStore::RaiseSize(uint64_t end) {
  uint64_t known = size_.load(std::memory_order_relaxed);
  while (known < end && !size_.compare_exchange_weak(known, end, std::memory_order_release)) {
  }
}

int LoggedStore::Write(Run& run) {
  if (way_.load(std::memory_order_relaxed) == Way::kThrough) {
    const int error = direct_->Write(run);
    RaiseSize(direct_->size());
    return error;
  }
  try {
    std::vector<Part> parts;
    parts.reserve(run.extents.size());
    for (const Extent& extent : run.extents)
      parts.push_back({extent.address, {extent.data, extent.size}});
    return WriteParts(run, parts);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int LoggedStore::WriteBytes(Run& run, const void* bytes) {
  if (way_.load(std::memory_order_relaxed) == Way::kThrough) {
    const int error = direct_->WriteBytes(run, bytes);
    RaiseSize(direct_->size());
    return error;
  }
  try {
    const Part part{run.begin, {static_cast<const std::byte*>(bytes), run.size()}};
    return WriteParts(run, {&part, 1});
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int LoggedStore::WriteParts(Run& run, std::span<const Part> parts) {
  if (way_.load(std::memory_order_relaxed) != Way::kJournal) return EBADF;
  // A child of fork has its parent's file, and no log.
  if (getpid() != process_) return EROFS;
  if (const int error = Claimed(); error != 0) return error;
  uint64_t high_water = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  {
    MutexLock lock(mutex_);
    high_water = high_water_;
    begin = superblock_begin_;
    end = superblock_end_;
  }
  if (MutationEnabled("log_high_water")) high_water = 0;
  if (run.begin >= high_water && run.begin >= end) return WriteStraight(run, parts);
  std::vector<Part> logged;
  std::vector<Part> straight;
  std::vector<Part> superblock;
  for (Part part : parts) {
    while (!part.bytes.empty()) {
      const uint64_t at = part.address;
      uint64_t cut = at + part.bytes.size();
      for (const uint64_t boundary : {begin, end, high_water}) {
        if (at < boundary && boundary < cut) cut = boundary;
      }
      const Part piece{at, part.bytes.first(cut - at)};
      const bool is_superblock = begin <= at && at < end;
      (is_superblock ? superblock : at < high_water ? logged : straight).push_back(piece);
      part = {cut, part.bytes.subspan(cut - at)};
    }
  }
  run.write_begin_ns = NowNs();
  int error = 0;
  if (!logged.empty()) error = WriteLogged(logged);
  if (error == 0 && !straight.empty()) {
    Run rest;
    rest.begin = straight.front().address;
    rest.end = straight.back().address + straight.back().bytes.size();
    error = WriteStraight(rest, straight);
  }
  // Last, as it tells that the rest is there.
  for (const Part& part : superblock) {
    if (error == 0) error = WriteSuperblock(part.address - begin, part.bytes);
  }
  run.write_end_ns = NowNs();
  return error;
}

// No commit has these addresses. What lies between the parts is zeros, or was written before.
int LoggedStore::WriteStraight(Run& run, std::span<const Part> parts) {
  int error = 0;
  if (parts.size() == run.extents.size() && !run.extents.empty()) {
    error = direct_->Write(run);
  } else {
    run.write_begin_ns = NowNs();
    for (const Part& part : parts) {
      Run piece;
      piece.begin = part.address;
      piece.end = part.address + part.bytes.size();
      if (error == 0) error = direct_->WriteBytes(piece, part.bytes.data());
    }
    run.write_end_ns = NowNs();
  }
  unsynced_.store(true, std::memory_order_relaxed);
  // The file may be longer: it has bytes yet that were cut off.
  RaiseSize(error == 0 ? run.end : std::min(run.end, direct_->size()));
  return error;
}

int LoggedStore::WriteLogged(std::span<const Part> parts) {
  uint64_t bytes = 0;
  std::vector<iovec> vector;
  std::vector<log::CommitEntry> entries;
  vector.reserve(parts.size());
  entries.reserve(parts.size());
  for (const Part& part : parts) {
    vector.push_back({const_cast<std::byte*>(part.bytes.data()), part.bytes.size()});
    entries.push_back({.address = part.address,
                       .size = part.bytes.size(),
                       .offset = 0,
                       .crc = Crc32c(part.bytes.data(), part.bytes.size())});
    bytes += part.bytes.size();
  }
  std::shared_ptr<log::Segment> segment;
  uint64_t offset = 0;
  bool again = false;  // in the place of what no commit has yet
  while (segment == nullptr) {
    if (const int error = BeginLogging(); error != 0) return error;
    MutexLock lock(mutex_);
    segment = current_.segment;
    if (segment == nullptr) continue;  // it was moved meanwhile
    ++writing_;
    const log::LoggedPiece* const before =
        parts.size() == 1 ? current_.pieces.Exact(parts[0].address, bytes) : nullptr;
    again = before != nullptr && before->offset != 0 && before->entry < entries_.size() &&
            entries_[before->entry].offset == before->offset &&
            entries_[before->entry].size == bytes;
    offset = again ? before->offset : segment->Take(bytes);
  }
  const int error = segment->Write(offset, vector.data(), vector.size());
  if (error != 0 && again) {
    // Some of it may be there in the place of what was.
    uint32_t crc = 0;
    const int unknown = CrcOf(*segment, offset, bytes, crc);
    if (unknown != 0) broken_ = unknown;
    MutexLock lock(mutex_);
    entries_[current_.pieces.Exact(parts[0].address, bytes)->entry].crc = crc;
  }
  MutexLock lock(mutex_);
  --writing_;
  if (error != 0) return error;
  Count(Counter::kBytesLogged, bytes);
  for (log::CommitEntry& entry : entries) {
    entry.offset = offset;
    offset += entry.size;
    if (again) {
      entries_[current_.pieces.Exact(entry.address, entry.size)->entry].crc = entry.crc;
    } else {
      entries_.push_back(entry);
      current_.pieces.Insert(
          entry.address,
          {.size = entry.size, .offset = entry.offset, .entry = entries_.size() - 1});
    }
  }
  RaiseSize(parts.back().address + parts.back().bytes.size());
  return 0;
}

// A new file's is on storage from the first one on, with a mark: nobody takes what is there for a file before the first commit.
int LoggedStore::WriteSuperblock(uint64_t offset, std::span<const std::byte> bytes) {
  Superblock first;
  {
    MutexLock lock(mutex_);
    if (offset == 0) {
      const Superblock whole(superblock_begin_, bytes);
      if (superblock_.empty()) {
        first = whole;
      }
      if (!whole.empty()) superblock_ = whole;
    }
    superblock_.Overwrite(offset, bytes);
    superblock_changed_ |= !superblock_.empty();
  }
  if (first.empty()) {
    RaiseSize(superblock_begin_ + offset + bytes.size());
    return 0;
  }
  MutexLock lock(mark_mutex_);
  marked_ = true;
  const int error = PutSuperblock(first.Marked(kNeverCommitted));
  if (error == 0) RaiseSize(first.end());
  return error;
}

int LoggedStore::PutSuperblock(const Superblock& superblock) {
  Run run;
  run.begin = superblock.base();
  run.end = superblock.end();
  return direct_->WriteBytes(run, superblock.bytes().data());
}

int LoggedStore::Read(uint64_t address, void* buffer, size_t n) {
  const Way way = way_.load(std::memory_order_relaxed);
  auto* const to = static_cast<std::byte*>(buffer);
  if (way == Way::kThrough) return direct_->Read(address, buffer, n);
  if (way == Way::kUnsettled) return EIO;
  try {
    return ReadStored(address, to, n);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int LoggedStore::ReadStored(uint64_t address, std::byte* buffer, uint64_t n) {
  struct Source {
    uint64_t begin;
    uint64_t end;
    std::shared_ptr<log::Segment> segment;  // nullptr: the file
    uint64_t offset;                        // 0: zeros
  };
  std::vector<Source> pieces;
  Superblock superblock;
  {
    MutexLock lock(mutex_);
    superblock = superblock_;
    const auto add = [&](const std::shared_ptr<log::Segment>& segment) {
      return [&pieces, &segment](uint64_t begin, uint64_t end, uint64_t offset) {
        pieces.push_back({begin, end, segment, offset});
      };
    };
    const auto from_file = [&](uint64_t begin, uint64_t end) {
      pieces.push_back({begin, end, nullptr, 0});
    };
    if (!snapshot_.empty()) {
      const log::Layer& last = snapshot_.back();
      last.pieces.Visit(address, address + n, add(last.segment), [&](uint64_t begin, uint64_t end) {
        if (snapshot_.size() < 2) return from_file(begin, end);
        snapshot_[0].pieces.Visit(begin, end, add(snapshot_[0].segment), from_file);
      });
    } else if (current_.pieces.empty() && moving_.layer.pieces.empty()) {
      from_file(address, address + n);
    } else {
      current_.pieces.Visit(
          address, address + n, add(current_.segment), [&](uint64_t begin, uint64_t end) {
            moving_.layer.pieces.Visit(begin, end, add(moving_.layer.segment), from_file);
          });
    }
  }
  for (const Source& piece : pieces) {
    std::byte* const at = buffer + (piece.begin - address);
    const uint64_t size = piece.end - piece.begin;
    int error = 0;
    if (piece.segment == nullptr) {
      error = direct_->Read(piece.begin, at, size);
    } else if (piece.offset == 0) {
      std::memset(at, 0, size);
    } else {
      error = piece.segment->Read(piece.offset, at, size);
    }
    if (error != 0) return error;
  }
  // Beyond the end there is nothing, whatever a marked file has there.
  const uint64_t end = size();
  if (const uint64_t last = address + n; last > end) {
    const uint64_t from = std::max(address, end);
    std::memset(buffer + (from - address), 0, last - from);
  }
  const uint64_t from = std::max(address, superblock.base());
  const uint64_t to = std::min(address + n, superblock.end());
  if (!superblock.empty() && from < to)
    std::memcpy(buffer + (from - address), superblock.bytes().data() + (from - superblock.base()),
                to - from);
  return 0;
}

int LoggedStore::SetSize(uint64_t size) {
  if (way_.load(std::memory_order_relaxed) == Way::kThrough) {
    const int error = direct_->SetSize(size);
    if (error == 0) size_.store(size, std::memory_order_release);
    return error;
  }
  if (way_.load(std::memory_order_relaxed) != Way::kJournal) return EBADF;
  if (getpid() != process_) return EROFS;
  if (const int error = Claimed(); error != 0) return error;
  const uint64_t before = this->size();
  uint64_t high_water = 0;
  {
    MutexLock lock(mutex_);
    high_water = high_water_;
  }
  // Above it no commit knows anything.
  const uint64_t stored = std::max(size, high_water);
  if ((size < before && direct_->size() > stored) || direct_->size() < size) {
    const int error = direct_->SetSize(stored);
    unsynced_.store(true, std::memory_order_relaxed);
    if (error != 0) return error;
    // So far it is cut, also if the rest fails.
    if (size < before) size_.store(std::min(before, stored), std::memory_order_release);
  }
  while (size < before && size < high_water) {
    if (const int error = BeginLogging(); error != 0) return error;
    MutexLock lock(mutex_);
    if (current_.segment == nullptr) continue;
    try {
      entries_.push_back({.address = size, .size = high_water - size, .offset = 0, .crc = 0});
      current_.pieces.Insert(
          size, {.size = high_water - size, .offset = 0, .entry = entries_.size() - 1});
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    }
    break;
  }
  size_.store(size, std::memory_order_release);
  return 0;
}

int LoggedStore::Reserve(uint64_t address, uint64_t size) {
  // What goes to the log may find no room there.
  return way_.load(std::memory_order_relaxed) == Way::kThrough ? direct_->Reserve(address, size)
                                                               : EOPNOTSUPP;
}

int LoggedStore::Close() {
  checkpointer_->Detach();
  if (way_.load(std::memory_order_relaxed) == Way::kJournal && getpid() == process_)
    RemoveIfNameless();
  return direct_->Close();
}

// The log of a file that nobody can open any more is of no use.
void LoggedStore::RemoveIfNameless() {
  struct stat found;
  const int descriptor = *parts_.file->descriptor();
  if (descriptor < 0 || fstat(descriptor, &found) != 0 || found.st_nlink != 0) return;
  MutexLock marking(mark_mutex_);
  MutexLock lock(mutex_);
  for (const auto& segment : {current_.segment, moving_.layer.segment, spare_}) {
    if (segment != nullptr) RemoveSegment(*segment);
  }
}

}  // namespace tidelane
