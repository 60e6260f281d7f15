// A history entry as JSON and back. Nothing is believed of what is read: every number is looked at.
#include <cerrno>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "model/history.h"

namespace tidelane::model {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "tidelane-history";
constexpr uint64_t kFirstWithReads = 2;  // versions before know nothing of them
constexpr double kMostSeconds = 1e9;
constexpr double kMostBytes = 1e18;

Json ToJson(const RecentMean& mean) { return {mean.count(), mean.mean(), mean.deviation()}; }

Json ToJson(const IoRate& rate) {
  const IoRate::State state = rate.state();
  Json forms;
  for (unsigned i = 0; i < kForms; ++i) {
    forms[Name(static_cast<Form>(i))] = {{"sums", state.sums[i].Numbers()},
                                         {"error", ToJson(state.errors[i])}};
  }
  return {{"slowest", state.slowest}, {"quickest", state.quickest}, {"forms", std::move(forms)}};
}

Json ToJson(const CopyCost& cost) {
  Json sizes = Json::array();
  for (const RecentMean& size : cost.state()) sizes.push_back(ToJson(size));
  return sizes;
}

bool Number(const Json& json, double most, double& number) {
  if (!json.is_number()) return false;
  number = json.get<double>();
  return std::isfinite(number) && number >= 0 && number <= most;
}

bool Count(const Json& json, uint64_t& count) {
  if (!json.is_number_unsigned()) return false;
  count = json.get<uint64_t>();
  return count <= uint64_t{1} << 53;
}

bool FromJson(const Json& json, double most, RecentMean& mean) {
  uint64_t count = 0;
  double value = 0, deviation = 0;
  if (!json.is_array() || json.size() != 3) return false;
  if (!Count(json[0], count) || !Number(json[1], most, value) || !Number(json[2], most, deviation))
    return false;
  mean.Set(count, value, deviation);
  return true;
}

bool FromJson(const Json& json, Regression& sums) {
  std::array<double, Regression::kNumbers> numbers{};
  if (!json.is_array() || json.size() != numbers.size()) return false;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!json[i].is_number()) return false;
    numbers[i] = json[i].get<double>();
  }
  return sums.SetNumbers(numbers);
}

// Null where there is no such member, so that every kind of wrong is looked at in one place.
const Json& Member(const Json& json, const char* key) {
  static const Json& none = *new Json();
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found == json.end() ? none : *found;
}

bool FromJson(const Json& json, IoRate& rate) {
  IoRate::State state;
  if (!Number(Member(json, "slowest"), kMostBytes, state.slowest) ||
      !Number(Member(json, "quickest"), kMostBytes, state.quickest)) {
    return false;
  }
  for (unsigned i = 0; i < kForms; ++i) {
    const Json& form = Member(Member(json, "forms"), Name(static_cast<Form>(i)));
    if (!FromJson(Member(form, "sums"), state.sums[i]) ||
        !FromJson(Member(form, "error"), kMostSeconds, state.errors[i])) {
      return false;
    }
  }
  return rate.SetState(state);
}

bool FromJson(const Json& json, CopyCost& cost) {
  CopyCost::State state;
  if (!json.is_array() || json.size() != state.size()) return false;
  for (size_t i = 0; i < state.size(); ++i) {
    if (!FromJson(json[i], kMostSeconds, state[i])) return false;
  }
  return cost.SetState(state);
}

bool FromJson(const Json& json, LearnedReads& reads) {
  const auto mean = [&json](const char* key, double most, RecentMean& to) {
    return FromJson(Member(json, key), most, to);
  };
  return FromJson(Member(json, "sync"), reads.sync) &&
         FromJson(Member(json, "lanes"), reads.lanes) &&
         FromJson(Member(json, "copy"), reads.copy) && mean("bytes", kMostBytes, reads.bytes) &&
         mean("read_bytes", kMostBytes, reads.read_bytes) &&
         mean("compute", kMostSeconds, reads.compute) &&
         Count(Member(json, "epochs"), reads.epochs);
}

bool FromJson(const Json& json, Learned& learned, bool reads) {
  const auto mean = [&json](const char* key, double most, RecentMean& to) {
    return FromJson(Member(json, key), most, to);
  };
  return FromJson(Member(json, "sync"), learned.sync) &&
         FromJson(Member(json, "lanes"), learned.lanes) &&
         FromJson(Member(json, "copy"), learned.copy) && mean("bytes", kMostBytes, learned.bytes) &&
         mean("write_bytes", kMostBytes, learned.write_bytes) &&
         mean("compute", kMostSeconds, learned.compute) &&
         mean("slack", kMostSeconds, learned.slack) &&
         mean("sync_cost", kMostSeconds, learned.sync_cost) &&
         mean("async_cost", kMostSeconds, learned.async_cost) &&
         Count(Member(json, "epochs"), learned.epochs) &&
         (!reads || FromJson(Member(json, "reads"), learned.reads));
}

Json ToJson(const LearnedReads& reads) {
  return {{"epochs", reads.epochs},
          {"bytes", ToJson(reads.bytes)},
          {"read_bytes", ToJson(reads.read_bytes)},
          {"compute", ToJson(reads.compute)},
          {"sync", ToJson(reads.sync)},
          {"lanes", ToJson(reads.lanes)},
          {"copy", ToJson(reads.copy)}};
}

Json ToJson(const Learned& learned) {
  return {{"epochs", learned.epochs},
          {"bytes", ToJson(learned.bytes)},
          {"write_bytes", ToJson(learned.write_bytes)},
          {"compute", ToJson(learned.compute)},
          {"slack", ToJson(learned.slack)},
          {"sync_cost", ToJson(learned.sync_cost)},
          {"async_cost", ToJson(learned.async_cost)},
          {"sync", ToJson(learned.sync)},
          {"lanes", ToJson(learned.lanes)},
          {"copy", ToJson(learned.copy)},
          {"reads", ToJson(learned.reads)}};
}

Status NotUnderstood() { return Status::Failed(EBADMSG, "understand the history"); }

}  // namespace

std::string HistoryText(const HistoryEntry& entry) {
  const Json json = {{"format", kFormat},
                     {"version", kHistoryVersion},
                     {"file_system", entry.key.file_system},
                     {"program", entry.key.program},
                     {"runs", entry.runs},
                     {"updated", entry.updated},
                     {"learned", ToJson(entry.learned)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status ParseHistory(const std::string& text, HistoryEntry& entry) {
  const Json json = Json::parse(text, nullptr, false);
  if (Member(json, "format") != kFormat) return NotUnderstood();
  const Json& version = Member(json, "version");
  if (!version.is_number_unsigned()) return NotUnderstood();
  if (version.get<uint64_t>() > kHistoryVersion)
    return Status::Failed(EPROTONOSUPPORT, "read a newer Tidelane's history");
  const Json& file_system = Member(json, "file_system");
  const Json& program = Member(json, "program");
  const Json& updated = Member(json, "updated");
  HistoryEntry read;
  if (!file_system.is_string() || !program.is_string() || !updated.is_number_integer() ||
      !Count(Member(json, "runs"), read.runs) || read.runs == 0 ||
      !FromJson(Member(json, "learned"), read.learned,
                version.get<uint64_t>() >= kFirstWithReads)) {
    return NotUnderstood();
  }
  read.key = {file_system.get<std::string>(), program.get<std::string>()};
  read.updated = updated.get<int64_t>();
  entry = std::move(read);
  return {};
}

}  // namespace tidelane::model
