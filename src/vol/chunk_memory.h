/// \file
/// Memory for chunks on their way through their filters: how much they have, and buffers kept for the next ones (fresh
/// pages cost more than the copy). What a filter made is lent to the file that it is inserted into, whose extents hold it until it is
/// stored (file/prepared_bytes.h).
///
/// Invariant: chunks, what is lent of them and kept buffers stay within a quarter of the arena's cap, as long as whoever takes more
/// makes room. Nobody waits for what is lent: it is half of that at most, and leaves room for the largest chunk that was asked for;
/// more is copied into the arena, which has its own ways to make room.
///
/// Thread safety: used inside callbacks, under HDF5's lock; lanes only take from what is lent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/raw_bytes.h"
#include "file/prepared_bytes.h"

namespace tidelane::vol {

class ChunkMemory {
 public:
  /// What chunks may have together.
  static uint64_t Most();

  /// Whether there is room for `charge` bytes more. Kept buffers go where that makes it.
  bool HasRoom(uint64_t charge);
  void Charge(uint64_t bytes) { charged_ += bytes; }
  /// A chunk is done with: its buffer is kept for another one.
  void Release(uint64_t charge, RawBytes bytes);
  /// Whether so many bytes may be lent to a file.
  bool MayLend(uint64_t bytes) const;
  /// Its chunk is about to be released: what a file holds counts for itself from now on.
  void CountLent(PreparedBytes& stored) { stored.CountHeld(lent_); }
  uint64_t lent() const { return lent_->load(std::memory_order_relaxed); }

  /// May throw std::bad_alloc; so may Reserve, after which Release does not allocate.
  RawBytes Buffer(size_t size);
  /// One of that size that was kept; empty: there was none.
  RawBytes Spare(size_t size);
  void Reserve();
  void DropSpare();

 private:
  uint64_t charged_ = 0;  // bytes of memory that chunks have
  uint64_t largest_ = 0;  // that was asked for
  uint64_t spare_bytes_ = 0;
  std::vector<RawBytes> spare_;
  const std::shared_ptr<std::atomic<uint64_t>> lent_ = std::make_shared<std::atomic<uint64_t>>(0);
};

}  // namespace tidelane::vol
