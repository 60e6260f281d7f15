/// \file
/// The memory that captured bytes wait in: a capped pool of equal slabs, recycled, never malloc'ed
/// per write. Where it comes from is a SlabMemory's matter.
///
/// Memory is taken in steps (regions of 2 MiB-aligned, huge-page-advised, pre-faulted address
/// space), not at start. Address space is kept until process exit. Pages are kept as long as a program that goes on as it did may need
/// them, because a fresh page costs more to fault in than to write through (hdf5-facts, Buffers); then they go back (Trim). A
/// slab is owned by whoever holds a reference: the file that is filling it and every extent that lies in it.
///
/// At fork a child has what its memory's rule says (buffer/slab_memory.h). Of memory that is withdrawn there the child's
/// slabs are empty (`data` is nullptr, `size` 0), as if they were full for who fills them; who holds one has lost
/// the bytes in it, and must not store anything from there.
///
/// Invariant: bytes handed out never exceed the cap; a slab returns to the pool when its last
/// reference goes.
///
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/annotations.h"
#include "buffer/free_slabs.h"
#include "buffer/slab.h"
#include "buffer/slab_memory.h"
#include "buffer/slab_parts.h"

namespace tidelane {

class Arena {
 public:
  /// `cap` bytes at most. The slab size follows from it: a 32nd of the cap, rounded down to a power
  /// of two, within [64 KiB, 1 MiB]: a small arena must not be pinned by a few half-empty slabs. A
  /// cap below one slab becomes four. `memory` outlives the arena.
  explicit Arena(uint64_t cap, SlabMemory& memory = PrivateMemory::Get());
  ~Arena();  // releases; only tests destroy an arena
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  uint32_t slab_size() const { return slab_size_; }
  uint64_t cap() const { return cap_; }
  /// Bytes of slabs now handed out.
  uint64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }

  /// A slab with one reference, or nullptr when the cap is reached (or the system refuses memory).
  Slab* TryAcquire() TL_EXCLUDES(mutex_);
  /// Parts of slabs, for who needs little.
  SlabParts& parts() { return parts_; }
  /// Parts of parts, for files of which next to nothing is known.
  SlabParts& crumbs() { return crumbs_; }
  /// As TryAcquire, but waits for a slab until `deadline`.
  Slab* AcquireUntil(std::chrono::steady_clock::time_point deadline) TL_EXCLUDES(mutex_);

  /// Faults in at least the first `size` bytes of `slab`, which the caller fills.
  static void FaultIn(Slab& slab, uint32_t size) {
    if (slab.faulted < size) FaultMore(slab, size);
  }

  static void Ref(Slab* slab) { slab->references.fetch_add(1, std::memory_order_relaxed); }
  /// Drops one reference; the last one returns the slab and wakes a waiter.
  static void Unref(Slab* slab);

  /// So much may be wanted soon, as far as can be told: GrowAhead gets it ready.
  void Expect(uint64_t bytes) { expected_.store(bytes, std::memory_order_relaxed); }

  /// Maps and pre-faults one more step if more than half of what is mapped is in use, or less than
  /// expected is mapped; called by lanes when idle, so that the program's own writes find faulted pages. Returns false when there
  /// was nothing to do.
  bool GrowAhead() TL_EXCLUDES(mutex_);

  /// Gives the pages of slabs back to the system that nobody has needed for so long that nobody is about to: ten seconds, or four
  /// times as long as such pages were found to be needed again after, a minute at most (fresh pages then cost a thousandth of the
  /// time); a fifth of a second where memory is scarce. After how long it is worth calling again; max(): not before more slabs have been free. Called by idle lanes.
  std::chrono::nanoseconds Trim(uint64_t now_ns) TL_EXCLUDES(mutex_);

  /// fork: hold the lock across it, so that the child's arena is consistent.
  /// UnlockAfterFork is called in parent and child alike.
  void LockForFork() TL_NO_ANALYSIS;
  void UnlockAfterFork() TL_NO_ANALYSIS;

 private:
  struct Region {
    std::byte* base;  // nullptr: a fork took it
    size_t size;
    Slab* slabs;
    Region* next;
  };

  /// Lets go of the mutex while it maps and faults in; only one thread does so at a time
  /// (`mapping_`).
  bool Grow(bool ahead) TL_REQUIRES(mutex_);
  bool WarmSome() TL_REQUIRES(mutex_);
  void BeginMapping() TL_RELEASE(mutex_);
  void EndMapping() TL_ACQUIRE(mutex_);
  void NoteNeeded(Slab* slab, uint64_t now_ns) TL_REQUIRES(mutex_);
  Region* MakeRegion(uint64_t size, bool& faulted);
  void AddRegion(Region* region, bool faulted) TL_REQUIRES(mutex_);
  Slab* Pop() TL_REQUIRES(mutex_);
  Slab* PopOrGrow() TL_REQUIRES(mutex_);
  void Release(Slab* slab) TL_EXCLUDES(mutex_);
  void Withdraw() TL_REQUIRES(mutex_);
  static void EndOutside(Slab* slab);
  static void FaultMore(Slab& slab, uint32_t size);

  const uint64_t cap_;
  const uint32_t slab_size_;
  SlabMemory& memory_;
  std::atomic<uint64_t> in_use_{0};
  std::atomic<uint64_t> expected_{0};
  Mutex mutex_;
  Condition freed_;
  FreeSlabs free_ TL_GUARDED_BY(mutex_);
  uint64_t kept_ns_ TL_GUARDED_BY(mutex_);  // so long pages are kept that nobody needs
  uint64_t mapped_ TL_GUARDED_BY(mutex_) = 0;
  bool mapping_ TL_GUARDED_BY(mutex_) = false;
  bool taken_ TL_GUARDED_BY(mutex_) = false;  // a slab, since idle lanes have looked
  Region* regions_ TL_GUARDED_BY(mutex_) = nullptr;
  pid_t fork_parent_ TL_GUARDED_BY(mutex_) = 0;
  SlabParts parts_;
  SlabParts crumbs_;
};

}  // namespace tidelane
