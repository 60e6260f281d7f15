/// \file
/// When queued bytes are worth storing: at once, after lingering for neighbours, or when somebody waits for them.
///
/// A function of the backlog and of time: it stores nothing and schedules nothing; the Drainer does what it says.
///
/// Invariant: what has lingered long enough (a *sweep*) goes out, as far as it was queued then, whatever comes after it.
/// Thread safety: none; guarded by the file's mutex.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "extent/pending_map.h"

namespace tidelane {

/// How a file's bytes wait, by its settings and its kind.
struct LingerTerms {
  uint64_t linger_us = 0;    ///< of the process
  uint64_t delay_us = 0;     ///< asked for by the program; 0: none
  bool paused = false;       ///< nothing is stored until somebody wants it
  bool others_wait = false;  ///< other ranks may
};

class FlushPlanner {
 public:
  using Clock = std::chrono::steady_clock;

  /// Scattered bytes written at once cost a request each, and bytes that keep being replaced one every time: both lose nothing
  /// by waiting. A flush, a close, a request or a full arena ends it.
  static bool Patient(const PendingMap& pending) {
    const uint64_t bytes = pending.queued_bytes();
    const size_t extents = pending.queued_extents();
    return extents > 1 && (bytes / extents < kScatteredMean || pending.replaced_bytes() > bytes);
  }
  /// Whether a program that stores what it gathers by itself has enough of this file. `in_arena`: bytes of all files' slabs.
  static bool ShouldStoreInline(const PendingMap& pending, uint64_t in_arena);

  /// Whether lanes are to store now. `first`: a superblock that must be first is pending; `held_back`: it is paused or delayed, and nobody else waits for
  /// it.
  bool Worthwhile(const PendingMap& pending, bool held_back, uint64_t arena_bytes,
                  bool first) const {
    if (urgent_ || sweep_extents_ != 0 || first) return true;
    if (pending.queued_extents() >= kManyExtents) return true;
    if (held_back || pending.queued_bytes() < kRunBytes) return false;
    return pending.queued_bytes() >= arena_bytes / 4 || !Patient(pending);
  }
  /// Somebody waits for what is queued, or for its memory.
  void Hurry() { urgent_ = true; }
  /// Nothing ordinary is queued.
  void NothingQueued() {
    urgent_ = false;
    sweep_extents_ = 0;
  }
  /// So many extents were taken.
  void Taken(size_t extents) {
    sweep_extents_ -= extents < sweep_extents_ ? extents : sweep_extents_;
  }

  bool lingering() const { return since_.has_value(); }
  /// Lingering begins, if it has not: for how long. No value: nothing new is to be scheduled.
  std::optional<Clock::duration> Linger(const LingerTerms& terms);
  /// A lane is here. If the time is over, what is queued becomes a sweep; if more patience is worth it, for how long.
  /// `any_time`: there are no lane threads, so whoever runs this decides that the time is over.
  std::optional<Clock::duration> Look(const PendingMap& pending, const LingerTerms& terms,
                                      bool any_time);
  /// A forked child has no lane that would come.
  void ForgetLinger() { since_.reset(); }

 private:
  static constexpr uint64_t kRunBytes = 1u << 20;  // a request worth making
  // Smaller extents, on average, are worth more with their neighbours.
  static constexpr uint64_t kScatteredMean = uint64_t{16} * 1024;
  static constexpr size_t kManyExtents = 1u << 16;  // what one sweep has to merge

  bool urgent_ = false;
  size_t sweep_extents_ = 0;  // how many queued extents have lingered long enough
  std::optional<Clock::time_point> since_;
  Clock::time_point due_;
};

}  // namespace tidelane
