/// \file
/// The overlap of waits and work, on a clock that the test holds.
#include "base/overlap.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

TEST(OverlapTest, NothingHappenedNothingCounts) {
  Overlap overlap;
  overlap.WaitBegins(100);
  overlap.WaitEnds(200);
  const Overlap::Totals totals = overlap.At(1000);
  EXPECT_EQ(totals.storage_ns, 0u);
  EXPECT_EQ(totals.hidden_ns, 0u);
}

TEST(OverlapTest, WorkThatNobodyWaitsForIsHidden) {
  Overlap overlap;
  overlap.WorkBegins(100);
  overlap.WorkEnds(150);
  const Overlap::Totals totals = overlap.At(1000);
  EXPECT_EQ(totals.storage_ns, 50u);
  EXPECT_EQ(totals.hidden_ns, 50u);
}

TEST(OverlapTest, TheWaitIsCutOutOfTheWork) {
  Overlap overlap;
  overlap.WorkBegins(100);
  overlap.WaitBegins(130);
  overlap.WorkEnds(150);
  overlap.WorkBegins(170);
  overlap.WaitEnds(180);
  overlap.WorkEnds(200);
  const Overlap::Totals totals = overlap.At(1000);
  EXPECT_EQ(totals.storage_ns, 80u);
  EXPECT_EQ(totals.hidden_ns, 30u + 20u);
}

TEST(OverlapTest, SeveralLanesAreOneStorageAndSeveralWaitersOneWait) {
  Overlap overlap;
  overlap.WorkBegins(100);
  overlap.WorkBegins(120);
  overlap.WaitBegins(140);
  overlap.WaitBegins(150);
  overlap.WaitEnds(160);
  overlap.WorkEnds(170);
  overlap.WaitEnds(180);
  overlap.WorkEnds(200);
  const Overlap::Totals totals = overlap.At(1000);
  EXPECT_EQ(totals.storage_ns, 100u);
  EXPECT_EQ(totals.hidden_ns, 40u + 20u);
}

TEST(OverlapTest, WhatIsStillGoingOnCountsSoFar) {
  Overlap overlap;
  overlap.WorkBegins(100);
  EXPECT_EQ(overlap.At(130).hidden_ns, 30u);
  overlap.WaitBegins(140);
  EXPECT_EQ(overlap.At(150).storage_ns, 50u);
  EXPECT_EQ(overlap.At(150).hidden_ns, 40u);
}

// Threads read the clock before they take the lock.
TEST(OverlapTest, AnEarlierTimeCountsAsTheLastOneSeen) {
  Overlap overlap;
  overlap.WorkBegins(100);
  overlap.WaitBegins(150);
  overlap.WaitEnds(140);
  overlap.WorkEnds(160);
  const Overlap::Totals totals = overlap.At(120);
  EXPECT_EQ(totals.storage_ns, 60u);
  EXPECT_EQ(totals.hidden_ns, 60u);
}

TEST(OverlapTest, ManyThreadsLeaveNothingBehind) {
  Overlap overlap;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&overlap, i] {
      for (uint64_t at = 1; at <= 10'000; ++at) {
        i % 2 == 0 ? overlap.WorkBegins(at) : overlap.WaitBegins(at);
        i % 2 == 0 ? overlap.WorkEnds(at) : overlap.WaitEnds(at);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t storage = overlap.At(10'000).storage_ns;
  EXPECT_EQ(overlap.At(20'000).storage_ns, storage) << "somebody still works";
  overlap.WorkBegins(20'000);
  overlap.WorkEnds(20'010);
  EXPECT_EQ(overlap.At(20'010).storage_ns, storage + 10);
}

}  // namespace
}  // namespace tidelane
