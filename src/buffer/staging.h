/// \file
/// Memory that GPUs copy to and from: pieces of one reserved range, each in one piece as HDF5 wants it, pinned where the GPU's
/// driver can do so (a Pinner), kept for the next ones.
///
/// Pages are taken and pinned a granule (32 MiB) at a time, when a piece first lies there, and stay: pinning a page costs more than
/// copying it. The range is kept out of children (MADV_DONTFORK): a device works on these pages, so that a child's copy on write
/// could take them away from it, and the registration does not hold there.
///
/// Invariants: pieces are disjoint; together they never exceed the cap; a piece returns when its last reference goes, and is not
/// unmapped or unpinned before the process ends. After a fork the child's memory is empty, and what was handed out is withdrawn.
///
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/annotations.h"
#include "buffer/slab.h"

namespace tidelane {

/// Has pages stay where they are, for a device. 0, or an error of the device's driver: then they are used as they are.
class Pinner {
 public:
  virtual ~Pinner() = default;
  virtual int Pin(std::byte* begin, uint64_t size) = 0;
};

class StagingMemory final : public SlabOwner {
 public:
  static constexpr uint64_t kUnit = uint64_t{64} << 10;
  static constexpr uint64_t kGranule = uint64_t{32} << 20;

  /// At most `cap` bytes, rounded up to whole granules.
  explicit StagingMemory(uint64_t cap);
  ~StagingMemory() override;  // only tests destroy one
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;

  uint64_t cap() const { return cap_; }
  uint64_t in_use() const TL_EXCLUDES(mutex_);
  /// Bytes whose pages are pinned.
  uint64_t pinned() const TL_EXCLUDES(mutex_);

  /// `size` bytes (not 0) with one reference; nullptr: there is no room, or no memory. The device's context is current.
  Slab* TryAcquire(uint64_t size, Pinner& pinner) TL_EXCLUDES(mutex_);
  /// Waits until a piece has come back, or until `deadline`.
  void AwaitReturn(std::chrono::steady_clock::time_point deadline) TL_EXCLUDES(mutex_);

  void Release(Slab* slab) override TL_EXCLUDES(mutex_);

  /// fork: hold the lock across it.
  void LockForFork() TL_NO_ANALYSIS { mutex_.lock(); }
  void UnlockAfterFork(bool child) TL_NO_ANALYSIS;

 private:
  enum class Pages : uint8_t { kNone, kPlain, kPinned };
  struct Piece {
    uint64_t size;
    Slab* slab;  // nullptr: free
  };
  using Pieces = std::map<uint64_t, Piece>;  // by where they begin in the range

  bool Reserve() TL_REQUIRES(mutex_);
  bool Populate(uint64_t begin, uint64_t end, Pinner& pinner) TL_REQUIRES(mutex_);
  void GiveBack(uint64_t at) TL_REQUIRES(mutex_);
  void Empty() TL_REQUIRES(mutex_);

  const uint64_t cap_;
  mutable Mutex mutex_;
  Condition returned_;
  std::byte* base_ TL_GUARDED_BY(mutex_) = nullptr;
  std::vector<Pages> granules_ TL_GUARDED_BY(mutex_);
  Pieces free_ TL_GUARDED_BY(mutex_);
  Pieces used_ TL_GUARDED_BY(mutex_);
  uint64_t in_use_ TL_GUARDED_BY(mutex_) = 0;
  uint64_t returns_ TL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tidelane
