#include "log/segment.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "extent/test_hooks.h"
#include "log/crc32c.h"

namespace tidelane::log {
namespace {

int WriteSector(Device& file, uint64_t offset, const Sector& bytes) {
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return file.Write(offset, &part, 1);
}

}  // namespace

int Segment::Begin(bool sync) {
  // With it the slots and the note of its life before are gone.
  std::array<std::byte, kDataBegin> front{};
  std::ranges::copy(header_.Encode(), front.begin());
  const iovec part{front.data(), front.size()};
  if (const int error = file_->Write(0, &part, 1); error != 0) return error;
  return sync && !MutationEnabled("log_header_sync") ? file_->Sync() : 0;
}

void Segment::KeepOnly(std::span<const CommitEntry> entries) {
  std::vector<SegmentSpace::Range> needed{{last_.offset, last_.offset + last_.length}};
  for (const CommitEntry& entry : entries) {
    if (entry.offset != 0) needed.push_back({entry.offset, entry.offset + entry.size});
  }
  space_.KeepOnly(std::move(needed));
}

int Segment::Commit(CommitRecord& record, bool whole, bool sync, bool& failed_sync) {
  failed_sync = false;
  record.id = header_.id;
  if (!whole) {
    record.previous = last_.offset;
    record.previous_length = last_.length;
    record.previous_crc = last_.crc;
  }
  const std::vector<std::byte> bytes = record.Encode();
  // What was taken before may end anywhere.
  uint64_t offset = Take(bytes.size() + kAlignment);
  offset += kAlignment - offset % kAlignment;
  const CommitSlot slot{.generation = record.generation,
                        .offset = offset,
                        .length = bytes.size(),
                        .crc = Crc32c(bytes.data(), bytes.size())};
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  if (const int error = file_->Write(offset, &part, 1); error != 0) {
    GiveBack(offset, bytes.size());
    return error;
  }
  if (const int error =
          WriteSector(*file_, CommitSlot::Place(record.generation), slot.Encode(header_.id));
      error != 0)
    return error;
  if (sync && !MutationEnabled("log_commit_sync")) {
    if (const int error = file_->Sync(); error != 0) {
      failed_sync = true;
      return error;
    }
  }
  last_ = slot;
  return 0;
}

// What it said before stays said. If that fails it may say it all the same: it is made to say what it said before.
int Segment::WriteNote(const SegmentNote& note, bool sync, bool& unknown) {
  const SegmentNote before = note_;
  const auto put = [&] {
    const int error = WriteSector(*file_, SegmentNote::kPlace, note_.Encode(header_.id));
    return error == 0 && sync && !MutationEnabled("log_note_sync") ? file_->Sync() : error;
  };
  if (note.next != 0) note_.next = note.next;
  if (note.whole != 0) note_.whole = note.whole;
  const int error = put();
  unknown = false;
  if (error == 0) return 0;
  note_ = before;
  unknown = put() != 0;
  return error;
}

}  // namespace tidelane::log
