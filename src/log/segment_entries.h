/// \file
/// What the commits of one segment say, and what the next one is to say.
///
/// Invariant: an entry of which the segment's pieces show a byte is there.
/// Thread safety: none; guarded by whoever holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "log/format.h"
#include "log/piece_map.h"

namespace tidelane::log {

class SegmentEntries {
 public:
  /// Since the last commit.
  std::span<const CommitEntry> fresh() const { return std::span(entries_).subspan(committed_); }

  /// Another program has committed these; pieces have their numbers.
  void GoOn(std::vector<CommitEntry> committed) {
    entries_ = std::move(committed);
    committed_ = entries_.size();
  }
  void Add(const CommitEntry& entry, PieceMap& pieces) {
    entries_.push_back(entry);
    pieces.Insert(entry.address,
                  {.size = entry.size, .offset = entry.offset, .entry = entries_.size() - 1});
  }
  /// An entry of just these bytes that no commit has yet: its place can be written again. Or nullptr.
  CommitEntry* FreshAt(uint64_t address, uint64_t size, PieceMap& pieces) {
    const LoggedPiece* const piece = pieces.Exact(address, size);
    if (piece == nullptr || piece->offset == 0 || piece->entry < committed_) return nullptr;
    CommitEntry& entry = entries_[piece->entry];
    return entry.offset == piece->offset && entry.size == size ? &entry : nullptr;
  }
  void Committed() { committed_ = entries_.size(); }

  /// What they say without those since the last commit.
  PieceMap CommittedPieces() const {
    PieceMap pieces;
    for (size_t i = 0; i < committed_; ++i) {
      const CommitEntry& entry = entries_[i];
      pieces.Insert(entry.address, {.size = entry.size, .offset = entry.offset, .entry = i});
    }
    return pieces;
  }
  /// Of `pieces`, those that are newer.
  PieceMap FreshPieces(const PieceMap& pieces) const {
    PieceMap fresh;
    pieces.VisitPieces([&](uint64_t address, const LoggedPiece& piece) {
      if (piece.entry >= committed_) fresh.Insert(address, piece);
    });
    return fresh;
  }

  /// Those of which something is seen, in their order.
  std::vector<CommitEntry> Seen(const PieceMap& pieces) const {
    std::vector<CommitEntry> seen;
    const std::vector<bool> is_seen = Marked(pieces);
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (is_seen[i]) seen.push_back(entries_[i]);
    }
    return seen;
  }
  /// Of `taken` bytes of the segment: those that no commit shows any more, and that were seen when the others were last forgotten. What
  /// could not be freed then, because it shares an entry or a sector with what is seen, cannot be freed now.
  uint64_t Hidden(const PieceMap& pieces, uint64_t taken) const {
    return taken - pieces.bytes() - unusable_;
  }
  /// The others are forgotten; so many bytes are still taken.
  void KeepSeen(PieceMap& pieces, uint64_t taken) {
    const std::vector<bool> is_seen = Marked(pieces);
    std::vector<size_t> place(entries_.size());
    size_t kept = 0;
    size_t committed = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (i == committed_) committed = kept;
      if (!is_seen[i]) continue;
      entries_[kept] = entries_[i];
      place[i] = kept++;
    }
    committed_ = committed_ == entries_.size() ? kept : committed;
    entries_.resize(kept);
    pieces.Renumber([&](size_t entry) { return place[entry]; });
    unusable_ = taken - pieces.bytes();
  }

 private:
  std::vector<bool> Marked(const PieceMap& pieces) const {
    std::vector<bool> is_seen(entries_.size());
    pieces.VisitPieces([&](uint64_t, const LoggedPiece& piece) { is_seen[piece.entry] = true; });
    return is_seen;
  }

  std::vector<CommitEntry> entries_;  // the committed ones first
  size_t committed_ = 0;
  uint64_t unusable_ = 0;  // bytes
};

}  // namespace tidelane::log
