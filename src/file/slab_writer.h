/// \file
/// Fills slabs from the front: the copy of one write follows the copy of the one before, so that neighbouring writes
/// become one extent.
///
/// Small writes and large ones are kept apart: a row of a log that lay between two versions of a state would keep the memory of the
/// older one from being used again. What replaced bytes pin all the same is bounded (MoveTogether): bytes that are left are moved
/// together.
///
/// Invariant: the writer owns one reference to each slab it fills; space it hands out is never handed out twice while an
/// extent may lie in it.
/// Thread safety: none; guarded by the file's mutex.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "buffer/arena.h"

namespace tidelane {

class PendingMap;

class SlabWriter {
 public:
  /// Of what a file's slabs take, so much is never too much, beside kMostPinned times what is queued.
  static constexpr uint64_t kFreelyPinned = uint64_t{16} << 20;
  static constexpr uint64_t kMostPinned = 4;

  explicit SlabWriter(Arena& arena) : arena_(arena) {}
  ~SlabWriter() { DropAll(); }
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
    if (wanted < kLarge && !small_.full()) return TakeFrom(small_, wanted);
    return TakeAnew(wanted, address);
  }
  /// Fill `slab` (with its reference) next, with so large writes; false when it is nullptr.
  bool Use(Slab* slab, uint64_t wanted);

  /// When no extent lies in the slabs any more: start again at the front of small ones. Others, which another file may fill, and all of
  /// them with `give_back`, go back.
  void Recycle(bool give_back);

  /// Bytes of the slabs that this file's extents and this writer hold.
  uint64_t pinned_bytes() const { return pinned_->load(std::memory_order_relaxed); }
  /// To be called after each Take: whether slabs are pinned by too few bytes, although those of `pending` have been moved
  /// together. Then they had better be stored.
  bool PinsTooMuch(PendingMap& pending) {
    return std::exchange(acquired_, false) && !MoveTogether(pending);
  }

 private:
  static constexpr uint64_t kLarge = uint64_t{64} * 1024;
  static constexpr uint32_t kPage = 4096;
  static constexpr unsigned kFirstParts = 4;  // a file that writes little takes little

  struct Filling {
    Slab* slab = nullptr;
    uint32_t used = 0;

    bool full() const { return slab == nullptr || used >= slab->size; }  // or withdrawn at a fork
  };

  Space TakeFrom(Filling& filling, uint64_t wanted) {
    const uint64_t size = std::min<uint64_t>(wanted, filling.slab->size - filling.used);
    Space space{filling.slab->data + filling.used, size, filling.slab};
    filling.used += static_cast<uint32_t>(size);
    Arena::FaultIn(*filling.slab, filling.used);
    Arena::Ref(filling.slab);
    return space;
  }
  Space TakeAnew(uint64_t wanted, uint64_t address);
  Filling& FillingFor(uint64_t wanted) { return wanted >= kLarge ? large_ : small_; }
  Slab* Pin(Slab* slab);
  Slab* Acquire(uint64_t wanted);
  static bool Begin(Filling& filling, Slab* slab);
  static void Drop(Filling& filling) { Begin(filling, nullptr); }
  void DropAll();
  bool MoveTogether(PendingMap& pending);

  Arena& arena_;
  Filling small_, large_;
  unsigned parts_ = 0;     // acquired since everything was given back
  bool acquired_ = false;  // a slab, since PinsTooMuch looked
  const std::shared_ptr<std::atomic<uint64_t>> pinned_ = std::make_shared<std::atomic<uint64_t>>(0);
};

}  // namespace tidelane
