/// \file
/// A slab: memory that captured bytes lie in, counted by who holds it. Mostly of an arena (buffer/arena.h) or a part of one of its
/// slabs (buffer/slab_parts.h); also memory outside it (buffer/loan.h).
///
/// Invariant: it is handed out again only when its last reference is gone.
/// Thread safety: references may be taken and dropped on any thread; all else belongs to who fills it, or to the list it is in.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tidelane {

class Arena;
class SlabParts;
struct Slab;

/// Where slabs outside the arena come from and go back to.
class SlabOwner {
 public:
  virtual ~SlabOwner() = default;
  /// The last reference has gone.
  virtual void Release(Slab* slab) = 0;
};

struct Slab {
  /// Of the arena, or a part of such a one, or outside it: a loan, a copy, another owner's, or what a fork took.
  enum class Kind : uint8_t { kArena, kPart, kLent, kKept, kOwned, kWithdrawn };

  std::byte* data = nullptr;
  uint32_t size = 0;
  uint32_t faulted = 0;  ///< so far; whoever fills it calls Arena::FaultIn before going further
  Kind kind = Kind::kArena;
  std::atomic<uint32_t> references{0};
  Arena* arena = nullptr;
  SlabOwner* owner = nullptr;
  Slab* next_free = nullptr;
  uint64_t freed_ns = 0;  ///< since when it has been free; 0: it has not been in use
  /// Where its size counts while it is referenced, if it does; who acquired it sets this.
  std::shared_ptr<std::atomic<uint64_t>> pinned_by;
};

/// It does not count any more where it did.
inline void Unpin(Slab& slab) {
  if (slab.pinned_by == nullptr) return;
  slab.pinned_by->fetch_sub(slab.size, std::memory_order_relaxed);
  slab.pinned_by.reset();
}

}  // namespace tidelane
