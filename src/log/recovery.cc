#include "log/recovery.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "extent/test_hooks.h"
#include "log/crc32c.h"

namespace tidelane::log {
namespace {

constexpr uint64_t kPiece = 1u << 20;
constexpr uint64_t kMostRecord = uint64_t{1} << 32;
constexpr auto kTimeBetweenSyncs = std::chrono::milliseconds(100);

Status Failed(int error, const char* verb, const std::string& segment, const std::string& path) {
  return Status::Failed(error, std::string(verb) + " " + segment + ", the log of").At(path, 0, 0);
}

// A log that is there, and does not help.
Status Useless(int error, const std::string& segment, const std::string& why,
               const std::string& path) {
  return Status::Failed(error, "use " + segment + ", " + why + ", to recover").At(path, 0, 0);
}

Status Damaged(const std::string& segment, const std::string& path) {
  return Useless(EIO, segment, "a damaged log", path);
}

// What is found of one commit.
struct Commit {
  CommitRecord record;
  CommitSlot slot;  // by which it was found
};

class SegmentReader {
 public:
  /// `known`: the bytes of commits up to this one are right.
  SegmentReader(Segment& segment, const std::string& path, uint64_t known = 0)
      : segment_(segment), path_(path), known_(known) {}

  /// What it says of its end; nothing where it is torn.
  Status ReadNote(SegmentNote& note) {
    Sector bytes;
    if (Status status = ReadSector(SegmentNote::kPlace, bytes); !status.ok()) return status;
    note = note_ = SegmentNote::Parse(bytes, segment_.id()).value_or(SegmentNote());
    return {};
  }

  /// Whether a commit of it was begun.
  Status HasCommit(bool& has) {
    has = false;
    for (uint64_t i = 1; i <= 2; ++i) {
      Sector bytes;
      if (Status status = ReadSector(i * kSector, bytes); !status.ok()) return status;
      has |= CommitSlot::Parse(bytes, segment_.id()).has_value();
    }
    return {};
  }

  /// Its commits, from the first to the last.
  Status Read(std::vector<Commit>& commits) {
    std::array<std::optional<CommitSlot>, 2> slots;
    size_t wrong = 0;  // neither right nor never written
    for (uint64_t i = 0; i < slots.size(); ++i) {
      Sector bytes;
      if (Status status = ReadSector((i + 1) * kSector, bytes); !status.ok()) return status;
      slots[i] = CommitSlot::Parse(bytes, segment_.id());
      // It is where its generation belongs.
      if (slots[i] && CommitSlot::Place(slots[i]->generation) != (i + 1) * kSector)
        slots[i].reset();
      if (!slots[i] && !IsBlank(bytes)) ++wrong;
    }
    if (!slots[0] || (slots[1] && slots[0]->generation < slots[1]->generation))
      std::swap(slots[0], slots[1]);
    bool right = false;
    Commit newest;
    if (slots[0]) {
      newest.slot = *slots[0];
      if (Status status = ReadCommit(newest, right); !status.ok()) return status;
      if (!right) ++wrong;
    }
    // One may be the torn tail of a commit that nobody was told of.
    if (!right && slots[1]) {
      newest = {.record = {}, .slot = *slots[1]};
      if (Status status = ReadCommit(newest, right); !status.ok()) return status;
      if (!right) ++wrong;
    }
    if (wrong > 1) return Damaged();
    const uint64_t last = right ? newest.record.generation : 0;
    if (last < note_.whole) return Damaged();
    if (!right) return {};
    for (;;) {
      const CommitRecord& record = newest.record;
      const CommitSlot before{.generation = record.generation - 1,
                              .offset = record.previous,
                              .length = record.previous_length,
                              .crc = record.previous_crc};
      commits.push_back(std::move(newest));
      if (before.offset == 0) break;
      newest = {.record = {}, .slot = before};
      if (Status status = ReadCommit(newest, right); !status.ok()) return status;
      if (!right) return Damaged();
    }
    std::ranges::reverse(commits);
    return {};
  }

