// What is logged, and what is read.
#include "log/commit_log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/counters.h"
#include "buffer/copy.h"
#include "log/crc32c.h"

namespace tidelane::log {
namespace {

int CrcOf(Segment& segment, uint64_t offset, uint64_t size, uint32_t& crc) {
  std::vector<std::byte> bytes(size);
  if (const int error = segment.Read(offset, bytes.data(), size); error != 0) return error;
  crc = Crc32c(bytes.data(), size);
  return 0;
}

// The parts lie there one after another; their crcs are entered. `each`: what is done with a piece of at most `stretch` bytes, and where the
// stretches end; 0 or an errno.
template <typename Each>
int ForEachPiece(std::span<const Part> parts, std::vector<CommitEntry>& entries, uint64_t stretch,
                 Each each) {
  uint64_t left = stretch;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::span<const std::byte> rest = parts[i].bytes;
    while (!rest.empty()) {
      const auto piece = rest.first(std::min(rest.size(), left));
      rest = rest.subspan(piece.size());
      left -= piece.size();
      if (const int error = each(piece, left == 0); error != 0) return error;
      entries[i].crc = Crc32c(piece.data(), piece.size(), entries[i].crc);
      if (left == 0) left = stretch;
    }
  }
  return 0;
}

// Stretch by stretch, so that who copies it finds some of what the crc was taken of in the processor's cache; not in shorter ones, which file
// systems keep in smaller pages, at a cost of their own.
int WriteTo(Segment& segment, std::span<const Part> parts, std::vector<CommitEntry>& entries) {
  constexpr uint64_t kStretch = 1024 * 1024;
  std::vector<iovec> vector;
  uint64_t offset = entries.front().offset;
  uint64_t gathered = 0;
  const auto write = [&] {
    const int error = segment.Write(offset, vector.data(), vector.size());
    offset += std::exchange(gathered, 0);
    vector.clear();
    return error;
  };
  const int error = ForEachPiece(parts, entries, kStretch, [&](const auto& piece, bool ends) {
    vector.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
    gathered += piece.size();
    return ends ? write() : 0;
  });
  return error != 0 || vector.empty() ? error : write();
}

void CopyTo(std::byte* to, std::span<const Part> parts, std::vector<CommitEntry>& entries,
            uint64_t bytes) {
  constexpr uint64_t kStretch = 128 * 1024;  // half of it is still in the nearest cache
  static_cast<void>(ForEachPiece(parts, entries, kStretch, [&](const auto& piece, bool) {
    CopyBytes(to, piece.data(), piece.size(), bytes);
    to += piece.size();
    return 0;
  }));
}

}  // namespace

CommitLog::CommitLog(MarkedFile& file, LogParts& parts, const std::atomic<uint64_t>& size)
    : file_(file),
      parts_(parts),
      size_(size),
      process_(getpid()),
      checkpointer_(std::make_shared<Checkpointer>(parts.lanes, [this] { return MoveIfDue(); })),
      maker_(file, parts) {}

CommitLog::~CommitLog() { Stop(); }

void CommitLog::Begin(const Superblock& superblock) {
  MutexLock lock(mutex_);
  committed_end_ = file_.direct().size();
  places_ = {committed_end_, superblock.base(), superblock.end(), 0};
  committed_ = superblock_ = superblock;
}

CommitLog::Places CommitLog::places() const {
  MutexLock lock(mutex_);
  Places places = places_;
  for (const auto& segment : {current_.segment, moving_.layer.segment})
    places.logged += segment == nullptr ? 0 : segment->taken();
  return places;
}

void CommitLog::SetSuperblock(uint64_t begin, uint64_t end) {
  MutexLock lock(mutex_);
  places_.superblock_begin = begin;
  places_.superblock_end = end;
}

