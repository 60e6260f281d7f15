/// \file
/// The timeline. The ring is one per process: these tests share it and count from what they find.
#include "base/trace.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tidelane {
namespace {

constexpr uint32_t kRing = 1024;

nlohmann::json Written() {
  const std::string path = testing::TempDir() + "/tidelane-trace-" + std::to_string(getpid());
  const Status status = WriteTrace(path);
  EXPECT_TRUE(status.ok()) << status.Message();
  auto trace = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  return trace;
}

// The "X" events that carry this many bytes: each test uses a number of its own.
std::vector<nlohmann::json> Events(const nlohmann::json& trace, uint64_t bytes,
                                   const char* key = "bytes") {
  std::vector<nlohmann::json> found;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["args"].value(key, uint64_t{0}) == bytes)
      found.push_back(event);
  }
  return found;
}

TEST(TraceTest, OffRecordsNothing) {
  internal::tracing.store(false);
  {
    const Span span(SpanKind::kWrite, 1001);
  }
  EXPECT_TRUE(Events(Written(), 1001).empty());
}

TEST(TraceTest, ASpanBecomesACompleteEvent) {
  EnableTrace(kRing);
  const uint64_t before = NowNs();
  internal::RecordSpan(SpanKind::kPwrite, before + 1'234'567, before + 3'234'570, 1002);
  const auto events = Events(Written(), 1002);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["name"], "pwrite");
  EXPECT_EQ(events[0]["pid"], getpid());
  EXPECT_EQ(events[0]["tid"], gettid());
  EXPECT_NEAR(events[0]["ts"].get<double>(), static_cast<double>(before + 1'234'567) / 1e3, 0.01);
  EXPECT_NEAR(events[0]["dur"].get<double>(), 2000.003, 1e-6);
}

TEST(TraceTest, EveryKindHasItsName) {
  EnableTrace(kRing);
  const char* const expected[] = {
      "write",        "write through",     "read",        "flush wait",  "close wait",
      "request wait", "arena wait",        "filter wait", "open wait",   "exit wait",
      "fork wait",    "ranks wait",        "wait",        "pwrite",      "gap read",
      "GPU copy",     "epoch, async",      "epoch, sync", "drain: mark", "drain: extents",
      "drain: size",  "drain: superblock", "drained",     "drain: stuck"};
  for (unsigned i = 0; i < static_cast<unsigned>(SpanKind::kCount); ++i) {
    const Span span(static_cast<SpanKind>(i), 2000 + i);
  }
  const auto trace = Written();
  for (unsigned i = 0; i < static_cast<unsigned>(SpanKind::kCount); ++i) {
    const bool epoch = i == static_cast<unsigned>(SpanKind::kEpochAsync) ||
                       i == static_cast<unsigned>(SpanKind::kEpochSync);
    const auto events = Events(trace, 2000 + i, epoch ? "expected_us" : "bytes");
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0]["name"], expected[i]);
  }
}

TEST(TraceTest, ThreadsAreNamed) {
  EnableTrace(kRing);
  int tid = 0;
  std::thread([&tid] {
    NameTraceThread("lane \"7\"");
    tid = gettid();
    const Span span(SpanKind::kPwrite, 1003);
  }).join();
  const auto trace = Written();
  ASSERT_EQ(Events(trace, 1003).size(), 1u);
  EXPECT_EQ(Events(trace, 1003)[0]["tid"], tid);
  const auto& all = trace["traceEvents"];
  EXPECT_TRUE(std::ranges::any_of(all, [tid](const nlohmann::json& event) {
    return event["ph"] == "M" && event["name"] == "thread_name" && event["tid"] == tid &&
           event["args"]["name"] == "lane \"7\"";
  }));
}

TEST(TraceTest, TheOldestAreLostAndCounted) {
  EnableTrace(kRing);
  const auto lost_before = Written()["otherData"]["lost_spans"].get<uint64_t>();
  for (uint64_t i = 0; i < 2 * kRing; ++i) internal::RecordSpan(SpanKind::kRead, 5, 6, 10000 + i);
  const auto trace = Written();
  EXPECT_TRUE(Events(trace, 10000 + kRing - 1).empty());
  EXPECT_EQ(Events(trace, 10000 + kRing).size(), 1u);
  EXPECT_EQ(Events(trace, 10000 + 2 * kRing - 1).size(), 1u);
  EXPECT_GE(trace["otherData"]["lost_spans"].get<uint64_t>(), lost_before + kRing);
}

// Writers overtake the reader all the time: what is written must be whole events all the same.
TEST(TraceTest, WritingWhileThreadsRecordSeesOnlyWholeSpans) {
  EnableTrace(kRing);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&stop] {
      // Begin, duration and bytes belong together.
      for (uint64_t i = 1; !stop.load(); ++i) {
        internal::RecordSpan(SpanKind::kOpenWait, i * 1000, i * 4000, i);
      }
    });
  }
  size_t seen = 0;
  for (int round = 0; round < 10 || seen == 0; ++round) {  // a busy machine starts threads late
    const auto trace = Written();
    for (const auto& event : trace["traceEvents"]) {
      if (event["name"] != "open wait" || event["args"]["bytes"] == 2007) continue;
      const auto bytes = event["args"]["bytes"].get<uint64_t>();
      EXPECT_EQ(event["ts"].get<double>(), static_cast<double>(bytes));
      EXPECT_EQ(event["dur"].get<double>(), static_cast<double>(3 * bytes));
      ++seen;
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(seen, 0u);
}

TEST(TraceTest, AForkedChildStartsItsOwnTimeline) {
  EnableTrace(kRing);
  {
    const Span span(SpanKind::kRead, 1004);
  }
  const pid_t child = fork();
  if (child == 0) {
    ResetTraceAfterFork();
    {
      const Span span(SpanKind::kRead, 1005);
    }
    const auto trace = Written();
    const auto events = Events(trace, 1005);
    const bool good = Events(trace, 1004).empty() && events.size() == 1 &&
                      events[0]["tid"] == getpid() && events[0]["pid"] == getpid();
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(Events(Written(), 1004).size(), 1u);
}

}  // namespace
}  // namespace tidelane
