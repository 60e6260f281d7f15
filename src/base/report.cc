/// \file
/// Takes the summary, and writes the table or the JSON.
///
/// Thread safety: as report.h.
#include "base/report.h"

#include <cstdio>
#include <string>
#include <type_traits>

#include "base/annotations.h"
#include "base/output_file.h"
#include "base/summary.h"

namespace tidelane {
namespace {

// Trivially destructible, so it outlives static destruction.
constinit Mutex one_at_a_time;
static_assert(std::is_trivially_destructible_v<Mutex>);

// Each libhdf5 of a process ends by itself (Python wheels bring one each): once is enough, unless
// something happened since.
bool SaidBefore(Summary summary) {
  static std::string& told = *new std::string;
  summary.run_ns = 0;
  std::string now = SummaryJson(summary);
  if (now == told) return true;
  told = std::move(now);
  return false;
}

}  // namespace

Status WriteSummary(const Config& config) {
  if (config.summary.empty()) return {};
  MutexLock lock(one_at_a_time);
  const Summary summary = TakeSummary(config);
  if (config.summary == "1") {
    if (!SaidBefore(summary)) std::fputs(SummaryTable(summary).c_str(), stderr);
    return {};
  }
  OutputFile file;
  if (Status status = file.Open(config.summary); !status.ok()) return status;
  std::fputs(SummaryJson(summary).c_str(), file.stream());
  return file.Commit();
}

}  // namespace tidelane