 private:
  Status ReadSector(uint64_t offset, Sector& bytes) {
    const int error = segment_.Read(offset, bytes.data(), bytes.size());
    return error == 0 ? Status() : Failed(error);
  }
  Status Failed(int error) const { return log::Failed(error, "read", segment_.name(), path_); }
  Status Damaged() const { return log::Damaged(segment_.name(), path_); }

  // Whether the record and all its bytes are as they were written. What cannot be read is a failure, and no torn tail.
  Status ReadCommit(Commit& commit, bool& right) {
    right = false;
    if (commit.slot.length > kMostRecord) return {};
    std::vector<std::byte> bytes(commit.slot.length);
    if (const int error = segment_.Read(commit.slot.offset, bytes.data(), bytes.size()); error != 0)
      return Failed(error);
    if (Crc32c(bytes.data(), bytes.size()) != commit.slot.crc) return {};
    std::optional<CommitRecord> record = CommitRecord::Parse(bytes);
    if (!record || record->id != segment_.id() || record->generation != commit.slot.generation)
      return {};
    for (const CommitEntry& entry : record->entries) {
      if (entry.offset == 0 || record->generation <= known_) continue;
      uint32_t crc = 0;
      for (uint64_t done = 0; done < entry.size;) {
        const uint64_t piece = std::min(entry.size - done, kPiece);
        bytes_.resize(piece);
        if (const int error = segment_.Read(entry.offset + done, bytes_.data(), piece); error != 0)
          return Failed(error);
        crc = Crc32c(bytes_.data(), piece, crc);
        done += piece;
      }
      if (crc != entry.crc) return {};
    }
    commit.record = *std::move(record);
    right = true;
    return {};
  }

