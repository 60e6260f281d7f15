#include "log/logged_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/counters.h"
#include "base/notices.h"
#include "base/trace.h"
#include "device/claim.h"
#include "device/fork_locks.h"
#include "extent/test_hooks.h"

namespace tidelane {

namespace {
// A file can be marked by one log after another while somebody opens it.
constexpr int kMostMoves = 8;
}  // namespace

using log::Part;
using log::Source;

LoggedStore::LoggedStore(LoggedFile parts)
    : parts_(std::move(parts)),
      file_(parts_.file, parts_.journal == Journal::kPower),
      log_(file_, parts_.log, size_),
      process_(getpid()) {
  size_.store(file_.direct().size(), std::memory_order_relaxed);
}

void LoggedStore::LookAgain() {
  file_.LookAgain();
  size_.store(file_.direct().size(), std::memory_order_release);
}

Status LoggedStore::Settle() {
  const bool journals = parts_.journal != Journal::kOff && parts_.writable;
  // While HDF5 waited for its lock a mover may have brought all of it.
  LookAgain();
  Superblock found;
  // An empty file has none, and to read it would be a request.
  if (const int error = size() == 0 ? 0 : Superblock::Find(file_.device(), found); error != 0)
    return Failed(error, "read the superblock of");
  if (found.marked() && parts_.writable) {
    if (const int error = Claimed(); error != 0)
      return Failed(error, error == EWOULDBLOCK ? "recover, while a program is writing it,"
                                                : "lock, to recover it,");
    // Somebody else may just have recovered it.
    if (const int error = Superblock::Find(file_.device(), found); error != 0)
      return Failed(error, "read the superblock of");
    LookAgain();
  }
  // What a file had that is written anew must not come back under what is written now.
  if (journals && file_.syncs() && size() == 0) {
    if (const int error = file_.Sync(); error != 0) return Failed(error, "sync");
  }
  bool only_read = found.marked() && !parts_.writable;
  bool goes_on = false;
  if (found.marked()) {
    Status status = Recover(found, goes_on);
    // Who only reads is beside whoever moves the log to the file: it may just have come there.
    for (int again = 0; only_read && status.code() == log::kNoLog && again < kMostMoves; ++again) {
      const Superblock before = found;
      if (const int error = Superblock::Find(file_.device(), found); error != 0)
        return Failed(error, "read the superblock of");
      if (found == before) break;
      LookAgain();
      only_read = found.marked();
      status = only_read ? Recover(found, goes_on) : Status();
    }
    if (!status.ok()) return status;
  }
  if (!journals && claimed_.exchange(false)) GiveUpClaim(*file_.device().descriptor());
  if (journals && !found.empty() && !found.marked() && log_.left().HasAny() && Claimed() == 0)
    log_.left().RemoveUseless();
  // Its locks end with this program, not with a child of it.
  if (journals) ForkLocks::Get().Add(*file_.device().descriptor());
  way_.store(only_read  ? Way::kSnapshot
             : journals ? Way::kJournal
                        : Way::kThrough,
             std::memory_order_release);
  if (!goes_on) log_.Begin(found);
  return {};
}

Status LoggedStore::FindLeft(const Superblock& marked, LeftLog& left) {
  return parts_.find_left ? parts_.find_left(marked, left) : Status();
}

// Its own log's place, or another one.
Status LoggedStore::ReadLeft(const Superblock& marked, const LeftLog& left, log::KnownCommits known,
                             log::Snapshot& snapshot) {
  const log::LogParts& parts = parts_.log;
  const bool elsewhere = left.folder != nullptr;
  return log::ReadSnapshot(elsewhere ? *left.folder : *parts.folder,
                           elsewhere ? left.name : parts.name, parts.path, marked, parts_.writable,
                           snapshot, known);
}

// A commit that its program was told has failed may be the last one, of a log on storage whose sync has failed: to go on with it would make it
// one that has happened. Of two segments the older one is to come home first.
bool LoggedStore::CanGoOn(const log::Snapshot& snapshot) const {
  return parts_.journal == Journal::kProcess && snapshot.layers.size() == 1 &&
         snapshot.newest.first != nullptr && snapshot.moved == nullptr &&
         !snapshot.superblock.empty();
}

// The log becomes this store's, as its program left it.
Status LoggedStore::GoOn(LeftLog left, log::Snapshot snapshot) {
  log::LogParts& parts = parts_.log;
  if (Status status = log::CheckLength(file_.device(), parts.path, snapshot); !status.ok())
    return status;
  // Beyond its end there may be what no commit has; a file that grows over it has zeros there.
  if (file_.direct().size() > snapshot.end && !MutationEnabled("log_continue_cut")) {
    if (const int error = file_.direct().SetSize(snapshot.end); error != 0)
      return Failed(error, "recover");
  }
  size_.store(snapshot.end, std::memory_order_release);
  parts.folder = std::move(left.folder);
  parts.name = std::move(left.name);
  log_.GoOn(std::move(snapshot));
  // What it has does not count: that room was taken before.
  const uint64_t taken = log_.places().logged;
  parts.most += std::min(taken, UINT64_MAX - parts.most);
  parts.segment_bytes += taken / 2;
  Count(Counter::kLogsContinued);
  return {};
}

// What a marked file was at its last commit: it becomes that, or is seen so. `found`: its superblock, then without mark.
Status LoggedStore::Recover(Superblock& found, bool& goes_on) {
  log::LogParts& parts = parts_.log;
  LeftLog left;
  log::Snapshot snapshot;
  if (Status status = FindLeft(found, left); !status.ok()) return status;
  if (left.goes_on) {
    // All of it is not read: it may be large, and the program opens it again and again.
    Status status = ReadLeft(found, left, log::KnownCommits::All(), snapshot);
    if (!status.ok()) return status;
    goes_on = CanGoOn(snapshot);
    if (goes_on) return GoOn(std::move(left), std::move(snapshot));
  }
  snapshot = {};
  if (Status status = ReadLeft(found, left, {}, snapshot); !status.ok()) return status;
  found = snapshot.superblock.empty() ? Superblock() : snapshot.superblock.Closed();
  if (!parts_.writable) {
    if (Status status = log::CheckLength(file_.device(), parts.path, snapshot); !status.ok())
      return status;
    size_.store(snapshot.end, std::memory_order_release);
    snapshot_ = std::move(snapshot);
    return {};
  }
  log::Folder& folder = left.folder != nullptr ? *left.folder : *parts.folder;
  Status status = log::Restore(file_.device(), folder, parts.path, snapshot, false, nullptr,
                               parts.request_bytes);
  if (!status.ok()) return status;
  left.used();
  Count(Counter::kFilesRecovered);
  LookAgain();
  return {};
}

void LoggedStore::SetSuperblock(uint64_t begin, uint64_t end) {
  if (commits()) log_.SetSuperblock(begin, end);
}

// Nobody else recovers the file, or takes its log for a dead program's, while this process has it.
int LoggedStore::Claimed() {
  if (claimed_.load(std::memory_order_acquire)) return 0;
  MutexLock lock(claim_mutex_);
  if (claimed_.load(std::memory_order_relaxed)) return 0;
  const int descriptor = *file_.device().descriptor();
  const int error = descriptor < 0 ? 0 : ClaimAfterMove(descriptor);
  if (error == 0) claimed_.store(true, std::memory_order_release);
  return error;
}

// As natively, also for children of fork.
void LoggedStore::GoThrough() {
  ForkLocks::Get().Remove(*file_.device().descriptor());
  way_.store(Way::kThrough, std::memory_order_relaxed);
}

int LoggedStore::MayWrite() {
  if (!commits()) return EBADF;
  // A child of fork has its parent's file, and no log.
  if (getpid() != process_) return EROFS;
  const int error = Claimed();
  // Somebody else is writing it, whatever HDF5's locks say: nothing good would come of both.
  if (error == 0 || error == EWOULDBLOCK || parts_.must_journal) return error;
  Count(Fallback::kJournalLocks);
  NoteNative(Fallback::kJournalLocks, parts_.log.path);
  GoThrough();
  return 0;
}

void LoggedStore::RaiseSize(uint64_t end) {
  uint64_t known = size_.load(std::memory_order_relaxed);
  while (known < end && !size_.compare_exchange_weak(known, end, std::memory_order_release)) {
  }
}

int LoggedStore::Write(Run& run) {
  if (way() == Way::kThrough) {
    const int error = file_.direct().Write(run);
    RaiseSize(file_.direct().size());
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
  if (way() == Way::kThrough) {
    const int error = file_.direct().WriteBytes(run, bytes);
    RaiseSize(file_.direct().size());
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
  // HDF5 writes it when a child of fork closes the file, though nothing has changed: it is its parent's to write.
  if (getpid() != process_ && commits()) {
    const auto places = log_.places();
    if (places.superblock_begin <= run.begin && run.end <= places.superblock_end) return 0;
  }
  if (const int error = MayWrite(); error != 0) return error;
  if (way() == Way::kThrough) return WriteStraight(run, parts);
  auto [high_water, begin, end, taken] = log_.places();
  if (MutationEnabled("log_high_water")) high_water = 0;
  if (parts_.log.all && GoesToLog(run.begin, run.end, taken)) high_water = UINT64_MAX;
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
  const auto end_of = [](const Part& part) { return part.address + part.bytes.size(); };
  run.write_begin_ns = NowNs();
  int error = 0;
  if (!logged.empty()) {
    error = log_.Write(logged);
    if (error == 0) RaiseSize(end_of(logged.back()));
    if (error == ENOSPC && parts_.log.all && !full_.exchange(true)) return WriteParts(run, parts);
  }
  if (error == 0 && !straight.empty()) {
    Run rest;
    rest.begin = straight.front().address;
    rest.end = end_of(straight.back());
    error = WriteStraight(rest, straight);
  }
  // Last, as it tells that the rest is there.
  for (const Part& part : superblock) {
    if (error == 0) error = log_.WriteSuperblock(part.address - begin, part.bytes);
    if (error == 0) RaiseSize(end_of(part));
  }
  run.write_end_ns = NowNs();
  return error;
}

bool LoggedStore::IsLogged(uint64_t begin, uint64_t end) const {
  std::vector<Source> sources;
  Superblock superblock;
  log_.Find(begin, end, sources, superblock);
  return std::ranges::any_of(sources,
                             [](const Source& source) { return source.segment != nullptr; });
}

// Where the log is full, what no commit has need not go there; but not under what is there.
bool LoggedStore::GoesToLog(uint64_t begin, uint64_t end, uint64_t taken) const {
  const bool full = full_.load(std::memory_order_relaxed) || taken >= parts_.log.most;
  if (!full || IsLogged(begin, end)) return true;
  Count(Counter::kBytesPastTier, end - begin);
  return false;
}

// No commit has these addresses. What lies between the parts is zeros, or was written before.
int LoggedStore::WriteStraight(Run& run, std::span<const Part> parts) {
  DirectStore& direct = file_.direct();
  int error = 0;
  if (parts.size() == run.extents.size() && !run.extents.empty()) {
    error = direct.Write(run);
  } else {
    run.write_begin_ns = NowNs();
    for (const Part& part : parts) {
      Run piece;
      piece.begin = part.address;
      piece.end = part.address + part.bytes.size();
      if (error == 0) error = direct.WriteBytes(piece, part.bytes.data());
    }
    run.write_end_ns = NowNs();
  }
  file_.Wrote();
  // The file may be longer: it has bytes yet that were cut off.
  RaiseSize(error == 0 ? run.end : std::min(run.end, direct.size()));
  return error;
}

int LoggedStore::Read(uint64_t address, void* buffer, size_t n) {
  if (way() == Way::kThrough) return file_.direct().Read(address, buffer, n);
  if (way() == Way::kUnsettled) return EIO;
  try {
    return ReadStored(address, static_cast<std::byte*>(buffer), n);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

void LoggedStore::Find(uint64_t begin, uint64_t end, std::vector<Source>& sources,
                       Superblock& superblock) const {
  if (way() != Way::kSnapshot) return log_.Find(begin, end, sources, superblock);
  superblock = snapshot_.superblock.empty() ? Superblock() : snapshot_.superblock.Closed();
  const log::Layer none;
  const std::vector<log::Layer>& layers = snapshot_.layers;
  FindIn(layers.empty() ? none : layers.back(), layers.size() < 2 ? none : layers.front(), begin,
         end, sources);
}

int LoggedStore::ReadStored(uint64_t address, std::byte* buffer, uint64_t n) {
  std::vector<Source> sources;
  Superblock superblock;
  Find(address, address + n, sources, superblock);
  for (const Source& source : sources) {
    std::byte* const at = buffer + (source.begin - address);
    const uint64_t size = source.end - source.begin;
    int error = 0;
    if (source.segment == nullptr) {
      error = file_.direct().Read(source.begin, at, size);
    } else if (source.offset == 0) {
      std::memset(at, 0, size);
    } else {
      error = source.segment->Read(source.offset, at, size);
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
  DirectStore& direct = file_.direct();
  if (way() == Way::kThrough) {
    const int error = direct.SetSize(size);
    if (error == 0) size_.store(size, std::memory_order_release);
    return error;
  }
  if (const int error = MayWrite(); error != 0) return error;
  if (way() == Way::kThrough) return SetSize(size);
  const uint64_t before = this->size();
  const uint64_t high_water = log_.places().high_water;
  // Above it no commit knows anything.
  const uint64_t stored = std::max(size, high_water);
  const bool is_short = direct.size() < size && !parts_.log.all;
  if ((size < before && direct.size() > stored) || is_short) {
    const int error = direct.SetSize(stored);
    file_.Wrote();
    if (error != 0) return error;
    // So far it is cut, also if the rest fails.
    if (size < before) size_.store(std::min(before, stored), std::memory_order_release);
  }
  try {
    const bool logged = size < high_water || (parts_.log.all && IsLogged(size, before));
    const int error = size < before && logged ? log_.Cut(size, parts_.log.all ? before : 0) : 0;
    if (error != 0) return error;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  size_.store(size, std::memory_order_release);
  return 0;
}

int LoggedStore::Reserve(uint64_t address, uint64_t size) {
  // What goes to the log may find no room there.
  return way() == Way::kThrough ? file_.direct().Reserve(address, size) : EOPNOTSUPP;
}

int LoggedStore::Finish() {
  if (!commits() || getpid() != process_ || !claimed_.load()) return 0;
  bool stays = false;
  if (const int error = parts_.left ? log_.FinishInLog(stays) : log_.Finish(); error != 0)
    return error;
  way_.store(stays ? Way::kLeft : Way::kFinished, std::memory_order_relaxed);
  if (stays) return 0;
  return file_.direct().size() == size() ? 0 : file_.direct().SetSize(size());
}

void LoggedStore::EndReservations(uint64_t& found) {
  file_.direct().EndReservations(found);
  if (way() == Way::kLeft) found = size();
}

int LoggedStore::EndCommits() {
  parts_.left = nullptr;
  if (const int error = Finish(); error != 0) return error;
  GoThrough();
  return 0;
}

int LoggedStore::Close() {
  log_.Stop();
  struct stat found;
  const int descriptor = *file_.device().descriptor();
  const bool has_log = (commits() || way() == Way::kLeft) && getpid() == process_;
  const bool gone =
      has_log && descriptor >= 0 && fstat(descriptor, &found) == 0 && found.st_nlink == 0;
  if (has_log) log_.End(gone);
  if (way() == Way::kLeft && !gone) {
    // What is handed on is the same opening: nobody must find it locked by a program that has closed it.
    GiveUpClaim(descriptor);
    static_cast<void>(file_.device().Unlock());
    parts_.left(parts_.log.name, descriptor);
  }
  return file_.direct().Close();
}

}  // namespace tidelane
