/// \file
/// Timers of what the program waits for and of what lanes do: one object each, and the counters,
/// the timeline and the overlap all know.
///
///   Waiting waiting(Wait::kFlush);   // a thread of the program stands still until the block ends
///   Working working(bytes);          // a lane is at storage
///
/// Invariant: a wait inside a wait of the same thread counts once, as the outer one, so that waits
/// add up to time.
///
/// Thread safety: an object belongs to the thread that made it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/counters.h"
#include "base/overlap.h"
#include "base/trace.h"

namespace tidelane {

// What a program waits for. X(name, span, key, label): the counters are kWait<name>Ns and
// kWaits<name>; the key is the JSON's, the label the table's.
#define TL_WAITS(X)                               \
  X(Flush, kFlushWait, "flush", "flush")          \
  X(Close, kCloseWait, "close", "close")          \
  X(Request, kRequestWait, "request", "requests") \
  X(Arena, kArenaWait, "arena", "arena")          \
  X(Filter, kFilterWait, "filter", "filters")     \
  X(Read, kRead, "read", "reads")                 \
  X(Open, kOpenWait, "open", "opens")             \
  X(Write, kWriteThrough, "write", "writes")      \
  X(Exit, kExitWait, "exit", "exit")              \
  X(Fork, kForkWait, "fork", "fork")              \
  X(Ranks, kRanksWait, "ranks", "other ranks")    \
  X(Other, kOtherWait, "other", "elsewhere")

enum class Wait : unsigned {
#define X(name, span, key, label) k##name,
  TL_WAITS(X)
#undef X
      kCount
};

inline constexpr unsigned kWaitCount = static_cast<unsigned>(Wait::kCount);

/// A wait's counters and words.
struct WaitKind {
  Counter ns;
  Counter times;
  SpanKind span;
  const char* key;
  const char* label;
};
const WaitKind& KindOf(Wait wait);

namespace internal {
extern std::atomic<bool> recording_waits;
}  // namespace internal

/// Whether waits are recorded: not where nobody asked for a summary or a timeline. On by default.
void RecordWaits(bool record);
/// From now on, whatever RecordWaits says: somebody wants to look while the program runs.
void RecordWaitsAlways();

/// Whether anybody will look at what is recorded.
inline bool WaitsAreRecorded() { return internal::recording_waits.load(std::memory_order_relaxed); }

/// A thread of the program waits for Tidelane or for storage, from construction to destruction.
class Waiting {
 public:
  enum How {
    kCounted,
    kRest,   ///< of a wait that was counted before
    kTimed,  ///< counted; and Stop is asked for its length even where nothing is recorded
  };

  explicit Waiting(Wait wait, uint64_t bytes = 0, How how = kCounted)
      : wait_(wait),
        how_(how),
        recorded_(internal::recording_waits.load(std::memory_order_relaxed)),
        bytes_(bytes) {
    if (recorded_ || how == kTimed) Begin();
  }
  ~Waiting() {
    if (running_) Stop();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  /// Ends it now and gives its length.
  uint64_t Stop();
  /// When it began, and once it has ended, when: 0 where nothing was timed.
  uint64_t begin_ns() const { return begin_ns_; }
  uint64_t end_ns() const { return end_ns_; }

 private:
  void Begin();

  const Wait wait_;
  const How how_;
  const bool recorded_;
  bool running_ = false;
  const uint64_t bytes_;
  uint64_t begin_ns_ = 0;
  uint64_t end_ns_ = 0;
};

/// A lane works on storage, from construction to destruction.
class Working {
 public:
  explicit Working(uint64_t bytes = 0);
  ~Working() { Stop(); }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

  /// Ends it now and gives its length.
  uint64_t Stop();

 private:
  const uint64_t bytes_;
  const uint64_t begin_ns_;
  bool running_ = true;
};

/// Since the first such wait ended: the time in which no such wait or other one was going on, and in
/// which a deferred wait could have been hidden. 0 when there was none.
uint64_t FreeTimeAfter(Wait wait);

/// Storage's work so far, and how much of it was hidden.
Overlap::Totals ReadOverlap();

/// In a forked child, which has no lanes yet and whose parent's time is not its own.
void ResetActivityAfterFork();

}  // namespace tidelane