  Segment& segment_;
  const std::string& path_;
  const uint64_t known_;
  SegmentNote note_;
  std::vector<std::byte> bytes_;
};

// A segment that is there and has a right header; nothing otherwise.
Status OpenSegment(Folder& folder, const std::string& name, const std::string& path, bool claims,
                   std::shared_ptr<Segment>& segment, bool& is_no_log) {
  std::unique_ptr<Device> file;
  int error = folder.Open(name, claims, file);
  if (error == ENOENT) return {};
  Sector bytes;
  if (error == 0) error = file->Read(0, bytes.data(), bytes.size());
  if (error == EWOULDBLOCK) return Useless(error, name, "which a program is writing", path);
  if (error != 0) return Failed(error, "open", name, path);
  std::optional<SegmentHeader> header = SegmentHeader::Parse(bytes);
  if (header && header->version > kVersion) {
    const std::string format = std::to_string(header->version);
    return Useless(ENOTSUP, name, "a log of format " + format + ", of a newer Tidelane", path);
  }
  is_no_log = !header;
  if (header) segment = std::make_shared<Segment>(name, std::move(file), *std::move(header));
  return {};
}

// Adds what a segment's commits say.
// `marked`: the file's own superblock, which lies where theirs do.
Status Add(std::shared_ptr<Segment> segment, const std::string& path, const Superblock& marked,
           const KnownCommits& known, Snapshot& snapshot, SegmentNote& note) {
  std::vector<Commit> commits;
  SegmentReader reader(*segment, path, known.In(segment->id()));
  if (Status status = reader.ReadNote(note); !status.ok()) return status;
  segment->AssumeNote(note);
  if (Status status = reader.Read(commits); !status.ok()) return status;
  Layer layer{.segment = std::move(segment), .pieces = {}};
  snapshot.entries.clear();
  snapshot.needed.clear();
  snapshot.first = commits.empty() ? 0 : commits.front().record.generation;
  for (const auto& [record, slot] : commits) {
    snapshot.needed.push_back({slot.offset, slot.offset + slot.length});
    for (const CommitEntry& entry : record.entries) {
      if (entry.offset != 0) snapshot.needed.push_back({entry.offset, entry.offset + entry.size});
      if (entry.address == marked.base() && entry.offset != 0 && entry.size == marked.size()) {
        std::array<std::byte, Superblock::kMost> bytes;
        if (const int error = layer.segment->Read(entry.offset, bytes.data(), entry.size);
            error != 0)
          return Failed(error, "read", layer.segment->name(), path);
        snapshot.superblock = Superblock(entry.address, std::span(bytes).first(entry.size));
        continue;
      }
      layer.pieces.Insert(
          entry.address,
          {.size = entry.size, .offset = entry.offset, .entry = snapshot.entries.size()});
      snapshot.entries.push_back(entry);
    }
    snapshot.end = record.end;
    snapshot.generation = record.generation;
    snapshot.stored = std::min(record.stored, record.end);
  }
  if (!commits.empty()) snapshot.newest = {layer.segment, commits.back().slot};
  snapshot.layers.push_back(std::move(layer));
  return {};
}

}  // namespace

Status ReadSnapshot(Folder& folder, const std::string& name, const std::string& path,
                    const Superblock& marked, bool claims, Snapshot& snapshot, KnownCommits known) {
  return ReadSnapshot(folder, {SegmentName(name, 1), SegmentName(name, 2)}, path, marked, claims,
                      snapshot, known);
}

Status ReadSnapshot(Folder& folder, const SegmentNames& names, const std::string& path,
                    const Superblock& marked, bool claims, Snapshot& snapshot, KnownCommits known) {
  snapshot = {};
  if (marked.mark() == kNeverCommitted) return {};
  std::array<std::shared_ptr<Segment>, 2> found;
  std::array<bool, 2> no_log{};
  for (size_t i = 0; i < found.size(); ++i) {
    if (Status status = OpenSegment(folder, names[i], path, claims, found[i], no_log[i]);
        !status.ok())
      return status;
  }
  if (found[0] == nullptr || (found[1] != nullptr && !marked.MarkedWith(found[0]->id())))
    std::swap(found[0], found[1]);
  if (found[0] == nullptr || !marked.MarkedWith(found[0]->id())) {
    const auto damaged = std::ranges::find(no_log, true);
    if (damaged != no_log.end())
      return Damaged(names[static_cast<size_t>(damaged - no_log.begin())], path);
  }
  if (found[0] == nullptr) {
    const std::string& name = names[0].empty() ? names[1] : names[0];
    return Status::Failed(kNoLog, "find " + name + ", the log that is needed to recover")
        .At(path, 0, 0);
  }
  const auto anothers = [&] {
    const std::string whose = "the log of another file (" + found[0]->header().path + ")";
    return Useless(kNoLog, found[0]->name(), whose, path);
  };
  if (!marked.MarkedWith(found[0]->id()) && !MutationEnabled("log_id")) return anothers();
  const SegmentHeader& first = found[0]->header();
  if (!first.superblock.empty() &&
      (first.superblock.base() != marked.base() || first.superblock.size() != marked.size()))
    return anothers();
  snapshot.end = first.end;
  snapshot.superblock = first.superblock;
  const uint64_t id = first.id;
  const uint64_t before = first.before;
  const std::string& other = names[0] == found[0]->name() ? names[1] : names[0];
  // A segment begins with all of its front: what is not there was cut off, and is not zeros.
  const auto is_cut = [](Segment& segment) {
    uint64_t size = 0;
    return segment.file().Size(size) == 0 && size < kDataBegin;
  };
  if (is_cut(*found[0])) return Damaged(found[0]->name(), path);
  SegmentNote note;
  if (Status status = Add(std::move(found[0]), path, marked, known, snapshot, note); !status.ok())
    return status;
  if (found[1] != nullptr && found[1]->id() == before) snapshot.moved = found[1];
  const bool goes_on = found[1] != nullptr && found[1]->header().before == id;
  if (note.next != 0 && (!goes_on || found[1]->id() != note.next)) {
    return Status::Failed(kNoLog, "find " + other + ", the newest part of the log of")
        .At(path, 0, 0);
  }
  if (!goes_on) return {};
  if (note.next == 0) {
    // It is named before its first commit: if it has one, the note was lost. Else it may be half made, and nothing of it counts.
    bool has_commit = false;
    if (Status status = SegmentReader(*found[1], path).HasCommit(has_commit); !status.ok())
      return status;
    if (!has_commit) {
      snapshot.moved = found[1];
      return {};
    }
  }
  if (is_cut(*found[1])) return Damaged(other, path);
  return Add(std::move(found[1]), path, marked, known, snapshot, note);
}

namespace {

// Storage may have it in memory alone, and must not lose it when the file is half changed.
int Rewrite(Segment& segment, const CommitSlot& slot) {
  std::vector<std::byte> bytes(slot.length);
  const auto again = [&](uint64_t offset, uint64_t size) {
    int error = 0;
    while (error == 0 && size != 0) {
      bytes.resize(std::min(size, kPiece));
      const iovec part{bytes.data(), bytes.size()};
      error = segment.Read(offset, bytes.data(), bytes.size());
      if (error == 0) error = segment.Write(offset, &part, 1);
      offset += bytes.size(), size -= bytes.size();
    }
    return error;
  };
  if (const int error = segment.Read(slot.offset, bytes.data(), bytes.size()); error != 0)
    return error;
  const std::optional<CommitRecord> record = CommitRecord::Parse(bytes);
  if (!record) return EIO;
  for (const CommitEntry& entry : record->entries) {
    if (entry.offset == 0) continue;
    if (const int error = again(entry.offset, entry.size); error != 0) return error;
  }
  if (const int error = again(slot.offset, slot.length); error != 0) return error;
  return again(CommitSlot::Place(slot.generation), kSector);
}

}  // namespace

void FindIn(std::span<const Layer* const> layers, uint64_t begin, uint64_t end,
            std::vector<Source>& sources) {
  if (layers.empty()) return sources.push_back({begin, end, nullptr, 0});
  const Layer& top = *layers.front();
  top.pieces.Visit(
      begin, end,
      [&](uint64_t from, uint64_t to, uint64_t offset) {
        sources.push_back({from, to, top.segment, offset});
      },
      [&](uint64_t from, uint64_t to) { FindIn(layers.subspan(1), from, to, sources); });
}

namespace {

// What is written to a file in the order of addresses, put together to requests that end where a multiple of `most` does.
class Requests {
 public:
  Requests(Device& file, uint64_t most, uint64_t* written)
      : file_(file), most_(most), written_(written) {
    bytes_.reserve(most);
  }

