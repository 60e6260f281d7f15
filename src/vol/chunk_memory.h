/// \file
/// Memory for chunks on their way through their filters: how much they have, and buffers kept for the next ones (fresh
/// pages cost more than the copy).
///
/// Invariant: chunks and kept buffers stay within a quarter of the arena's cap, as long as whoever takes more makes room.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidelane::vol {

class ChunkMemory {
 public:
  /// What chunks may have together.
  static uint64_t Most();

  /// Whether there is room for `charge` bytes more. Kept buffers go where that makes it.
  bool HasRoom(uint64_t charge);
  void Charge(uint64_t bytes) { charged_ += bytes; }
  /// A chunk is done with: its buffer is kept for another one.
  void Release(uint64_t charge, std::vector<std::byte> bytes);

  /// May throw std::bad_alloc; so may Reserve, after which Release does not allocate.
  std::vector<std::byte> Buffer(size_t size);
  /// One of that size that was kept; empty: there was none.
  std::vector<std::byte> Spare(size_t size);
  void Reserve();
  void DropSpare();

 private:
  uint64_t charged_ = 0;  // bytes of memory that chunks have
  uint64_t spare_bytes_ = 0;
  std::vector<std::vector<std::byte>> spare_;
};

}  // namespace tidelane::vol
