/// \file
/// Takes the summary from where things are counted.
///
/// Thread safety: as summary.h.
#include "base/summary.h"

#include <unistd.h>

#include <atomic>

#include "base/activity.h"
#include "base/trace.h"

namespace tidelane {
namespace {

std::atomic<uint64_t> started_ns = NowNs();  // when the plugin was loaded

}  // namespace

Summary TakeSummary(const Config& config) {
  Summary summary;
  summary.pid = static_cast<int>(getpid());
  summary.run_ns = NowNs() - started_ns.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < kCounterCount; ++i) {
    summary.counters[i] = Read(static_cast<Counter>(i));
  }
  for (unsigned i = 0; i < kFallbackCount; ++i) {
    summary.fallbacks[i] = Read(static_cast<Fallback>(i));
    summary.fallback_bytes[i] = ReadBytes(static_cast<Fallback>(i));
  }
  summary.overlap = ReadOverlap();
  summary.free_after_close_ns = FreeTimeAfter(Wait::kClose);
  summary.free_after_flush_ns = FreeTimeAfter(Wait::kFlush);
  summary.incidents = ReadIncidents();
  summary.decisions = ReadDecisions();
  summary.config = config;
  return summary;
}

void ResetSummaryAfterFork() {
  ResetActivityAfterFork();
  ResetCountersAfterFork();
  ResetIncidentsAfterFork();
  ResetDecisionsAfterFork();
  started_ns.store(NowNs(), std::memory_order_relaxed);
}

}  // namespace tidelane
