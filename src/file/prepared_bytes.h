/// \file
/// Bytes that lanes have prepared for a file, in memory that extents may hold on to: what becomes of them there is no copy.
///
/// Few of them are copied all the same: they would keep more memory than they are.
///
/// Invariant: they do not change once they are there, and stay where they are for as long as this, or an extent, has them. In a
/// forked child they are a copy, as its whole heap is.
/// Thread safety: Set by one thread, before others look; all else belongs to who holds this.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/raw_bytes.h"
#include "file/held_bytes.h"

namespace tidelane {

class PreparedBytes final : public HeldBytes {
 public:
  /// Of fewer no extent holds the memory.
  static constexpr size_t kLeastHeld = size_t{16} << 10;

  PreparedBytes() = default;
  ~PreparedBytes() override;
  PreparedBytes(const PreparedBytes&) = delete;
  PreparedBytes& operator=(const PreparedBytes&) = delete;

  /// Once. They are copied by who writes them, too, where there is no memory for the book-keeping.
  void Set(RawBytes bytes);
  const std::byte* data() const;
  /// Whether extents hold the memory. From now on it counts in `bytes`, for as long as one does.
  bool CountHeld(const std::shared_ptr<std::atomic<uint64_t>>& bytes);

  uint64_t size() const override { return size_; }
  uint64_t PieceAt(const void* /*bytes*/, uint64_t size) const override { return size; }
  Status Await(const void* /*bytes*/, uint64_t /*size*/) override { return {}; }
  bool AwaitAll() override { return true; }
  uint64_t TakeCopyNs() override { return 0; }
  Slab* SlabOf(const void* bytes, uint64_t size) const override;

 private:
  RawBytes own_;  // what no slab has
  Slab* slab_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tidelane
