#include "content/extent_read.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "cache/access_predictor.h"

namespace tidelane {
namespace {

// What is read at a time: more than one such request makes no storage quicker.
constexpr uint64_t kPart = 1u << 20;
// Pieces below this are read with their neighbours, if no more than so much is between them.
constexpr uint64_t kSmallPiece = uint64_t{64} * 1024;
constexpr uint64_t kGap = 4096;
// One read has no more pieces than this: what is scattered so widely is better read through HDF5's buffers and ours.
constexpr size_t kMostPieces = 1u << 16;

}  // namespace

bool ExtentRead::Add(uint64_t address, uint64_t size, std::byte* to) {
  MutexLock lock(pieces_mutex_);
  if (sealed_ || pieces_.size() + size / kPart + 2 > kMostPieces) return false;
  try {
    const size_t more = pieces_.size() + size / kPart + 2;
    if (pieces_.capacity() < more) pieces_.reserve(2 * more);
    if (begins_.capacity() <= more) begins_.reserve(2 * more + 1);  // so that Seal cannot fail
  } catch (const std::bad_alloc&) {
    return false;
  }
  bytes_ += size;
  while (size != 0) {
    const uint64_t piece = std::min(size, kPart - address % kPart);
    pieces_.push_back({address, piece, to});
    longest_ = std::max(longest_, piece);
    address += piece, to += piece, size -= piece;
  }
  return true;
}

void ExtentRead::Seal() {
  if (sealed()) return;
  MutexLock lock(pieces_mutex_);
  if (sealed_) return;
  std::ranges::sort(pieces_, {}, &Piece::address);
  uint64_t bytes = 0;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (i == 0 || bytes + pieces_[i].size > kPart) {
      begins_.push_back(i);
      bytes = 0;
    }
    bytes += pieces_[i].size;
  }
  SetParts(begins_.size(), 2);
  begins_.push_back(pieces_.size());
  sealed_.store(true, std::memory_order_release);
}

Status ExtentRead::ReadNow() {
  Status status = ReadAtOnce();
  if (!status.ok()) return status;
  // What lies together was one read.
  ByteRange range;
  for (const Piece& piece : pieces_) {
    if (piece.address != range.end) {
      source().NoteRead(range.begin, range.size());
      range.begin = piece.address;
    }
    range.end = piece.end();
  }
  source().NoteRead(range.begin, range.size());
  return {};
}

bool ExtentRead::Touches(uint64_t begin, uint64_t end) const {
  MutexLock lock(pieces_mutex_);
  const auto touches = [&](const Piece& piece) {
    return piece.address < end && piece.end() > begin;
  };
  if (!sealed_) return std::ranges::any_of(pieces_, touches);
  // No piece is longer than the longest: earlier ones end before.
  const uint64_t from = begin > longest_ ? begin - longest_ : 0;
  for (auto at = std::ranges::lower_bound(pieces_, from, {}, &Piece::address);
       at != pieces_.end() && at->address < end; ++at) {
    if (touches(*at)) return true;
  }
  return false;
}

Status ExtentRead::ReadPart(Reader reader, uint64_t part, ReadRooms& rooms) {
  const size_t last = begins_[part + 1];
  for (size_t i = begins_[part]; i < last;) {
    size_t next = i + 1;
    uint64_t end = pieces_[i].end();
    while (next < last && pieces_[i].size < kSmallPiece && pieces_[next].size < kSmallPiece &&
           pieces_[next].address <= end + kGap) {
      end = std::max(end, pieces_[next++].end());
    }
    const Piece& piece = pieces_[i];
    Status status = next == i + 1 ? ReadBytes(reader, piece.address, piece.size, piece.to)
                                  : ReadSpan(reader, i, next, rooms);
    if (!status.ok()) return status;
    i = next;
  }
  return {};
}

Status ExtentRead::ReadSpan(Reader reader, size_t first, size_t last, ReadRooms& rooms) {
  const uint64_t begin = pieces_[first].address;
  uint64_t end = begin;
  for (size_t i = first; i < last; ++i) end = std::max(end, pieces_[i].end());
  std::byte* const span = rooms.stored.Get(end - begin);
  if (span == nullptr) {
    return Status::Failed(ENOMEM, "read").At(source().path(), begin, end - begin);
  }
  Status status = ReadBytes(reader, begin, end - begin, span);
  if (!status.ok()) return status;
  for (size_t i = first; i < last; ++i) {
    std::memcpy(pieces_[i].to, span + (pieces_[i].address - begin), pieces_[i].size);
  }
  return {};
}

}  // namespace tidelane
