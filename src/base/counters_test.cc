/// \file
/// Counters: totals under contention, peaks, names.
#include "base/counters.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

TEST(CountersTest, LosesNothingBetweenThreads) {
  const uint64_t bytes_before = Read(Counter::kBytesSync);
  const uint64_t falls_before = Read(Fallback::kDriver);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < 10000; ++n) {
        Count(Counter::kBytesSync, 3);
        Count(Fallback::kDriver);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Read(Counter::kBytesSync) - bytes_before, 120000u);
  EXPECT_EQ(Read(Fallback::kDriver) - falls_before, 40000u);
}

TEST(CountersTest, MaxKeepsThePeakOfAllThreads) {
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (uint64_t n = 0; n < 10000; ++n) CountMax(Counter::kArenaPeakBytes, n * 4 + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Read(Counter::kArenaPeakBytes), 39999u);
  CountMax(Counter::kArenaPeakBytes, 5);
  EXPECT_EQ(Read(Counter::kArenaPeakBytes), 39999u);
}

TEST(CountersTest, AForkedChildCountsFromZeroAndKeepsCaps) {
  CountMax(Counter::kArenaCapBytes, 1000);
  const uint64_t cap = Read(Counter::kArenaCapBytes);
  Count(Counter::kWritesSync);
  Count(Fallback::kModeSync);
  CountSync(Fallback::kModeSync, 10);
  ResetCountersAfterFork();
  EXPECT_EQ(Read(Counter::kWritesSync), 0u);
  EXPECT_EQ(Read(Counter::kBytesSync), 0u);
  EXPECT_EQ(Read(Fallback::kModeSync), 0u);
  EXPECT_EQ(ReadBytes(Fallback::kModeSync), 0u);
  EXPECT_EQ(Read(Counter::kArenaCapBytes), cap);
}

TEST(CountersTest, SynchronousBytesAreCountedByReason) {
  const uint64_t bytes = Read(Counter::kBytesSync);
  const uint64_t swmr = ReadBytes(Fallback::kSwmrWrite);
  const uint64_t times = Read(Fallback::kSwmrWrite);
  CountSync(Fallback::kSwmrWrite, 7);
  EXPECT_EQ(Read(Counter::kBytesSync) - bytes, 7u);
  EXPECT_EQ(ReadBytes(Fallback::kSwmrWrite) - swmr, 7u);
  EXPECT_EQ(Read(Fallback::kSwmrWrite), times) << "the reason is counted where it arises";
}

TEST(CountersTest, EveryNameIsAUniqueKey) {
  std::set<std::string> names;
  for (unsigned i = 0; i < kCounterCount; ++i) names.insert(Name(static_cast<Counter>(i)));
  EXPECT_EQ(names.size(), kCounterCount);
  EXPECT_STREQ(Name(Counter::kBytesDeferred), "bytes_deferred");
  EXPECT_STREQ(Name(Counter::kErrors), "errors");
  std::set<std::string> reasons;
  for (unsigned i = 0; i < kFallbackCount; ++i) reasons.insert(Name(static_cast<Fallback>(i)));
  EXPECT_EQ(reasons.size(), kFallbackCount);
  EXPECT_STREQ(Name(Fallback::kNoThreads), "no_threads");
}

}  // namespace
}  // namespace tidelane