int CommitLog::Write(std::span<const Part> parts) {
  uint64_t bytes = 0;
  std::vector<CommitEntry> entries;
  entries.reserve(parts.size());
  for (const Part& part : parts) {
    entries.push_back(
        {.address = part.address, .size = part.bytes.size(), .offset = bytes, .crc = 0});
    bytes += part.bytes.size();
  }
  std::shared_ptr<Segment> segment;
  uint64_t offset = 0;
  bool again = false;  // in the place of what no commit has yet
  while (segment == nullptr) {
    if (const int error = BeginLogging(); error != 0) return error;
    MutexLock lock(mutex_);
    segment = current_.segment;
    if (segment == nullptr) continue;  // it was moved meanwhile
    ++writing_;
    const CommitEntry* const before =
        parts.size() == 1 ? entries_.FreshAt(parts[0].address, bytes, current_.pieces) : nullptr;
    again = before != nullptr;
    offset = again ? before->offset : segment->Take(bytes);
  }
  for (CommitEntry& entry : entries) entry.offset += offset;
  int error = 0;
  const FileWindow window = parts_.place.in_memory ? segment->Open(offset, bytes) : FileWindow();
  if (window.empty()) {
    error = OfPlace(parts_.place, WriteTo(*segment, parts, entries));
  } else {
    CopyTo(window.data(), parts, entries, bytes);
    Count(Counter::kBytesInHugePages, bytes);
  }
  // Some of it may be there in the place of what was.
  if (error != 0 && again) {
    if (const int unknown = CrcOf(*segment, offset, bytes, entries[0].crc); unknown != 0)
      file_.Break(unknown);
  }
  MutexLock lock(mutex_);
  --writing_;
  if (again) entries_.FreshAt(parts[0].address, bytes, current_.pieces)->crc = entries[0].crc;
  if (error != 0) {
    if (!again) segment->GiveBack(offset, bytes);
    return error;
  }
  Count(Counter::kBytesLogged, bytes);
  if (again) return 0;
  for (const CommitEntry& entry : entries) entries_.Add(entry, current_.pieces);
  return 0;
}

// A new file's is on storage from the first one on, with a mark: nobody takes what is there for a file before the first commit.
int CommitLog::WriteSuperblock(uint64_t offset, std::span<const std::byte> bytes) {
  Superblock first;
  {
    MutexLock lock(mutex_);
    const Superblock whole =
        offset == 0 ? Superblock(places_.superblock_begin, bytes) : Superblock();
    if (!whole.empty()) superblock_ = whole;
    superblock_.Overwrite(offset, bytes);
    superblock_changed_ |= !superblock_.empty();
    if (committed_.empty()) first = superblock_;
  }
  if (first.empty()) return 0;
  // Whoever comes after a kill is to find by the mark what there is to do.
  if (const int error = parts_.place.all ? BeginLogging() : 0; error != 0) return error;
  return MarkCreated(first);
}

int CommitLog::MarkCreated(const Superblock& first) {
  MutexLock marking(mark_mutex_);
  if (marked_) return 0;
  uint64_t id = kNeverCommitted;
  {
    MutexLock lock(mutex_);
    if (current_.segment != nullptr) id = current_.segment->id();
  }
  int error = parts_.place.folder->Announce();
  if (error == 0) error = file_.Put(first.Marked(id));
  marked_ = error == 0;
  return error;
}

int CommitLog::Cut(uint64_t begin, uint64_t end) {
  if (begin >= end) return 0;
  for (;;) {
    if (const int error = BeginLogging(); error != 0) return error;
    MutexLock lock(mutex_);
    if (current_.segment == nullptr) continue;  // it was moved meanwhile
    entries_.Add({.address = begin, .size = end - begin, .offset = 0, .crc = 0}, current_.pieces);
    return 0;
  }
}

void CommitLog::Find(uint64_t begin, uint64_t end, std::vector<Source>& sources,
                     Superblock& superblock) const {
  MutexLock lock(mutex_);
  superblock = superblock_;
  FindIn(std::array{&current_, &moving_.layer, &left_behind_}, begin, end, sources);
}

}  // namespace tidelane::log
