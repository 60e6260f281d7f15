#include "tools/summary_file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "base/activity.h"
#include "base/settings.h"
#include "base/words.h"
#include "tools/locate.h"

namespace tidelane::tools {
namespace {

uint64_t Nanoseconds(double seconds) {
  return std::isfinite(seconds) && seconds > 0 && seconds < 1e9
             ? static_cast<uint64_t>(std::llround(seconds * 1e9))
             : 0;
}

void ReadNames(const Json& json, FileNames& files) {
  uint64_t count = std::min<uint64_t>(WholeAt(json, "count"), 1'000'000);
  for (const Json& name : At(json, "files")) {
    if (name.is_string()) files.Add(name.get<std::string>());
  }
  while (files.count() < count && files.listed().size() >= FileNames::kListed) files.Add("");
}

void ReadSettings(const Json& json, Config& config) {
  for (const Json& item : json) {
    const Setting* const setting = FindSetting(TextAt(item, "name"));
    const std::string origin = TextAt(item, "origin");
    if (setting == nullptr || origin.empty()) continue;
    setting->value.parse(config, TextAt(item, "value"));
    if (origin != "default") config.origins[std::string(setting->name)] = origin;
  }
}

void ReadCounts(const Json& json, Summary& summary) {
  for (unsigned i = 0; i < kCounterCount; ++i) {
    summary.counters[i] = WholeAt(At(json, "counters"), Name(static_cast<Counter>(i)));
  }
  for (unsigned i = 0; i < kFallbackCount; ++i) {
    summary.fallbacks[i] = WholeAt(At(json, "fallbacks"), Name(static_cast<Fallback>(i)));
  }
  for (const Json& item : At(At(At(json, "written"), "synchronous"), "reasons")) {
    const std::string reason = TextAt(item, "reason");
    for (unsigned i = 0; i < kFallbackCount; ++i) {
      if (reason == Name(static_cast<Fallback>(i))) {
        summary.fallback_bytes[i] = WholeAt(item, "bytes");
      }
    }
  }
}

std::optional<EpochForecast> ReadForecast(const Json& json) {
  if (!json.is_object()) return std::nullopt;  // nothing was known yet
  return EpochForecast{.chosen = NumberAt(json, "chosen"),
                       .sync = NumberAt(json, "sync"),
                       .async = NumberAt(json, "async"),
                       .async_by_equation = NumberAt(json, "async_by_equation")};
}

Decision ReadDecision(const Json& json) {
  Decision decision;
  decision.epoch = WholeAt(json, "epoch");
  decision.file = TextAt(json, "file");
  decision.storage = TextAt(json, "storage");
  decision.begin_ns = Nanoseconds(NumberAt(json, "begin_seconds"));
  decision.bytes = WholeAt(json, "bytes");
  decision.async = TextAt(json, "mode") == "async";
  decision.fixed = At(json, "fixed") == true;
  decision.last = At(json, "last") == true;
  decision.forecast = ReadForecast(At(json, "expected"));
  decision.seconds = NumberAt(json, "seconds");
  decision.compute_seconds = NumberAt(json, "compute_seconds");
  return decision;
}

ModeledRate ReadRate(const Json& json) {
  ModeledRate rate;  // of no samples, where the JSON has null
  rate.samples = NumberAt(json, "samples");
  rate.bytes_per_second = NumberAt(json, "bytes_per_second");
  rate.error = NumberAt(json, "error");
  rate.form = TextAt(json, "form");
  if (At(json, "r2").is_number()) rate.r2 = NumberAt(json, "r2");
  return rate;
}

ReadEpochs ReadReadEpochs(const Json& json) {
  return {.epochs = WholeAt(json, "epochs"),
          .async_epochs = WholeAt(json, "asynchronous"),
          .forecasts = WholeAt(json, "forecasts"),
          .forecast_error = NumberAt(json, "forecast_error"),
          .seconds = NumberAt(json, "epoch_seconds")};
}

ModeledReads ReadReads(const Json& json) {
  return {.sync = ReadRate(At(json, "sync")),
          .lanes = ReadRate(At(json, "lanes")),
          .copy_bytes_per_second = NumberAt(json, "copy_bytes_per_second")};
}

void ReadModel(const Json& json, Decisions& decisions) {
  decisions.epochs = WholeAt(json, "epochs");
  decisions.async_epochs = WholeAt(json, "asynchronous");
  decisions.changes = WholeAt(json, "changes");
  decisions.forecasts = WholeAt(json, "forecasts");
  decisions.forecast_error = NumberAt(json, "forecast_error");
  decisions.start_seconds = NumberAt(json, "start_seconds");
  decisions.epoch_seconds = NumberAt(json, "epoch_seconds");
  decisions.end_seconds = NumberAt(json, "end_seconds");
  for (const Json& item : At(json, "decisions")) {
    if (decisions.last.size() == Decisions::kListed) break;
    decisions.last.push_back(ReadDecision(item));
  }
  for (const Json& item : At(json, "storages")) {
    decisions.storages.push_back({.name = TextAt(item, "name"),
                                  .earlier_runs = WholeAt(item, "earlier_runs"),
                                  .sync = ReadRate(At(item, "sync")),
                                  .lanes = ReadRate(At(item, "lanes")),
                                  .copy_bytes_per_second = NumberAt(item, "copy_bytes_per_second"),
                                  .reads = ReadReads(At(item, "reads"))});
  }
  decisions.reads = ReadReadEpochs(At(json, "reads"));
}

void ReadBody(const Json& json, ProcessSummary& process) {
  Summary& summary = process.summary;
  process.version = TextAt(At(json, "tidelane"), "version");
  summary.pid = static_cast<int>(WholeAt(At(json, "tidelane"), "pid"));
  if (At(At(json, "tidelane"), "rank").is_number_integer()) {
    process.rank = static_cast<int>(WholeAt(At(json, "tidelane"), "rank"));
  }
  summary.run_ns = Nanoseconds(NumberAt(json, "run_seconds"));
  ReadCounts(json, summary);
  const Json& overlap = At(json, "overlap");
  summary.overlap.storage_ns = Nanoseconds(NumberAt(overlap, "storage_seconds"));
  summary.overlap.hidden_ns = Nanoseconds(NumberAt(overlap, "hidden_seconds"));
  ReadModel(At(json, "model"), summary.decisions);
  const Json& problems = At(json, "problems");
  summary.incidents.first_error = TextAt(problems, "first");
  summary.incidents.last_error = TextAt(problems, "last");
  ReadNames(At(problems, "not_stored"), summary.incidents.not_stored);
  ReadNames(At(problems, "not_closed"), summary.incidents.left_open);
  ReadSettings(At(json, "settings"), summary.config);
  for (const Json& item : At(json, "advice")) {
    process.advice.emplace_back(TextAt(item, "rule"), TextAt(item, "text"));
  }
}

// Empty if the JSON is a summary that can be read.
std::string WhyNot(const Json& json) {
  if (json.is_discarded()) return "is not JSON: it is damaged, or no summary at all";
  if (At(json, "traceEvents").is_array()) {
    return "is a timeline, not a summary: tidelane trace reads it, and --trace takes it here";
  }
  const Json& version = At(json, "schema_version");
  if (!version.is_number_integer()) {
    return "is no summary of Tidelane (it has no schema_version): TIDELANE_SUMMARY=run.json makes "
           "one";
  }
  if (version != kSummarySchemaVersion) {
    return "has schema version " + version.dump() + ", and this tidelane reads " +
           std::to_string(kSummarySchemaVersion) + ": use the tidelane of version '" +
           TextAt(At(json, "tidelane"), "version") + "' that wrote it";
  }
  if (!At(json, "counters").is_object() || !At(json, "waits").is_object()) {
    return "is a damaged summary: it has no counters or no waits";
  }
  return {};
}

void Add(const FileNames& from, FileNames& to) {
  for (const std::string& name : from.listed()) to.Add(name);
  for (uint64_t i = from.listed().size(); i < from.count(); ++i) to.Add("");
}

// Of two means of so many, `to`'s already put together.
void AddMean(double from, uint64_t count, double& to, uint64_t together) {
  if (together == 0) return;
  to += (from - to) * static_cast<double>(count) / static_cast<double>(together);
}

void Add(const ReadEpochs& from, ReadEpochs& to) {
  to.epochs += from.epochs;
  to.async_epochs += from.async_epochs;
  to.forecasts += from.forecasts;
  AddMean(from.forecast_error, from.forecasts, to.forecast_error, to.forecasts);
  to.seconds += from.seconds;
}

// Counts and times; the epochs themselves and the storages stay each process's own.
void Add(const Decisions& from, Decisions& to) {
  to.epochs += from.epochs;
  to.async_epochs += from.async_epochs;
  to.changes += from.changes;
  to.forecasts += from.forecasts;
  AddMean(from.forecast_error, from.forecasts, to.forecast_error, to.forecasts);
  Add(from.reads, to.reads);
  to.start_seconds += from.start_seconds;
  to.epoch_seconds += from.epoch_seconds;
  to.end_seconds += from.end_seconds;
  to.last.clear();
  to.storages.clear();
}

void AddTo(Summary& sum, const Summary& one) {
  sum.run_ns += one.run_ns;
  for (unsigned i = 0; i < kCounterCount; ++i) sum.counters[i] += one.counters[i];
  for (unsigned i = 0; i < kFallbackCount; ++i) {
    sum.fallbacks[i] += one.fallbacks[i];
    sum.fallback_bytes[i] += one.fallback_bytes[i];
  }
  sum.overlap.storage_ns += one.overlap.storage_ns;
  sum.overlap.hidden_ns += one.overlap.hidden_ns;
  if (sum.incidents.first_error.empty()) sum.incidents.first_error = one.incidents.first_error;
  if (!one.incidents.last_error.empty()) sum.incidents.last_error = one.incidents.last_error;
  Add(one.decisions, sum.decisions);
  Add(one.incidents.not_stored, sum.incidents.not_stored);
  Add(one.incidents.left_open, sum.incidents.left_open);
}

std::string WhoOf(const std::vector<ProcessSummary>& processes) {
  if (processes.size() == 1) return "process " + std::to_string(processes[0].summary.pid);
  const bool ranks = std::ranges::all_of(processes, [](const auto& p) { return p.rank >= 0; });
  if (!ranks) return std::to_string(processes.size()) + " processes";
  const auto [first, last] = std::ranges::minmax(processes, {}, &ProcessSummary::rank);
  return std::to_string(processes.size()) + " processes of ranks " + std::to_string(first.rank) +
         " to " + std::to_string(last.rank);
}

}  // namespace

const Json& At(const Json& json, const char* key) {
  static const Json& none = *new Json;
  if (!json.is_object()) return none;
  const auto found = json.find(key);
  return found == json.end() ? none : *found;
}

double NumberAt(const Json& json, const char* key) {
  const Json& value = At(json, key);
  return value.is_number() ? value.get<double>() : 0;
}

uint64_t WholeAt(const Json& json, const char* key) {
  const Json& value = At(json, key);
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

std::string TextAt(const Json& json, const char* key) {
  const Json& value = At(json, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool ReadSummary(const std::string& path, ProcessSummary& process, std::string& error) {
  std::string text;
  if (IsFolder(path) || !ReadWhole(path, text)) {
    error = path + ": cannot be read: " + std::strerror(IsFolder(path) ? EISDIR : errno);
    return false;
  }
  process.path = path;
  process.json = Json::parse(text, nullptr, false);
  if (const std::string why = WhyNot(process.json); !why.empty()) {
    error = path + ": " + why;
    return false;
  }
  ReadBody(process.json, process);
  return true;
}

Summary Together(const std::vector<ProcessSummary>& processes) {
  Summary sum = processes.front().summary;
  for (size_t i = 1; i < processes.size(); ++i) AddTo(sum, processes[i].summary);
  return sum;
}

std::vector<std::string> AdviceOf(const std::vector<ProcessSummary>& processes) {
  std::vector<std::string> advice;
  std::map<std::string, size_t> said;
  for (const ProcessSummary& process : processes) {
    for (const auto& [rule, text] : process.advice) ++said[rule];
  }
  for (const ProcessSummary& process : processes) {
    for (const auto& [rule, text] : process.advice) {
      const size_t times = said[rule];
      if (times == 0) continue;  // before
      advice.push_back(processes.size() == 1
                           ? text
                           : text + " (so in " + std::to_string(times) + " of " +
                                 std::to_string(processes.size()) + " processes" + ")");
      said[rule] = 0;
    }
  }
  return advice;
}

std::string TableOf(const std::vector<ProcessSummary>& processes) {
  const Summary sum = Together(processes);
  uint64_t longest_ns = 0;
  for (const ProcessSummary& process : processes) {
    longest_ns = std::max(longest_ns, process.summary.run_ns);
  }
  std::string text;
  Print(text, "tidelane %s, %s: %s opened, %s, %.3f s\n", processes.front().version.c_str(),
        WhoOf(processes).c_str(), CountInWords(sum[Counter::kFilesOpened], "file").c_str(),
        CountInWords(sum[Counter::kErrors], "error").c_str(),
        static_cast<double>(longest_ns) / 1e9);
  return text + SummaryLines(sum, AdviceOf(processes));
}

}  // namespace tidelane::tools
