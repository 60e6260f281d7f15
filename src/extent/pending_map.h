/// \file
/// What a file's storage does not have yet: extents by address, newest bytes on top, and what is on its way.
///
/// Two layers. *Queued* extents never overlap one another: a new write cuts what it replaces, so every byte is stored
/// once, in its newest version. *In-flight* runs are being written by lanes. A read looks in the queue first, then in
/// flight, then on storage. A queued extent that overlaps a run in flight waits for it (same-byte order), and so does a
/// gap that a run would fill.
///
/// Some bytes have an order of their own: the *superblock's range* is stored either before everything else or
/// after everything else; see Order.
///
/// Invariants: queued extents are disjoint; runs in flight are disjoint; every extent counts in its epoch.
/// Thread safety: none; guarded by the file's mutex.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "extent/epochs.h"
#include "extent/extent.h"

namespace tidelane {

/// How runs are formed.
struct RunLimits {
  /// Longest run. Runs end at multiples of it: whole stripes for a parallel file system, whole pages for any.
  uint64_t bytes = 1u << 20;
  uint64_t gap = 0;  ///< largest gap to fill, 0: none
  /// Gaps from here on are filled whatever lies there: nobody else knows of that space yet. Before it only inside one place
  /// (Extent::place), as HDF5's sieve does: a writer past our lock loses no other object for it.
  uint64_t unknown_to_others = UINT64_MAX;
  /// Pieces between gaps that are so long, on average, are requests of their own.
  uint64_t long_piece = UINT64_MAX;
};

class PendingMap {
 public:
  /// What TakeRun may take of the superblock's range.
  enum class Order { kSuperblockFirst, kSuperblockLast };

  ~PendingMap();

  /// Adds [address, address + size) with one slab reference, which the map now owns. Replaces what was queued there.
  /// Without memory (std::bad_alloc) nothing is added and the reference dropped; what was to be replaced may be gone.
  void Insert(const Extent& extent);
  /// Forgets queued bytes in [begin, end): the caller writes them itself, or the file ends before them.
  void CutRange(uint64_t begin, uint64_t end) { Cut(begin, end, 0); }

  /// Splits [address, address + size) into pieces in address order; the caller drops the slab references, also when there
  /// was no memory for all of them (std::bad_alloc).
  void Overlay(uint64_t address, uint64_t size, std::vector<Piece>& pieces) const;

  /// Takes the next run in address order, from where the last one ended. False when nothing can be taken now. Without
  /// memory (std::bad_alloc) everything stays queued.
  bool TakeRun(const RunLimits& limits, Order order, bool rest_is_done, Run& run);
  /// The run is stored: drops its extents.
  void Complete(const Run& run);
  /// It is not: its extents return to the queue, marked, unless newer bytes have replaced them.
  /// How many bytes are gone because there was no memory for what newer bytes had cut them into; mostly none.
  uint64_t Fail(Run& run, const Status& status);
  /// Marks everything that is queued as if it had failed: there is no memory to store it with.
  void FailQueued(const Status& status);
  /// Marked extents may be taken again.
  void RetryFailed();

  /// Copies queued bytes that lie in memory of this kind (lent buffers, staging memory), so that it may go. How many bytes no memory
  /// could be had for: they are gone from the queue, and their epochs have failed with `status`.
  uint64_t Keep(Slab::Kind kind, const Status& status);
  /// Memory for bytes to move to; without data: there is none. With a reference.
  struct Place {
    std::byte* data = nullptr;
    Slab* slab = nullptr;
  };
  /// Copies queued bytes that lie in the arena to where `place` (of a size and an address) says, so that slabs of which
  /// newer bytes have replaced the rest may be used again. How many bytes it moved before there was no more memory.
  uint64_t MoveTogether(const std::function<Place(uint64_t, uint64_t)>& place);
  /// Whether a lane is storing lent bytes now.
  bool LentInFlight() const;

  /// Registers a write that the caller does itself, so that no gap is filled over it; end with Complete(run).
  void BeginDirect(const Run& run) { in_flight_.push_back(&run); }
  /// Whether a run in flight overlaps [begin, end).
  bool InFlight(uint64_t begin, uint64_t end) const;
  /// Whether a queued extent does.
  bool Queued(uint64_t begin, uint64_t end) const;
  /// Whether anything here does.
  bool Touches(uint64_t begin, uint64_t end) const {
    return InFlight(begin, end) || Queued(begin, end);
  }

  /// Where the superblock's range is from now on; later inserts must not cross its ends.
  void SetSuperblock(uint64_t begin, uint64_t end);
  uint64_t superblock_begin() const { return superblock_begin_; }
  uint64_t superblock_end() const { return superblock_end_; }

  uint64_t queued_bytes() const { return queued_bytes_; }
  /// How many queued bytes were replaced by newer ones before they were taken; runs taken since count against it.
  uint64_t replaced_bytes() const { return replaced_bytes_; }
  size_t queued_extents() const { return queued_.size(); }
  size_t failed_extents() const { return failed_; }
  bool in_flight() const { return !in_flight_.empty(); }
  /// Queued extents that a lane may take before the drain's last step: neither marked nor in the superblock's range.
  size_t ordinary() const { return queued_.size() - failed_ - SuperblockQueued(); }
  /// Only the superblock's range is left, and nothing failed: the drain's last step may begin.
  bool only_superblock() const { return in_flight_.empty() && failed_ == 0 && ordinary() == 0; }
  /// Nothing more can be stored without a retry.
  bool stuck(Order order) const;
  /// Whether bytes of the superblock's range are not stored yet.
  bool SuperblockPending() const;
  bool empty() const { return queued_.empty() && in_flight_.empty(); }

  Epochs& epochs() { return epochs_; }
  const Epochs& epochs() const { return epochs_; }

 private:
  using Map = std::map<uint64_t, Extent>;

  bool Extend(Map::iterator it, const Extent& extent);
  void InsertCounted(const Extent& extent);
  Map::iterator FirstFrom(uint64_t address);
  void Cut(uint64_t begin, uint64_t end, uint64_t newer_epoch);
  Map::iterator Erase(Map::iterator it);
  Map::iterator EraseNode(Map::iterator it);
  bool Return(Run& run, const Extent& piece);
  bool IsSuperblock(const Extent& extent) const {
    return extent.address < superblock_end_ && superblock_begin_ < extent.end();
  }
  bool Takeable(const Extent& extent, Order order, bool rest_is_done) const;
  size_t SuperblockQueued() const;
  void SplitQueued(uint64_t at);
  void Grow(Map::iterator it, const RunLimits& limits, Order order, bool rest_is_done, Run& run);
  void Split(uint64_t at, Run& run);
  void OverlayFlight(uint64_t begin, uint64_t end, std::vector<Piece>& pieces) const;

  Map queued_;
  Map::iterator newest_ = queued_.end();  // where the last insert went
  std::vector<const Run*> in_flight_;
  Epochs epochs_;
  uint64_t queued_bytes_ = 0;
  uint64_t replaced_bytes_ = 0;
  size_t failed_ = 0;
  uint64_t cursor_ = 0;
  uint64_t superblock_begin_ = 0;
  uint64_t superblock_end_ = 0;
};

}  // namespace tidelane
