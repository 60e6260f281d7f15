/// \file
/// The summary as JSON. Every key is always there, also where nothing happened, so that a script may
/// rely on it; docs/summary.schema.json is made from the same tables (summary_json_test.cc).
///
/// Thread safety: pure functions.
#include <nlohmann/json.hpp>

#include "base/activity.h"
#include "base/advice.h"
#include "base/summary.h"
#include "base/version.h"

namespace tidelane {
namespace {

using Json = nlohmann::ordered_json;

// Times are in seconds where a person may read them, and in nanoseconds among the counters.
double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

Json Written(const Summary& summary) {
  Json reasons = Json::array();
  for (unsigned i = 0; i < kFallbackCount; ++i) {
    const auto reason = static_cast<Fallback>(i);
    if (summary[reason] == 0) continue;
    reasons.push_back({{"reason", Name(reason)},
                       {"text", Text(reason)},
                       {"unit", *Unit(reason) == '\0' ? "process" : Unit(reason)},
                       {"count", summary[reason]},
                       {"bytes", summary.bytes(reason)}});
  }
  return {{"asynchronous",
           {{"bytes", summary[Counter::kBytesDeferred]},
            {"operations", summary[Counter::kWritesDeferred]},
            {"lent_bytes", summary[Counter::kBytesLent]},
            {"copy_seconds", Seconds(summary[Counter::kCopyNs])}}},
          {"synchronous",
           {{"bytes", summary[Counter::kBytesSync]},
            {"operations", summary[Counter::kWritesSync]},
            {"reasons", std::move(reasons)}}}};
}

Json Merged(const Summary& summary) {
  return {{"writes_in", summary[Counter::kWritesDeferred]},
          {"requests_out", summary[Counter::kRequestsWritten]},
          {"bytes_out", summary[Counter::kBytesWritten]},
          {"gap_bytes", summary[Counter::kGapFillBytes]},
          {"gap_reads", summary[Counter::kGapFillReads]}};
}

Json Waits(const Summary& summary) {
  Json waits;
  for (unsigned i = 0; i < kWaitCount; ++i) {
    const WaitKind& kind = KindOf(static_cast<Wait>(i));
    waits[kind.key] = {{"seconds", Seconds(summary[kind.ns])}, {"times", summary[kind.times]}};
  }
  return waits;
}

Json Hidden(const Overlap::Totals& overlap) {
  Json percent;  // null where storage had nothing to do
  if (overlap.storage_ns != 0) {
    percent =
        100.0 * static_cast<double>(overlap.hidden_ns) / static_cast<double>(overlap.storage_ns);
  }
  return {{"storage_seconds", Seconds(overlap.storage_ns)},
          {"hidden_seconds", Seconds(overlap.hidden_ns)},
          {"percent", std::move(percent)}};
}

Json Rate(const ModeledRate& rate) {
  if (rate.samples == 0) return nullptr;
  return {{"samples", rate.samples},
          {"bytes_per_second", rate.bytes_per_second},
          {"error", rate.error},
          {"form", rate.form},
          {"r2", rate.r2 ? Json(*rate.r2) : Json()}};
}

Json Storages(const Decisions& decisions) {
  Json list = Json::array();
  for (const ModeledStorage& storage : decisions.storages) {
    list.push_back({{"name", storage.name},
                    {"earlier_runs", storage.earlier_runs},
                    {"sync", Rate(storage.sync)},
                    {"lanes", Rate(storage.lanes)},
                    {"copy_bytes_per_second", storage.copy_bytes_per_second},
                    {"reads",
                     {{"sync", Rate(storage.reads.sync)},
                      {"lanes", Rate(storage.reads.lanes)},
                      {"copy_bytes_per_second", storage.reads.copy_bytes_per_second}}}});
  }
  return list;
}

Json Epoch(const Decision& decision) {
  Json expected;  // null where nothing was
  if (decision.forecast) {
    expected = {{"chosen", decision.forecast->chosen},
                {"sync", decision.forecast->sync},
                {"async", decision.forecast->async},
                {"async_by_equation", decision.forecast->async_by_equation}};
  }
  return {{"epoch", decision.epoch},
          {"file", decision.file},
          {"storage", decision.storage},
          {"begin_seconds", Seconds(decision.begin_ns)},
          {"bytes", decision.bytes},
          {"mode", decision.async ? "async" : "sync"},
          {"fixed", decision.fixed},
          {"last", decision.last},
          {"expected", std::move(expected)},
          {"seconds", decision.seconds},
          {"compute_seconds", decision.compute_seconds}};
}

Json Expected(uint64_t forecasts, double error) { return forecasts == 0 ? Json() : Json(error); }

Json Reads(const ReadEpochs& reads) {
  return {{"epochs", reads.epochs},
          {"asynchronous", reads.async_epochs},
          {"forecasts", reads.forecasts},
          {"forecast_error", Expected(reads.forecasts, reads.forecast_error)},
          {"epoch_seconds", reads.seconds}};
}

Json Model(const Decisions& decisions) {
  Json epochs = Json::array();
  for (const Decision& decision : decisions.last) epochs.push_back(Epoch(decision));
  return {{"epochs", decisions.epochs},
          {"asynchronous", decisions.async_epochs},
          {"changes", decisions.changes},
          {"forecasts", decisions.forecasts},
          {"forecast_error", Expected(decisions.forecasts, decisions.forecast_error)},
          {"start_seconds", decisions.start_seconds},
          {"epoch_seconds", decisions.epoch_seconds},
          {"end_seconds", decisions.end_seconds},
          {"storages", Storages(decisions)},
          {"decisions", std::move(epochs)},
          {"reads", Reads(decisions.reads)}};
}

Json Names(const FileNames& files) { return {{"count", files.count()}, {"files", files.listed()}}; }

Json WentWrong(const Summary& summary) {
  return {{"count", summary[Counter::kErrors]},
          {"first", summary.incidents.first_error},
          {"last", summary.incidents.last_error},
          {"not_stored", Names(summary.incidents.not_stored)},
          {"not_closed", Names(summary.incidents.left_open)}};
}

Json Settings(const Config& config) {
  Json list = Json::array();
  for (const SettingValue& setting : EffectiveSettings(config)) {
    list.push_back({{"name", setting.name},
                    {"value", setting.value},
                    {"origin", setting.origin},
                    {"note", setting.note}});
  }
  return list;
}

Json AdviceList(const Summary& summary) {
  Json list = Json::array();
  for (const Advice& advice : AdviceFor(summary)) {
    list.push_back({{"rule", advice.rule}, {"text", advice.text}});
  }
  return list;
}

}  // namespace

std::string SummaryJson(const Summary& summary) {
  Json json;
  json["schema_version"] = kSummarySchemaVersion;
  json["tidelane"] = {{"version", TIDELANE_VERSION}, {"pid", summary.pid}};
  json["run_seconds"] = Seconds(summary.run_ns);
  json["written"] = Written(summary);
  json["merged"] = Merged(summary);
  json["waits"] = Waits(summary);
  json["overlap"] = Hidden(summary.overlap);
  json["arena"] = {{"peak_bytes", summary[Counter::kArenaPeakBytes]},
                   {"cap_bytes", summary[Counter::kArenaCapBytes]}};
  json["model"] = Model(summary.decisions);
  json["problems"] = WentWrong(summary);
  json["advice"] = AdviceList(summary);
  json["settings"] = Settings(summary.config);
  for (unsigned i = 0; i < kCounterCount; ++i) {
    json["counters"][Name(static_cast<Counter>(i))] = summary.counters[i];
  }
  for (unsigned i = 0; i < kFallbackCount; ++i) {
    json["fallbacks"][Name(static_cast<Fallback>(i))] = summary.fallbacks[i];
  }
  // A file's name need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidelane
