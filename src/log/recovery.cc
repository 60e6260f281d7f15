#include "log/recovery.h"

#include <algorithm>
#include <array>
#include <cerrno>
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

std::string InWords(const std::string& verb, const std::string& segment) {
  return verb + " " + segment + ", the log of";
}

// What is found of one commit.
struct Commit {
  CommitRecord record;
  CommitSlot slot;  // by which it was found
};

class SegmentReader {
 public:
  SegmentReader(Segment& segment, const std::string& path) : segment_(segment), path_(path) {}

  /// Its commits, from the first to the last.
  Status Read(std::vector<Commit>& commits) {
    std::array<std::optional<CommitSlot>, 2> slots;
    for (uint64_t i = 0; i < slots.size(); ++i) {
      Sector bytes;
      if (const int error = segment_.Read((i + 1) * kSector, bytes.data(), bytes.size());
          error != 0)
        return Failed(error, "read");
      slots[i] = CommitSlot::Parse(bytes, segment_.id());
      // It is where its generation belongs.
      if (slots[i] && CommitSlot::Place(slots[i]->generation) != (i + 1) * kSector)
        slots[i].reset();
    }
    if (slots[0] && slots[1] && slots[0]->generation < slots[1]->generation)
      std::swap(slots[0], slots[1]);
    if (!slots[0]) std::swap(slots[0], slots[1]);
    if (!slots[0]) return {};
    // The newest may be the torn tail of a commit that nobody was told of.
    Commit newest{.record = {}, .slot = *slots[0]};
    bool right = false;
    if (Status status = ReadCommit(newest, right); !status.ok()) return status;
    if (!right) {
      if (!slots[1]) return {};
      newest = {.record = {}, .slot = *slots[1]};
      if (Status status = ReadCommit(newest, right); !status.ok()) return status;
      if (!right) return Damaged();
    }
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
  Status Failed(int error, const char* verb) const {
    return Status::Failed(error, InWords(verb, segment_.name())).At(path_, 0, 0);
  }
  Status Damaged() const {
    return Status::Failed(EIO, InWords("trust", segment_.name() + ", which is damaged"))
        .At(path_, 0, 0);
  }

  // Whether the record and all its bytes are as they were written. What cannot be read is a failure, and no torn tail.
  Status ReadCommit(Commit& commit, bool& right) {
    right = false;
    if (commit.slot.length > kMostRecord) return {};
    std::vector<std::byte> bytes(commit.slot.length);
    if (const int error = segment_.Read(commit.slot.offset, bytes.data(), bytes.size()); error != 0)
      return Failed(error, "read");
    if (Crc32c(bytes.data(), bytes.size()) != commit.slot.crc) return {};
    std::optional<CommitRecord> record = CommitRecord::Parse(bytes);
    if (!record || record->id != segment_.id() || record->generation != commit.slot.generation)
      return {};
    for (const CommitEntry& entry : record->entries) {
      if (entry.offset == 0) continue;
      uint32_t crc = 0;
      for (uint64_t done = 0; done < entry.size;) {
        const uint64_t piece = std::min(entry.size - done, kPiece);
        bytes_.resize(piece);
        if (const int error = segment_.Read(entry.offset + done, bytes_.data(), piece); error != 0)
          return Failed(error, "read");
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
  std::vector<std::byte> bytes_;
};

// A segment that is there and has a right header; nothing otherwise.
Status OpenSegment(Folder& folder, const std::string& name, const std::string& path, bool claims,
                   std::shared_ptr<Segment>& segment) {
  std::unique_ptr<Device> file;
  int error = folder.Open(name, claims, file);
  if (error == ENOENT) return {};
  Sector bytes;
  if (error == 0) error = file->Read(0, bytes.data(), bytes.size());
  if (error == EWOULDBLOCK)
    return Status::Failed(error, InWords("recover by", name + ", which a program is writing"))
        .At(path, 0, 0);
  if (error != 0) return Status::Failed(error, InWords("open", name)).At(path, 0, 0);
  std::optional<SegmentHeader> header = SegmentHeader::Parse(bytes);
  if (header && header->version > kVersion) {
    return Status::Failed(ENOTSUP,
                          InWords("read", name + " (of format " + std::to_string(header->version) +
                                              ", written by a newer Tidelane)"))
        .At(path, 0, 0);
  }
  if (header) segment = std::make_shared<Segment>(name, std::move(file), *std::move(header));
  return {};
}

// Adds what a segment's commits say.
Status Add(std::shared_ptr<Segment> segment, const std::string& path, Snapshot& snapshot) {
  std::vector<Commit> commits;
  if (Status status = SegmentReader(*segment, path).Read(commits); !status.ok()) return status;
  Layer layer{.segment = std::move(segment), .pieces = {}};
  for (const auto& [record, slot] : commits) {
    for (const CommitEntry& entry : record.entries) {
      if (entry.address == snapshot.superblock.base() && entry.offset != 0 &&
          entry.size == snapshot.superblock.size()) {
        std::array<std::byte, Superblock::kMost> bytes;
        if (const int error = layer.segment->Read(entry.offset, bytes.data(), entry.size);
            error != 0)
          return Status::Failed(error, InWords("read", layer.segment->name())).At(path, 0, 0);
        snapshot.superblock = Superblock(entry.address, std::span(bytes).first(entry.size));
        continue;
      }
      layer.pieces.Insert(entry.address, {.size = entry.size, .offset = entry.offset});
    }
    snapshot.end = record.end;
    snapshot.generation = record.generation;
  }
  snapshot.layers.push_back(std::move(layer));
  return {};
}

}  // namespace

Status ReadSnapshot(Folder& folder, const std::string& name, const std::string& path,
                    const Superblock& marked, bool claims, Snapshot& snapshot) {
  snapshot = {};
  if (marked.mark() == kNeverCommitted) return {};
  std::array<std::shared_ptr<Segment>, 2> found;
  for (size_t i = 0; i < found.size(); ++i) {
    if (Status status = OpenSegment(folder, SegmentName(name, i + 1), path, claims, found[i]);
        !status.ok())
      return status;
  }
  if (found[0] == nullptr || !marked.MarkedWith(found[0]->id())) std::swap(found[0], found[1]);
  if (found[0] == nullptr)
    return Status::Failed(ENOENT, InWords("find", SegmentName(name, 1))).At(path, 0, 0);
  if (!marked.MarkedWith(found[0]->id()) && !MutationEnabled("log_id"))
    return Status::Failed(ESTALE, InWords("use", found[0]->name() + " (another file's)"))
        .At(path, 0, 0);
  const SegmentHeader& first = found[0]->header();
  if (first.superblock.base() != marked.base() || first.superblock.size() != marked.size())
    return Status::Failed(ESTALE, InWords("use", found[0]->name())).At(path, 0, 0);
  snapshot.end = first.end;
  snapshot.superblock = first.superblock;
  const uint64_t id = first.id;
  const uint64_t before = first.before;
  if (Status status = Add(std::move(found[0]), path, snapshot); !status.ok()) return status;
  if (found[1] != nullptr && found[1]->id() == before) snapshot.moved = found[1]->name();
  if (found[1] == nullptr || found[1]->header().before != id) return {};
  return Add(std::move(found[1]), path, snapshot);
}

int CopyTo(Device& file, const Layer& layer, uint64_t end) {
  uint64_t size = 0;
  if (const int error = file.Size(size); error != 0) return error;
  std::vector<std::byte> bytes;
  int error = 0;
  const auto copy = [&](uint64_t from, uint64_t to, uint64_t offset) {
    // Zeros beyond the end are there by themselves.
    if (offset == 0) to = std::min({to, end, size});
    for (; error == 0 && from < to;) {
      const uint64_t piece = std::min(to - from, kPiece);
      bytes.resize(piece);
      if (offset == 0) {
        std::memset(bytes.data(), 0, piece);
      } else {
        error = layer.segment->Read(offset, bytes.data(), piece);
        offset += piece;
      }
      const iovec part{bytes.data(), piece};
      if (error == 0) error = file.Write(from, &part, 1);
      from += piece;
    }
  };
  layer.pieces.Visit(0, UINT64_MAX, copy, [](uint64_t, uint64_t) {});
  return error;
}

namespace {

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

Status Restore(Device& file, Folder& folder, const std::string& path, const Snapshot& snapshot) {
  const auto failed = [&](int error) { return Status::Failed(error, "recover").At(path, 0, 0); };
  if (const int error = SyncAll(file, folder, snapshot); error != 0) return failed(error);
  for (const Layer& layer : snapshot.layers) {
    if (const int error = CopyTo(file, layer, snapshot.end); error != 0) return failed(error);
  }
  if (const int error = file.Truncate(snapshot.end); error != 0) return failed(error);
  if (const int error = file.Sync(); error != 0) return failed(error);
  if (!snapshot.superblock.empty()) {
    const Superblock closed = snapshot.superblock.Closed();
    const iovec part{const_cast<std::byte*>(closed.bytes().data()), closed.size()};
    if (const int error = file.Write(closed.base(), &part, 1); error != 0) return failed(error);
    if (const int error = file.Sync(); error != 0) return failed(error);
  }
  for (const Layer& layer : snapshot.layers)
    static_cast<void>(folder.Remove(layer.segment->name()));
  if (!snapshot.moved.empty()) static_cast<void>(folder.Remove(snapshot.moved));
  return {};
}

}  // namespace tidelane::log
