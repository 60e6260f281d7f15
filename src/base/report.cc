/// \file
/// Formats the counters. The JSON carries every counter and every fallback, also those that are 0,
/// so that a script may rely on the keys; the table carries what a person asks first.
///
/// Thread safety: as report.h.
#include "base/report.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "base/activity.h"
#include "base/annotations.h"
#include "base/counters.h"
#include "base/output_file.h"
#include "base/version.h"

namespace tidelane {
namespace {

// Trivially destructible, so it outlives static destruction.
constinit Mutex one_at_a_time;
static_assert(std::is_trivially_destructible_v<Mutex>);

__attribute__((format(printf, 2, 3))) void Print(std::string& text, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

std::string Bytes(uint64_t n) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(n);
  unsigned unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  std::string text;
  Print(text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string Bytes(Counter counter) { return Bytes(Read(counter)); }

std::string Waits() {
  std::string text;
  for (unsigned i = 0; i < kWaitCount; ++i) {
    const WaitKind& kind = KindOf(static_cast<Wait>(i));
    if (Read(kind.ns) == 0) continue;
    Print(text, "%s%s %.3f s", text.empty() ? "" : ", ", kind.label,
          static_cast<double>(Read(kind.ns)) / 1e9);
  }
  return text.empty() ? "nowhere" : text;
}

std::string Reasons() {
  std::string text;
  for (unsigned i = 0; i < kFallbackCount; ++i) {
    const auto reason = static_cast<Fallback>(i);
    if (Read(reason) == 0) continue;
    Print(text, "%s%s %" PRIu64, text.empty() ? "" : ", ", Name(reason), Read(reason));
  }
  return text;
}

std::string Table() {
  std::string text;
  Print(text, "tidelane %s, process %d: %" PRIu64 " files opened, %" PRIu64 " errors\n",
        TIDELANE_VERSION, static_cast<int>(getpid()), Read(Counter::kFilesOpened),
        Read(Counter::kErrors));
  Print(text, "  asynchronous  %s in %" PRIu64 " writes, copied in %.3f s\n",
        Bytes(Counter::kBytesDeferred).c_str(), Read(Counter::kWritesDeferred),
        static_cast<double>(Read(Counter::kCopyNs)) / 1e9);
  Print(text, "  synchronous   %s in %" PRIu64 " writes\n", Bytes(Counter::kBytesSync).c_str(),
        Read(Counter::kWritesSync));
  if (const std::string reasons = Reasons(); !reasons.empty()) {
    text += "  fell back     " + reasons + "\n";
  }
  Print(
      text, "  merged        %" PRIu64 " writes into %" PRIu64 " requests, %s, lanes busy %.3f s\n",
      Read(Counter::kWritesDeferred), Read(Counter::kRequestsWritten),
      Bytes(Counter::kBytesWritten).c_str(), static_cast<double>(Read(Counter::kLaneBusyNs)) / 1e9);
  if (Read(Counter::kGapFillReads) != 0) {
    Print(text, "  gaps filled   %s with %" PRIu64 " reads\n",
          Bytes(Counter::kGapFillBytes).c_str(), Read(Counter::kGapFillReads));
  }
  Print(text, "  read          %s in %" PRIu64 " requests, %" PRIu64 " read-ahead hits\n",
        Bytes(Counter::kStorageReadBytes).c_str(), Read(Counter::kStorageReads),
        Read(Counter::kReadAheadHits));
  text += "  waited        " + Waits() + "\n";
  Print(text, "  arena         peak %s of %s\n", Bytes(Counter::kArenaPeakBytes).c_str(),
        Bytes(Counter::kArenaCapBytes).c_str());
  return text;
}

std::string Json() {
  nlohmann::ordered_json summary;
  summary["tidelane"] = {{"version", TIDELANE_VERSION}, {"pid", static_cast<int>(getpid())}};
  nlohmann::ordered_json& counters = summary["counters"];
  for (unsigned i = 0; i < kCounterCount; ++i) {
    counters[Name(static_cast<Counter>(i))] = Read(static_cast<Counter>(i));
  }
  nlohmann::ordered_json& fallbacks = summary["fallbacks"];
  for (unsigned i = 0; i < kFallbackCount; ++i) {
    fallbacks[Name(static_cast<Fallback>(i))] = Read(static_cast<Fallback>(i));
  }
  return summary.dump(2) + "\n";
}

}  // namespace

Status WriteSummary(const std::string& where) {
  if (where.empty()) return {};
  MutexLock lock(one_at_a_time);
  if (where == "1") {
    // Each libhdf5 of a process ends by itself (Python wheels bring one each): once is enough.
    static std::string& told = *new std::string;
    std::string table = Table();
    if (table == told) return {};
    told = std::move(table);
    std::fputs(told.c_str(), stderr);
    return {};
  }
  OutputFile file;
  if (Status status = file.Open(where); !status.ok()) return status;
  std::fputs(Json().c_str(), file.stream());
  return file.Commit();
}

}  // namespace tidelane
