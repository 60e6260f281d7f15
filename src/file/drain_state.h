/// \file
/// How far a file's bytes are on their way to storage: the drain's steps, and which of them is the next one.
///
///   mark → extents → size → superblock → drained;  any → stuck
///
/// The *mark* is a first superblock that must be there before anything else. *Extents* are everything but the superblock, in
/// any order. Then storage gets its *size*, then the *superblock*, which tells that the rest is there. A file is *stuck* when nothing more can
/// be stored without a retry. Lanes store mark and extents at any time, in this order; size and superblock only while
/// somebody *wants* the file drained.
///
/// Invariant: the step is a function of what is pending, and of whether storage's size is being changed now; it goes back when the program writes.
/// Thread safety: none; guarded by the file's mutex.
#pragma once

#include <cstdint>
#include <utility>

#include "base/trace.h"
#include "extent/pending_map.h"

namespace tidelane {

enum class DrainStep : uint8_t { kDrained, kMark, kExtents, kSize, kSuperblock, kStuck };

class DrainState {
 public:
  /// Of the file, now.
  struct Facts {
    const PendingMap& pending;
    PendingMap::Order order;
    bool too_short;      ///< storage is shorter than the file
    bool extend_failed;  ///< making it longer was tried, and not again since
  };

  DrainStep StepOf(const Facts& facts) const {
    if (IsStuck(facts)) return DrainStep::kStuck;
    const PendingMap& pending = facts.pending;
    if (facts.order == PendingMap::Order::kSuperblockFirst && pending.SuperblockPending())
      return DrainStep::kMark;
    const bool last_is_flying =
        pending.InFlight(pending.superblock_begin(), pending.superblock_end());
    if (!pending.empty() && !pending.only_superblock() && !last_is_flying)
      return DrainStep::kExtents;
    if (resizing_ || facts.too_short) return DrainStep::kSize;
    return pending.empty() ? DrainStep::kDrained : DrainStep::kSuperblock;
  }
  bool IsDrained(const Facts& facts) const {
    return facts.pending.empty() && !resizing_ && !facts.too_short;
  }
  bool IsStuck(const Facts& facts) const {
    return !resizing_ && (facts.pending.stuck(facts.order) ||
                          (facts.extend_failed && facts.pending.only_superblock()));
  }

  /// Somebody waits for all of it, or will ask: until it is drained.
  void Want() { wanted_ = true; }
  bool wanted() const { return wanted_; }
  /// Whether a lane may make storage longer now, and then take the superblock.
  bool MayResize(const Facts& facts) const {
    return wanted_ && !resizing_ && !facts.extend_failed && facts.too_short &&
           facts.pending.only_superblock();
  }
  bool MayTakeSuperblock(const Facts& facts) const {
    return wanted_ && !facts.too_short && facts.pending.only_superblock();
  }
  /// Storage's size is being changed: no run may start.
  void SetResizing(bool resizing) { resizing_ = resizing; }
  bool resizing() const { return resizing_; }

  /// After each piece of work: the trace shows every step that is new. Whether it is drained.
  bool CameTo(const Facts& facts) {
    const bool drained = IsDrained(facts);
    if (drained) wanted_ = false;
    if (IsTracing()) {
      const DrainStep step = drained ? DrainStep::kDrained : StepOf(facts);
      if (std::exchange(seen_, step) != step)
        RecordMoment(SpanOf(step), facts.pending.queued_bytes());
    }
    return drained;
  }

 private:
  static constexpr SpanKind SpanOf(DrainStep step) {
    switch (step) {
      case DrainStep::kMark: return SpanKind::kDrainMark;
      case DrainStep::kExtents: return SpanKind::kDrainExtents;
      case DrainStep::kSize: return SpanKind::kDrainSize;
      case DrainStep::kSuperblock: return SpanKind::kDrainSuperblock;
      case DrainStep::kStuck: return SpanKind::kDrainStuck;
      case DrainStep::kDrained: break;
    }
    return SpanKind::kDrained;
  }

  bool wanted_ = false;
  bool resizing_ = false;
  DrainStep seen_ = DrainStep::kDrained;
};

}  // namespace tidelane
