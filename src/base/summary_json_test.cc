/// \file
/// The JSON, and its schema. docs/summary.schema.json is written by the last test from the tables
/// that the JSON is written from, so that neither can change alone; tests/clients/summary.py holds
/// what real programs' summaries say against it.
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/activity.h"
#include "base/advice.h"
#include "base/summary.h"
#include "base/version.h"

namespace tidelane {
namespace {

using Json = nlohmann::ordered_json;

Json Parsed(const Summary& summary) { return Json::parse(SummaryJson(summary)); }

TEST(SummaryJsonTest, EveryCounterAndFallbackIsThere) {
  Summary summary;
  summary[Counter::kBytesDeferred] = 123456789012;
  summary[Fallback::kSwmrWrite] = 2;
  const Json json = Parsed(summary);
  EXPECT_EQ(json["schema_version"], kSummarySchemaVersion);
  EXPECT_EQ(json["tidelane"]["version"], TIDELANE_VERSION);
  EXPECT_EQ(json["counters"].size(), kCounterCount);
  EXPECT_EQ(json["counters"]["bytes_deferred"], 123456789012);
  EXPECT_EQ(json["fallbacks"].size(), kFallbackCount);
  EXPECT_EQ(json["fallbacks"]["swmr_write"], 2);
  EXPECT_EQ(json["waits"].size(), kWaitCount);
}

TEST(SummaryJsonTest, ReasonsCarryTheirWords) {
  Summary summary;
  summary[Fallback::kQuickStorage] = 3;
  summary.bytes(Fallback::kQuickStorage) = 4096;
  summary[Fallback::kOneCore] = 1;
  const Json reasons = Parsed(summary)["written"]["synchronous"]["reasons"];
  ASSERT_EQ(reasons.size(), 2u);
  EXPECT_EQ(reasons[0]["reason"], "quick_storage");
  EXPECT_EQ(reasons[0]["text"], Text(Fallback::kQuickStorage));
  EXPECT_EQ(reasons[0]["unit"], "write");
  EXPECT_EQ(reasons[0]["count"], 3);
  EXPECT_EQ(reasons[0]["bytes"], 4096);
  EXPECT_EQ(reasons[1]["unit"], "process");
}

TEST(SummaryJsonTest, OverlapHasNoPercentWhereStorageDidNothing) {
  Summary summary;
  EXPECT_TRUE(Parsed(summary)["overlap"]["percent"].is_null());
  summary.overlap = {4'000'000'000, 3'000'000'000};
  EXPECT_EQ(Parsed(summary)["overlap"]["percent"], 75.0);
  EXPECT_EQ(Parsed(summary)["overlap"]["storage_seconds"], 4.0);
}

TEST(SummaryJsonTest, EpochsSayWhatWasExpectedOfThem) {
  Summary summary;
  EXPECT_TRUE(Parsed(summary)["model"]["forecast_error"].is_null());
  Decision decision;
  decision.async = true, decision.seconds = 2;
  summary.decisions.last = {decision, decision};
  summary.decisions.last[1].forecast = EpochForecast{.chosen = 1.5};
  ModeledStorage storage;
  storage.name = "ext4 /dev/sda1", storage.lanes.samples = 2, storage.lanes.r2 = 0.5;
  summary.decisions.storages = {storage};
  const Json model = Parsed(summary)["model"];
  EXPECT_TRUE(model["decisions"][0]["expected"].is_null());
  EXPECT_EQ(model["decisions"][1]["expected"]["chosen"], 1.5);
  EXPECT_EQ(model["decisions"][1]["mode"], "async");
  EXPECT_TRUE(model["storages"][0]["sync"].is_null());
  EXPECT_EQ(model["storages"][0]["lanes"]["r2"], 0.5);
  EXPECT_TRUE(model["storages"][0]["reads"]["lanes"].is_null());
  EXPECT_TRUE(model["reads"]["forecast_error"].is_null());
}

TEST(SummaryJsonTest, ProblemsAreNamedWhateverBytesTheyAreMadeOf) {
  Summary summary;
  summary.incidents.first_error = "cannot write '\xff.h5'";
  summary.incidents.left_open.Add("a.h5");
  const Json problems = Parsed(summary)["problems"];
  EXPECT_EQ(problems["first"], "cannot write '\xef\xbf\xbd.h5'");
  EXPECT_EQ(problems["not_closed"]["count"], 1);
  EXPECT_EQ(problems["not_closed"]["files"], Json::array({"a.h5"}));
}

TEST(SummaryJsonTest, SettingsSayWhereTheyCameFrom) {
  Summary summary;
  summary.config.close_deferred = true;
  summary.config.origins = {{"close", "TIDELANE_CLOSE"}};
  const Json settings = Parsed(summary)["settings"];
  for (const Json& setting : settings) {
    if (setting["name"] != "close") continue;
    EXPECT_EQ(setting["value"], "deferred");
    EXPECT_EQ(setting["origin"], "TIDELANE_CLOSE");
    return;
  }
  ADD_FAILURE() << "close is not among the settings";
}

// The schema ------------------------------------------------------------------------------------

Json Described(const char* text, Json schema) {
  schema["description"] = text;
  return schema;
}
Json Number(const char* text) {
  return {{"description", text}, {"type", "number"}, {"minimum", 0}};
}
Json Integer(const char* text) {
  return {{"description", text}, {"type", "integer"}, {"minimum", 0}};
}
Json String(const char* text) { return {{"description", text}, {"type", "string"}}; }
Json List(const char* text, Json items) {
  return {{"description", text}, {"type", "array"}, {"items", std::move(items)}};
}

// With exactly these keys.
Json Object(const char* text, Json properties) {
  Json required = Json::array();
  for (const auto& [key, schema] : properties.items()) required.push_back(key);
  return {{"description", text},
          {"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

Json WrittenSchema() {
  Json reasons = Json::array();
  for (unsigned i = 0; i < kFallbackCount; ++i) reasons.push_back(Name(static_cast<Fallback>(i)));
  const Json reason = Object(
      "one reason", {{"reason", {{"description", "a key of `fallbacks`"}, {"enum", reasons}}},
                     {"text", String("the same in words")},
                     {"unit", String("what is counted: file, write, dataset or process")},
                     {"count", Integer("how many of them")},
                     {"bytes", Integer("bytes written synchronously for this reason")}});
  return Object(
      "what the program wrote",
      {{"asynchronous",
        Object("stored by lanes, after the write call had returned",
               {{"bytes", Integer("bytes")},
                {"operations", Integer("driver-level writes")},
                {"lent_bytes", Integer("of the bytes, those stored from the program's own buffer")},
                {"copy_seconds", Number("time that capturing large ones took the program")}})},
       {"synchronous",
        Object("stored by the program's thread, inside the write call",
               {{"bytes", Integer("bytes")},
                {"operations", Integer("write requests")},
                {"reasons", List("why, and what else could not be done as usual", reason)}})}});
}

Json WaitsSchema() {
  Json waits;
  for (unsigned i = 0; i < kWaitCount; ++i) {
    const WaitKind& kind = KindOf(static_cast<Wait>(i));
    waits[kind.key] = Object(
        Text(kind.ns), {{"seconds", Number("time waited")}, {"times", Integer(Text(kind.times))}});
  }
  return Object("what the program waited for; a wait inside another is the outer one's",
                std::move(waits));
}

Json OrNull(Json schema) {
  schema["type"] = Json::array({schema["type"], "null"});
  return schema;
}

Json ReadEpochsSchema() {
  return Object(
      "phases of large reads and the computation after each",
      {{"epochs", Integer("how many")},
       {"asynchronous", Integer("of them, those that lanes had read, or read after their calls")},
       {"forecasts", Integer("epochs of which something had been expected")},
       {"forecast_error", OrNull(Number("the mean of their relative errors"))},
       {"epoch_seconds", Number("all epochs")}});
}

Json ModelSchema() {
  const auto rate = [](const char* text) {
    return OrNull(
        Object(text, {{"samples", Number("measurements; old ones count less")},
                      {"bytes_per_second", Number("of a phase of the usual size")},
                      {"error", Number("of predictions on data not seen, relative")},
                      {"form",
                       {{"description", "of the regression that erred least"},
                        {"enum", {"linear", "linear-log", "time"}}}},
                      {"r2", OrNull(Number("of that regression; null where nothing varied"))}}));
  };
  const Json expected = OrNull(Object(
      "seconds that were expected of it; null where nothing was known yet",
      {{"chosen", Number("in the mode that was chosen")},
       {"sync", Number("written by the program: t_io + t_comp")},
       {"async", Number("handed over, with what is left from before, the arena, and early waits")},
       {"async_by_equation", Number("max(t_comp, t_io) + t_overhead")}}));
  const Json epoch =
      Object("one epoch on one storage",
             {{"epoch", Integer("its number, from 1")},
              {"file", String("the first one of the phase")},
              {"storage", String("kind and source of the file system")},
              {"begin_seconds", Number("on the clock of the timeline")},
              {"bytes", Integer("of large writes")},
              {"mode", {{"description", "whose the writes were"}, {"enum", {"async", "sync"}}}},
              {"fixed", {{"description", "by mode=async or sync"}, {"type", "boolean"}}},
              {"last", {{"description", "no computation followed"}, {"type", "boolean"}}},
              {"expected", expected},
              {"seconds", Number("of it all")},
              {"compute_seconds", Number("in which the program neither wrote nor waited")}});
  const Json reads =
      Object("of large reads", {{"sync", rate("that the program waited for; null: never")},
                                {"lanes", rate("that lanes made before it waited; null: never")},
                                {"copy_bytes_per_second", Number("from what lanes had read")}});
  const Json storage = Object("one", {{"name", String("kind and source of the file system")},
                                      {"earlier_runs", Integer("in the history")},
                                      {"sync", rate("as the program saw it; null: never")},
                                      {"lanes", rate("as storage saw it; null: never")},
                                      {"copy_bytes_per_second", Number("of handing over")},
                                      {"reads", reads}});
  return Object("epochs: an I/O phase and the computation after it",
                {{"epochs", Integer("how many")},
                 {"asynchronous", Integer("of them, those whose writes were handed over")},
                 {"changes", Integer("of the mode")},
                 {"forecasts", Integer("epochs of which something had been expected")},
                 {"forecast_error", OrNull(Number("the mean of their relative errors"))},
                 {"start_seconds", Number("before the first phase")},
                 {"epoch_seconds", Number("all epochs")},
                 {"end_seconds", Number("after the last phase")},
                 {"storages", List("what is known of their speed", storage)},
                 {"decisions", List("the last 128 epochs", epoch)},
                 {"reads", ReadEpochsSchema()}});
}

Json ProblemsSchema() {
  const auto files = [](const char* text) {
    return Object(
        text, {{"count", Integer("how many")}, {"files", List("the first few", String("a path"))}});
  };
  return Object("what went wrong",
                {{"count", Integer("failed writes, each attempt")},
                 {"first", String("the first failure's message; empty if there was none")},
                 {"last", String("the last one's")},
                 {"not_stored", files("closed files whose bytes could not all be stored")},
                 {"not_closed", files("files that were open when HDF5 ended")}});
}

Json SettingsSchema() {
  return List("the settings in force, and variables that were given and have no effect",
              Object("one setting",
                     {{"name", String("as in docs/settings.md")},
                      {"value", String("as it could be given")},
                      {"origin", String("\"default\", a variable, or a file and line")},
                      {"note", String("why a variable has no effect; empty for settings")}}));
}

Json Schema() {
  Json counters;
  for (unsigned i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    counters[Name(counter)] = Integer(Text(counter));
  }
  Json fallbacks;
  for (unsigned i = 0; i < kFallbackCount; ++i) {
    const auto reason = static_cast<Fallback>(i);
    fallbacks[Name(reason)] = Integer(Text(reason));
  }
  Json properties = {
      {"schema_version",
       Described("raised when a key is renamed or removed, or changes its meaning",
                 {{"const", kSummarySchemaVersion}})},
      {"tidelane", Object("who says this", {{"version", String("Tidelane's version")},
                                            {"pid", Integer("the process's number")}})},
      {"run_seconds", Number("since the plugin was loaded, or since the fork")},
      {"written", WrittenSchema()},
      {"merged", Object("what became of asynchronous writes",
                        {{"writes_in", Integer("driver-level writes that were captured")},
                         {"requests_out", Integer("requests that lanes made to storage")},
                         {"bytes_out", Integer("bytes in them, gaps included")},
                         {"gap_bytes", Integer("bytes read and written back to join writes")},
                         {"gap_reads", Integer("reads made for that")}})},
      {"waits", WaitsSchema()},
      {"overlap",
       Object("how much of storage's work was hidden",
              {{"storage_seconds", Number("time in which at least one lane was at work")},
               {"hidden_seconds", Number("the part in which no thread of the program waited")},
               {"percent", Described("hidden of storage; null where storage had nothing to do",
                                     {{"type", {"number", "null"}}})}})},
      {"arena",
       Object("memory for captured bytes", {{"peak_bytes", Integer("most in use at one moment")},
                                            {"cap_bytes", Integer("most it may use")}})},
      {"model", ModelSchema()},
      {"problems", ProblemsSchema()},
      {"advice", List("settings that would help, most at stake first",
                      Object("one rule's",
                             {{"rule", {{"description", "a stable key"}, {"enum", AdviceRules()}}},
                              {"text", String("the advice")}}))},
      {"settings", SettingsSchema()},
      {"counters", Object("everything that is counted", std::move(counters))},
      {"fallbacks", Object("how often each reason was met", std::move(fallbacks))}};
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "Tidelane's end-of-run summary (TIDELANE_SUMMARY=<path>)"}};
  schema.update(Object("docs/summary.md explains it", std::move(properties)));
  return schema;
}

TEST(SummaryJsonTest, TheSchemaNamesTheKeysInTheirOrder) {
  const auto keys = [](const Json& object) {
    std::vector<std::string> names;
    for (const auto& [key, value] : object.items()) names.push_back(key);
    return names;
  };
  const Json schema = Schema();
  const Json json = Parsed(Summary());
  EXPECT_EQ(keys(json), keys(schema["properties"]));
  for (const auto& [key, value] : json.items()) {
    if (!value.is_object()) continue;
    EXPECT_EQ(keys(value), keys(schema["properties"][key]["properties"])) << key;
  }
}

std::string DocsFile(const std::string& name) {
  const char* source = std::getenv("TIDELANE_TEST_SOURCE_DIR");
  if (source == nullptr) return "";
  std::ifstream in(source + ("/docs/" + name));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(SummaryJsonTest, ThePageExplainsEveryKeyWaitReasonAndRule) {
  const std::string page = DocsFile("summary.md");
  if (page.empty()) GTEST_SKIP() << "TIDELANE_TEST_SOURCE_DIR is not set, as it is by ctest";
  std::vector<std::string> words = AdviceRules();
  for (unsigned i = 0; i < kWaitCount; ++i) {
    words.emplace_back(KindOf(static_cast<Wait>(i)).label);
  }
  for (unsigned i = 0; i < kFallbackCount; ++i) words.emplace_back(Name(static_cast<Fallback>(i)));
  const Json json = Parsed(Summary());
  for (const auto& [key, value] : json.items()) words.push_back(key);
  for (const std::string& word : words) {
    EXPECT_NE(page.find("`" + word + "`"), std::string::npos) << word << " is not on the page";
  }
}

// A changed schema is written with TIDELANE_TEST_RENEW=1, and committed.
TEST(SummaryJsonTest, TheCommittedSchemaIsThisOne) {
  const char* source = std::getenv("TIDELANE_TEST_SOURCE_DIR");
  if (source == nullptr) GTEST_SKIP() << "TIDELANE_TEST_SOURCE_DIR is not set, as it is by ctest";
  const std::string path = std::string(source) + "/docs/summary.schema.json";
  const std::string wanted = Schema().dump(2) + "\n";
  if (std::getenv("TIDELANE_TEST_RENEW") != nullptr) std::ofstream(path) << wanted;
  EXPECT_TRUE(DocsFile("summary.schema.json") == wanted)
      << path << " is not what the tables say: run\n"
      << "  TIDELANE_TEST_RENEW=1 ctest --test-dir build/release -R "
         "TheCommittedSchemaIsThisOne";
}

}  // namespace
}  // namespace tidelane
