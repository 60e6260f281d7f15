/// \file
/// Slabs in parts, for files that have little to say: a thousand open files with a slab of 1 MiB each would take a gigabyte for
/// what fits into 64 MiB.
///
/// A part is a slab like any other one to who holds it, and may be cut into parts in its turn. The slab that it is a part of goes
/// back to where it came from with its last part.
///
/// Invariant: slabs with a free part are in front of those without.
/// Thread safety: all functions may be called from any thread. The lock comes before the arena's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>

#include "base/annotations.h"
#include "buffer/slab.h"

namespace tidelane {

class SlabParts {
 public:
  static constexpr size_t kParts = 16;  // of a slab

  /// Of slabs of `slab_size` bytes, which `acquire` gives with a reference (or nullptr) and `unref` takes back.
  SlabParts(uint32_t slab_size, std::function<Slab*()> acquire, void (*unref)(Slab*))
      : part_size_(slab_size / uint32_t{kParts}), acquire_(std::move(acquire)), unref_(unref) {}
  SlabParts(const SlabParts&) = delete;
  SlabParts& operator=(const SlabParts&) = delete;

  uint32_t part_size() const { return part_size_; }
  /// A part with one reference, or nullptr when the arena has no slab left.
  Slab* TryAcquire() TL_EXCLUDES(mutex_);
  /// Its last reference is gone; Arena::Unref.
  static void Release(Slab* part);

  void LockForFork() TL_ACQUIRE(mutex_) { mutex_.lock(); }
  void UnlockAfterFork() TL_RELEASE(mutex_) { mutex_.unlock(); }
  /// Where a fork takes the arena's memory: parts are empty and nobody's. With the lock held.
  void Withdraw() TL_REQUIRES(mutex_);

 private:
  struct Divided;
  struct Part : Slab {
    Divided* of = nullptr;
  };
  struct Divided {
    SlabParts* owner = nullptr;
    Slab* whole = nullptr;
    Slab* free = nullptr;
    size_t used = 0;
    std::list<Divided>::iterator place;
    std::array<Part, kParts> parts;
  };

  bool DivideOne() TL_REQUIRES(mutex_);
  void Return(Part& part) TL_EXCLUDES(mutex_);

  const uint32_t part_size_;
  const std::function<Slab*()> acquire_;
  void (*const unref_)(Slab*);
  Mutex mutex_;
  std::list<Divided> divided_ TL_GUARDED_BY(mutex_);
  std::list<Divided> withdrawn_ TL_GUARDED_BY(mutex_);  // who holds a part still looks at it
};

}  // namespace tidelane