  /// [from, to) becomes what `read` puts there; 0 or an errno.
  template <typename Read>
  int Add(uint64_t from, uint64_t to, Read read) {
    while (from < to) {
      if (from != begin_ + bytes_.size() || from % most_ == 0) {
        if (const int error = Write(); error != 0) return error;
        begin_ = from;
      }
      const uint64_t size = std::min(to, from / most_ * most_ + most_) - from;
      bytes_.resize(bytes_.size() + size);
      if (const int error = read(bytes_.data() + bytes_.size() - size, size); error != 0)
        return error;
      from += size;
    }
    return 0;
  }
  int Write() {
    if (bytes_.empty()) return 0;
    const iovec part{bytes_.data(), bytes_.size()};
    const int error = file_.Write(begin_, &part, 1);
    if (error == 0 && written_ != nullptr) *written_ = begin_ + bytes_.size();
    bytes_.clear();
    return error;
  }

 private:
  Device& file_;
  const uint64_t most_;
  uint64_t* const written_;  // all before this; may be none
  std::vector<std::byte> bytes_;
  uint64_t begin_ = 0;
};

}  // namespace

int CopyTo(Device& file, const Layer& layer, uint64_t end, uint64_t request_bytes,
           uint64_t* copied) {
  uint64_t size = 0;
  if (const int error = file.Size(size); error != 0) return error;
  Requests requests(file, request_bytes, copied);
  int error = 0;
  const auto copy = [&](uint64_t from, uint64_t to, uint64_t offset) {
    if (error != 0) return;
    if (offset == 0) {
      // Zeros beyond the end are there by themselves.
      error = requests.Add(from, std::min({to, end, size}), [](std::byte* at, uint64_t n) {
        std::memset(at, 0, n);
        return 0;
      });
    } else {
      error = requests.Add(from, to, [&](std::byte* at, uint64_t n) {
        return layer.segment->Read(std::exchange(offset, offset + n), at, n);
      });
    }
  };
  layer.pieces.Visit(0, UINT64_MAX, copy, [](uint64_t, uint64_t) {});
  return error == 0 ? requests.Write() : error;
}

bool IsApplied(Device& file, const Superblock& own, const Snapshot& snapshot) {
  bool same = snapshot.superblock.Closed() == own.Closed() && !snapshot.layers.empty();
  std::vector<std::byte> there;
  std::vector<std::byte> logged;
  const auto compare_with = [&](const Layer& layer) {
    return [&](uint64_t from, uint64_t to, uint64_t offset) {
      to = std::min(to, snapshot.end);
      while (same && from < to) {
        const uint64_t piece = std::min(to - from, kPiece);
        there.assign(piece, {});
        logged.assign(piece, {});
        same = file.Read(from, there.data(), piece) == 0 &&
               (offset == 0 || layer.segment->Read(offset, logged.data(), piece) == 0) &&
               there == logged;
        if (offset != 0) offset += piece;
        from += piece;
      }
    };
  };
  const auto nothing = [](uint64_t, uint64_t) {};
  const auto older = [&](uint64_t from, uint64_t to) {
    const Layer& first = snapshot.layers.front();
    if (snapshot.layers.size() > 1) first.pieces.Visit(from, to, compare_with(first), nothing);
  };
  if (same) {
    const Layer& last = snapshot.layers.back();
    last.pieces.Visit(0, UINT64_MAX, compare_with(last), older);
  }
  return same;
}

namespace {

// What of the log is not on storage yet, in address order, so that a part of each entry is, and the rest is not.
int CopyRest(Device& file, const Snapshot& snapshot, Progress& progress, uint64_t request_bytes) {
  const std::shared_ptr<Segment>& segment = snapshot.layers.back().segment;
  if (progress.segment != segment->id() ||
      (progress.first != snapshot.first && !MutationEnabled("log_progress")))
    progress.Forget();
  progress.Synced();  // before this, with all that the file had
  progress.segment = segment->id();
  progress.first = snapshot.first;
  progress.generation = snapshot.generation;
  progress.stored.resize(snapshot.entries.size());
  using Clock = std::chrono::steady_clock;
  const uint64_t most = std::min(request_bytes, progress.between_syncs);
  Layer next{.segment = segment, .pieces = {}};
  uint64_t taken = 0;
  uint64_t block = 0;  // of `most` bytes, in which it lies
  uint64_t copied = 0;
  auto synced_at = Clock::now();
  int error = 0;
  // All below this address.
  const auto copy_to = [&](uint64_t address) {
    error = CopyTo(file, next, snapshot.end, request_bytes, &progress.copied);
    next.pieces = {};
    copied += std::exchange(taken, 0);
    if (error != 0) return;
    progress.copied = address;
    if (copied < progress.between_syncs && Clock::now() - synced_at < kTimeBetweenSyncs) return;
    error = file.Sync();
    if (error != 0) return;
    progress.Synced();
    copied = 0;
    synced_at = Clock::now();
  };
  snapshot.layers.back().pieces.VisitPieces([&](uint64_t address, const LoggedPiece& piece) {
    const uint64_t end = address + piece.size;
    uint64_t at = std::max(address, progress.stored[piece.entry]);
    while (error == 0 && at < end) {
      // Each time what one request takes, where nothing lies between.
      if (taken != 0 && at / most != block) copy_to(at);
      block = at / most;
      const uint64_t size = std::min(end - at, (block + 1) * most - at);
      const uint64_t offset = piece.offset == 0 ? 0 : piece.offset + (at - address);
      next.pieces.Insert(at, {.size = size, .offset = offset});
      at += size;
      taken += size;
    }
  });
  if (error == 0 && taken != 0) copy_to(UINT64_MAX);
  return error;
}

// What a program that was killed has left may not be on storage yet: neither the mark nor the log is then what would be found after the
// next end, of the machine.
int SyncAll(Device& file, Folder& folder, const Snapshot& snapshot) {
  if (MutationEnabled("log_restore_sync")) return 0;
  for (const Layer& layer : snapshot.layers) {
    if (const int error = layer.segment->file().Sync(); error != 0) return error;
  }
  if (const int error = folder.Sync(); error != 0) return error;
  return file.Sync();
}

}  // namespace

Status CheckLength(Device& file, const std::string& path, const Snapshot& snapshot) {
  uint64_t size = 0;
  if (const int error = file.Size(size); error != 0)
    return Status::Failed(error, "recover").At(path, 0, 0);
  if (size >= snapshot.stored) return {};
  return Status::Failed(ESTALE, "recover (it is shorter than its log knows it; an older copy?)")
      .At(path, size, snapshot.stored - size);
}

Status Restore(Device& file, Folder& folder, const std::string& path, const Snapshot& snapshot,
               bool in_memory, Progress* progress, uint64_t request_bytes) {
  const auto failed = [&](int error) { return Status::Failed(error, "recover").At(path, 0, 0); };
  if (Status status = CheckLength(file, path, snapshot); !status.ok()) return status;
  const auto& [newest, last] = snapshot.newest;
  const bool is_rewritten = progress != nullptr && newest != nullptr &&
                            progress->segment == newest->id() &&
                            progress->generation == last.generation;
  if (newest != nullptr && !in_memory && !is_rewritten) {
    if (const int error = Rewrite(*newest, last); error != 0) return failed(error);
  }
  if (const int error = SyncAll(file, folder, snapshot); error != 0) return failed(error);
  if (newest != nullptr) {
    // From now on it is no torn one that could be left out.
    bool unknown = false;
    if (const int error = newest->WriteNote({.whole = last.generation}, true, unknown); error != 0)
      return failed(error);
  }
  const bool goes_on = progress != nullptr && snapshot.layers.size() == 1;
  if (goes_on) {
    if (const int error = CopyRest(file, snapshot, *progress, request_bytes); error != 0)
      return failed(error);
  }
  for (const Layer& layer : snapshot.layers) {
    if (const int error = goes_on ? 0 : CopyTo(file, layer, snapshot.end, request_bytes);
        error != 0)
      return failed(error);
  }
  if (const int error = file.Truncate(snapshot.end); error != 0) return failed(error);
  if (const int error = file.Sync(); error != 0) return failed(error);
  if (!snapshot.superblock.empty()) {
    // Somebody who heeds no lock may have cut it to nothing meanwhile: what was copied before that is not there any more.
    Superblock own;
    if (const int error = Superblock::Find(file, own); error != 0) return failed(error);
    if (!own.marked()) return failed(ESTALE);
    const Superblock closed = snapshot.superblock.Closed();
    const iovec part{const_cast<std::byte*>(closed.bytes().data()), closed.size()};
    if (const int error = file.Write(closed.base(), &part, 1); error != 0) return failed(error);
    if (const int error = file.Sync(); error != 0) return failed(error);
  }
  // The newest last: it shows whose they are.
  if (snapshot.moved != nullptr)
    static_cast<void>(folder.Remove(snapshot.moved->name(), snapshot.moved->file()));
  for (const Layer& layer : snapshot.layers)
    static_cast<void>(folder.Remove(layer.segment->name(), layer.segment->file()));
  return {};
}

}  // namespace tidelane::log
