/// \file
/// Which bytes of a file lie in one segment of its log, and where: newer ones on top.
///
/// Invariant: pieces do not overlap.
/// Thread safety: none; guarded by whoever holds it.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace tidelane::log {

struct LoggedPiece {
  uint64_t size = 0;
  uint64_t offset = 0;  ///< in the segment; 0: they are zeros
  size_t entry = 0;     ///< that says it (segment_entries.h), of a segment that is written
};

class PieceMap {
 public:
  void Insert(uint64_t address, const LoggedPiece& piece) {
    Cut(address, address + piece.size);
    Put(address, piece);
  }

  /// The one that has just these bytes, or nullptr.
  LoggedPiece* Exact(uint64_t address, uint64_t size) {
    const auto it = pieces_.find(address);
    return it != pieces_.end() && it->second.size == size ? &it->second : nullptr;
  }

  /// `piece(begin, end, offset)` for what lies here of [begin, end), `gap(begin, end)` for the rest, in address order.
  template <typename OnPiece, typename OnGap>
  void Visit(uint64_t begin, uint64_t end, OnPiece piece, OnGap gap) const {
    auto it = pieces_.upper_bound(begin);
    if (it != pieces_.begin()) --it;
    for (; it != pieces_.end() && it->first < end; ++it) {
      const auto& [address, found] = *it;
      const uint64_t last = address + found.size;
      if (last <= begin) continue;
      if (begin < address) gap(begin, address);
      const uint64_t from = begin < address ? address : begin;
      const uint64_t to = last < end ? last : end;
      piece(from, to, found.offset == 0 ? 0 : found.offset + (from - address));
      begin = to;
    }
    if (begin < end) gap(begin, end);
  }

  bool empty() const { return pieces_.empty(); }
  size_t count() const { return pieces_.size(); }
  /// Bytes of the segment that are seen.
  uint64_t bytes() const { return bytes_; }

  /// `piece(address, logged)`, in address order.
  template <typename OnPiece>
  void VisitPieces(OnPiece piece) const {
    for (const auto& [address, logged] : pieces_) piece(address, logged);
  }
  /// `renumbered(entry)`: its new number.
  template <typename Renumbered>
  void Renumber(Renumbered renumbered) {
    for (auto& [address, piece] : pieces_) piece.entry = renumbered(piece.entry);
  }

 private:
  void Put(uint64_t address, const LoggedPiece& piece) {
    pieces_.emplace(address, piece);
    if (piece.offset != 0) bytes_ += piece.size;
  }
  void Cut(uint64_t begin, uint64_t end) {
    auto it = pieces_.upper_bound(begin);
    if (it != pieces_.begin() && std::prev(it)->first + std::prev(it)->second.size > begin) --it;
    while (it != pieces_.end() && it->first < end) {
      const uint64_t first = it->first;
      const LoggedPiece old = it->second;
      const uint64_t last = first + old.size;
      it = pieces_.erase(it);
      if (old.offset != 0) bytes_ -= old.size;
      if (first < begin) Put(first, {begin - first, old.offset, old.entry});
      if (end < last) {
        const uint64_t offset = old.offset == 0 ? 0 : old.offset + (end - first);
        Put(end, {last - end, offset, old.entry});
      }
    }
  }

  std::map<uint64_t, LoggedPiece> pieces_;
  uint64_t bytes_ = 0;
};

}  // namespace tidelane::log
