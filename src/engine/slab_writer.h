/// \file
/// Fills slabs from the front: the copy of one write follows the copy of the one before, so that neighbouring writes
/// become one extent.
///
/// Invariant: the writer owns one reference to the slab it fills; space it hands out is never handed out twice while an
/// extent may lie in it.
/// Thread safety: none; guarded by the file's mutex.
#pragma once

#include <algorithm>
#include <cstdint>

#include "buffer/arena.h"

namespace tidelane {

class SlabWriter {
 public:
  explicit SlabWriter(Arena& arena) : arena_(arena) {}
  ~SlabWriter() { Drop(); }
  SlabWriter(const SlabWriter&) = delete;
  SlabWriter& operator=(const SlabWriter&) = delete;

  struct Space {
    std::byte* data = nullptr;  ///< nullptr: the arena is full
    uint64_t size = 0;
    Slab* slab = nullptr;  ///< with a reference for the extent to be
  };

  /// Up to `wanted` bytes for `address`, in one piece; less where a slab ends. Large pieces lie in their pages as they
  /// will in the file, so that a request never touches one page more than it must (FUSE would split it).
  Space Take(uint64_t wanted, uint64_t address) {
    if (slab_ != nullptr && used_ >= slab_->size) Drop();  // full, or withdrawn at a fork
    if (slab_ == nullptr && !Use(arena_.TryAcquire())) return {};
    if (wanted >= kLarge) {
      const auto shift = static_cast<uint32_t>((address - used_) % kPage);
      if (used_ + shift >= slab_->size) {
        if (!Use(arena_.TryAcquire())) return {};
        used_ = static_cast<uint32_t>(address % kPage);
      } else {
        used_ += shift;
      }
    }
    const uint64_t size = std::min<uint64_t>(wanted, slab_->size - used_);
    Space space{slab_->data + used_, size, slab_};
    used_ += static_cast<uint32_t>(size);
    Arena::FaultIn(*slab_, used_);
    Arena::Ref(slab_);
    return space;
  }

  /// Fill `slab` (with its reference) next; false when it is nullptr.
  bool Use(Slab* slab) {
    if (slab == nullptr) return false;
    Drop();
    slab_ = slab;
    used_ = 0;
    return true;
  }

  /// When no extent lies in the slab any more: start again at its front, or give it back.
  void Recycle(bool give_back) {
    if (slab_ == nullptr || slab_->references.load(std::memory_order_acquire) != 1) return;
    used_ = 0;
    if (give_back) Drop();
  }

 private:
  static constexpr uint64_t kLarge = uint64_t{64} * 1024;
  static constexpr uint32_t kPage = 4096;

  void Drop() {
    if (slab_ != nullptr) Arena::Unref(slab_);
    slab_ = nullptr;
  }

  Arena& arena_;
  Slab* slab_ = nullptr;
  uint32_t used_ = 0;
};

}  // namespace tidelane
