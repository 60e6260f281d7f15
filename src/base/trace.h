/// \file
/// The timeline: spans of time per thread in a ring buffer, written as a Chrome trace when
/// TIDELANE_TRACE is set.
///
/// Invariant: when tracing is off a Span costs one relaxed load; when on, one slot of a fixed ring
/// (the oldest are overwritten, and the file says how many were lost). Recording never allocates
/// and never locks.
///
/// Thread safety: spans may be recorded from any thread; EnableTrace and WriteTrace are called by
/// engine/ only.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace tidelane {

enum class SpanKind : uint8_t {
  kWrite,  // a captured write call
  kWriteThrough,
  kRead,
  kFlushWait,
  kCloseWait,
  kRequestWait,
  kArenaWait,
  kFilterWait,
  kOpenWait,
  kExitWait,
  kForkWait,
  kRanksWait,
  kOtherWait,
  kPwrite,      // a lane's request
  kGapRead,     // a lane's read to fill gaps
  kGpuCopy,     // a call waits for bytes from a GPU's memory, or on their way to it
  kEpochAsync,  // an I/O phase and the computation after it, its writes handed over
  kEpochSync,   // the same, written by the program; both have, for bytes, the expected microseconds
  // Moments, not spans: a file's drain comes to a step (file/drain_state.h), with so many bytes queued.
  kDrainMark,
  kDrainExtents,
  kDrainSize,
  kDrainSuperblock,
  kDrained,
  kDrainStuck,
  kCount
};

uint64_t NowNs();  ///< CLOCK_MONOTONIC

namespace internal {
extern std::atomic<bool> tracing;
void RecordSpan(SpanKind kind, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes);
}  // namespace internal

/// Allocates the ring; spans are recorded from now on.
void EnableTrace(uint32_t spans = 1u << 18);

/// Names the calling thread in the trace ("lane 0"); unnamed threads appear as "thread <tid>".
/// `name` must outlive the process.
void NameTraceThread(const char* name);

/// Writes what was recorded so far (%p in `path` becomes the process id):
/// {"traceEvents":[{"name","ph":"X","ts","dur","pid","tid","args":{"bytes"}} …]}.
Status WriteTrace(const std::string& path);

/// In a forked child: forgets the parent's spans and thread names, and the calling thread's cached
/// id. No other thread may be recording.
void ResetTraceAfterFork();

inline bool IsTracing() { return internal::tracing.load(std::memory_order_relaxed); }

/// A moment: a span that takes no time.
inline void RecordMoment(SpanKind kind, uint64_t bytes) {
  if (!IsTracing()) return;
  const uint64_t now_ns = NowNs();
  internal::RecordSpan(kind, now_ns, now_ns, bytes);
}

/// One span, from construction to destruction.
class Span {
 public:
  explicit Span(SpanKind kind, uint64_t bytes = 0)
      : kind_(kind),
        bytes_(bytes),
        begin_(internal::tracing.load(std::memory_order_relaxed) ? NowNs() : 0) {}
  ~Span() {
    if (begin_ != 0) internal::RecordSpan(kind_, begin_, NowNs(), bytes_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  SpanKind kind_;
  uint64_t bytes_;
  uint64_t begin_;
};

}  // namespace tidelane
