#include "log/logged_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <ranges>
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
      bytes_(file_, parts_.log),
      memory_speed_(parts_.log.place.all ? parts_.log.place.in_memory
                                         : file_.direct().memory_speed()),
      process_(getpid()) {}

void LoggedStore::LookAgain() {
  file_.LookAgain();
  bytes_.AssumeSize(file_.direct().size());
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
  if (journals && !found.empty() && !found.marked() && bytes_.log().left().HasAny() &&
      Claimed() == 0)
    bytes_.log().left().RemoveUseless();
  // Its locks end with this program, not with a child of it.
  if (journals) ForkLocks::Get().Add(*file_.device().descriptor());
  way_.store(only_read  ? Way::kSnapshot
             : journals ? Way::kJournal
                        : Way::kThrough,
             std::memory_order_release);
  if (!goes_on) bytes_.log().Begin(found);
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
  return log::ReadSnapshot(elsewhere ? *left.folder : *parts.place.folder,
                           elsewhere ? left.name : parts.place.name, parts.path, marked,
                           parts_.writable, snapshot, known);
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
  bytes_.AssumeSize(snapshot.end);
  parts.place.folder = std::move(left.folder);
  parts.place.name = std::move(left.name);
  bytes_.log().GoOn(std::move(snapshot));
  // What it has does not count: that room was taken before.
  const uint64_t taken = bytes_.log().places().logged;
  parts.place.most += std::min(taken, UINT64_MAX - parts.place.most);
  parts.place.segment_bytes += taken / 2;
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
    bytes_.AssumeSize(snapshot.end);
    snapshot_ = std::move(snapshot);
    return {};
  }
  log::Folder& folder = left.folder != nullptr ? *left.folder : *parts.place.folder;
  Status status = log::Restore(file_.device(), folder, parts.path, snapshot, false, nullptr,
                               parts.request_bytes);
  if (!status.ok()) return status;
  left.used();
  Count(Counter::kFilesRecovered);
  LookAgain();
  return {};
}

void LoggedStore::SetSuperblock(uint64_t begin, uint64_t end) {
  if (commits()) bytes_.log().SetSuperblock(begin, end);
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

int LoggedStore::Write(Run& run) {
  if (way() == Way::kThrough) {
    const int error = file_.direct().Write(run);
    bytes_.RaiseSize(file_.direct().size());
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
    bytes_.RaiseSize(file_.direct().size());
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
    const auto places = bytes_.log().places();
    if (places.superblock_begin <= run.begin && run.end <= places.superblock_end) return 0;
  }
  if (const int error = MayWrite(); error != 0) return error;
  if (way() == Way::kThrough) return bytes_.WriteStraight(run, parts);
  return bytes_.Write(run, parts);
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
  if (way() != Way::kSnapshot) return bytes_.log().Find(begin, end, sources, superblock);
  superblock = snapshot_.superblock.empty() ? Superblock() : snapshot_.superblock.Closed();
  std::vector<const log::Layer*> layers;
  for (const log::Layer& layer : std::views::reverse(snapshot_.layers)) layers.push_back(&layer);
  FindIn(layers, begin, end, sources);
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
    if (error == 0) bytes_.AssumeSize(size);
    return error;
  }
  if (const int error = MayWrite(); error != 0) return error;
  if (way() == Way::kThrough) return SetSize(size);
  return bytes_.SetSize(size);
}

int LoggedStore::Reserve(uint64_t address, uint64_t size) {
  // What goes to the log may find no room there.
  return way() == Way::kThrough ? file_.direct().Reserve(address, size) : EOPNOTSUPP;
}

int LoggedStore::Commit(Committing when) {
  if (!commits()) return 0;
  // A child of fork has nothing to say.
  if (getpid() != process_) return 0;
  return bytes_.Commit(when);
}

int LoggedStore::Finish() {
  if (!commits() || getpid() != process_ || !claimed_.load()) return 0;
  bool stays = false;
  const int error = bytes_.Finish(parts_.left != nullptr, stays);
  if (error != 0) return error;
  way_.store(stays ? Way::kLeft : Way::kFinished, std::memory_order_relaxed);
  if (stays) return 0;
  return file_.direct().size() == size() ? 0 : file_.direct().SetSize(size());
}

void LoggedStore::EndReservations(uint64_t& found) {
  file_.direct().EndReservations(found);
  // A child of fork has its parent's file, of which the log has more than the file.
  if (way() == Way::kLeft || (commits() && getpid() != process_)) found = size();
}

int LoggedStore::EndCommits() {
  parts_.left = nullptr;
  if (const int error = Finish(); error != 0) return error;
  GoThrough();
  return 0;
}

int LoggedStore::Close() {
  bytes_.log().Stop();
  struct stat found;
  const int descriptor = *file_.device().descriptor();
  const bool has_log = (commits() || way() == Way::kLeft) && getpid() == process_;
  const bool gone =
      has_log && descriptor >= 0 && fstat(descriptor, &found) == 0 && found.st_nlink == 0;
  if (has_log) bytes_.log().End(gone);
  if (way() == Way::kLeft && !gone) {
    // What is handed on is the same opening: nobody must find it locked by a program that has closed it.
    GiveUpClaim(descriptor);
    static_cast<void>(file_.device().Unlock());
    parts_.left(parts_.log.place.name, descriptor);
  }
  return file_.direct().Close();
}

}  // namespace tidelane
