/// \file
/// What happened in this process, taken at one moment: the material of the end-of-run summary. From
/// it the table, the JSON and the advice are made, by functions that look at nothing else.
///
/// Thread safety: TakeSummary may be called from any thread; a Summary is a value.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/counters.h"
#include "base/decisions.h"
#include "base/incidents.h"
#include "base/overlap.h"

namespace tidelane {

struct Summary {
  int pid = 0;
  uint64_t run_ns = 0;  ///< since the plugin was loaded, or since the fork that made this process
  std::array<uint64_t, kCounterCount> counters{};
  std::array<uint64_t, kFallbackCount> fallbacks{};
  std::array<uint64_t, kFallbackCount> fallback_bytes{};
  Overlap::Totals overlap;
  uint64_t free_after_close_ns = 0;  ///< FreeTimeAfter(Wait::kClose)
  uint64_t free_after_flush_ns = 0;
  Incidents incidents;
  Decisions decisions;
  Config config;

  uint64_t& operator[](Counter counter) { return counters[static_cast<unsigned>(counter)]; }
  uint64_t operator[](Counter counter) const { return counters[static_cast<unsigned>(counter)]; }
  uint64_t& operator[](Fallback reason) { return fallbacks[static_cast<unsigned>(reason)]; }
  uint64_t operator[](Fallback reason) const { return fallbacks[static_cast<unsigned>(reason)]; }
  uint64_t& bytes(Fallback reason) { return fallback_bytes[static_cast<unsigned>(reason)]; }
  uint64_t bytes(Fallback reason) const { return fallback_bytes[static_cast<unsigned>(reason)]; }
};

Summary TakeSummary(const Config& config);

/// For a person: a dozen lines.
std::string SummaryTable(const Summary& summary);
/// Its lines below the first, with advice from elsewhere (a summary that was read back has it).
std::string SummaryLines(const Summary& summary, const std::vector<std::string>& advice);
/// For a script: docs/summary.schema.json says what is in it.
std::string SummaryJson(const Summary& summary);

/// Version of the JSON's schema: a key that is renamed, removed or changes its meaning raises it; a
/// new key does not.
inline constexpr int kSummarySchemaVersion = 1;

/// In a forked child, which counts from zero.
void ResetSummaryAfterFork();

}  // namespace tidelane
