/// \file
/// Where a file's superblock lies, and when it is stored: before everything else or after everything else.
///
/// SuperblockPlace is the program's side's: what a write overlaps it knows without a lock. SuperblockOrder is what lanes
/// follow.
///
/// It also knows what others can know of the file: nothing beyond the end that a superblock on storage tells.
///
/// Invariant: the order is kSuperblockFirst from the first superblock write of a session that must be on storage before anything
/// else until that is stored; then it is kSuperblockLast.
/// Thread safety: SuperblockPlace belongs to the program's side (one caller at a time); SuperblockOrder has none, and is
/// guarded by the file's mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "extent/pending_map.h"

namespace tidelane {

class SuperblockPlace {
 public:
  /// `has_signature`: storage begins as an HDF5 file does, or is empty and will be asked to.
  explicit SuperblockPlace(bool has_signature) : has_signature_(has_signature) {}

  void SetBase(uint64_t base) { base_ = base; }
  uint64_t base() const { return base_; }
  /// Whether a write of [address, address + size) may hold a superblock.
  bool MayBeIn(uint64_t address, uint64_t size) const {
    return address <= base_ && base_ < address + size;
  }
  void Found(uint64_t length) {
    begin_ = base_;
    end_ = base_ + length;
  }
  bool known() const { return end_ != 0; }
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  bool Is(uint64_t address, uint64_t size) const {
    return address == begin_ && address + size == end_;
  }
  bool Holds(uint64_t address) const { return begin_ <= address && address < end_; }
  bool IsApartFrom(uint64_t address, uint64_t size) const {
    return address + size <= begin_ || end_ <= address;
  }

  /// Whether storage has no signature yet; from now on it has.
  bool LacksSignature() { return known() && !std::exchange(has_signature_, true); }

 private:
  uint64_t base_ = 0;   // HDF5's base address: the size of the user block
  uint64_t begin_ = 0;  // as the pending map's superblock range
  uint64_t end_ = 0;
  bool has_signature_;
};

class SuperblockOrder {
 public:
  /// `size`: the file's, when it was opened.
  explicit SuperblockOrder(uint64_t size) : known_end_(size), told_end_(size) {}

  /// A superblock was written, which tells that the file ends at `end`. `must_be_first`: it is the mark of who writes the file,
  /// and nothing else tells that.
  void Written(bool must_be_first, uint64_t end) {
    if (!captured_any_ && must_be_first) order_ = PendingMap::Order::kSuperblockFirst;
    told_end_ = std::max(told_end_, end);
  }
  /// Storage is about to have it.
  void Storing() { known_end_ = told_end_; }
  /// Superblocks went to storage that were not looked at.
  void StoredUnseen() { known_end_ = told_end_ = UINT64_MAX; }
  /// Of space from here on no other program can know.
  uint64_t unknown_to_others() const { return known_end_; }
  /// Bytes of this session are pending, or stored.
  void Captured() { captured_any_ = true; }
  /// Storage looks closed, and the file is opened again: its next superblock marks it as in a file opened anew.
  void LooksClosed() { captured_any_ = false; }
  /// The first superblock is stored.
  void FirstStored() { order_ = PendingMap::Order::kSuperblockLast; }
  bool first() const { return order_ == PendingMap::Order::kSuperblockFirst; }
  PendingMap::Order order() const { return order_; }

 private:
  PendingMap::Order order_ = PendingMap::Order::kSuperblockLast;
  bool captured_any_ = false;
  uint64_t known_end_;  // what superblocks on storage tell at most
  uint64_t told_end_;   // and those that were written
};

}  // namespace tidelane
