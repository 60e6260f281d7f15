#include "model/copy_cost.h"

#include <gtest/gtest.h>

#include "model/epoch.h"

namespace tidelane::model {
namespace {

constexpr double kKib = 1024, kMib = 1024 * kKib;

TEST(CopyCostTest, UnknownCostsNothing) {
  const CopyCost cost;
  EXPECT_FALSE(cost.known());
  EXPECT_EQ(cost.Seconds(kMib, kMib), 0);
}

TEST(CopyCostTest, OneSizeSpeaksForAll) {
  CopyCost cost;
  cost.Add(kMib, kMib, 1e-4);
  EXPECT_DOUBLE_EQ(cost.Seconds(kMib, 8 * kMib), 8e-4);
  EXPECT_DOUBLE_EQ(cost.Seconds(16 * kKib, kMib), 1e-4);
  EXPECT_DOUBLE_EQ(cost.Seconds(1e12, kMib), 1e-4);
}

TEST(CopyCostTest, BetweenTwoSizesItIsInterpolatedAndBeyondConstant) {
  CopyCost cost;
  cost.Add(64 * kKib, kMib, 4e-4);
  cost.Add(4 * kMib, kMib, 1e-4);
  EXPECT_NEAR(cost.Seconds(512 * kKib, kMib), 2.5e-4, 1e-9) << "three powers of two of six";
  EXPECT_DOUBLE_EQ(cost.Seconds(1e9, kMib), 1e-4);
  EXPECT_DOUBLE_EQ(cost.Seconds(1, kMib), 4e-4);
  EXPECT_EQ(cost.Seconds(kMib, 0), 0);
}

TEST(CopyCostTest, NonsenseIsNotAdded) {
  CopyCost cost;
  cost.Add(kMib, 0, 1);
  cost.Add(kMib, kMib, 0);
  cost.Add(kMib, kMib, -1);
  EXPECT_FALSE(cost.known());
}

TEST(CopyCostTest, CalibrationFindsACostThatMemoryCouldHave) {
  CopyCost cost;
  CalibrateCopy(cost);
  ASSERT_TRUE(cost.known());
  const double seconds = cost.Seconds(256 * kKib, kMib);
  EXPECT_GT(seconds, 1e-6) << "a terabyte a second is no memory";
  EXPECT_LT(seconds, 0.1);
}

TEST(EpochTest, TheEquations) {
  constexpr EpochTimes kHidden{.io = 2, .compute = 5, .overhead = 0.5};
  EXPECT_EQ(SyncEpoch(kHidden), 7);
  EXPECT_EQ(AsyncEpoch(kHidden), 5.5);
  constexpr EpochTimes kPartly{.io = 6, .compute = 4, .overhead = 0.5};
  EXPECT_EQ(AsyncEpoch(kPartly), 6.5);
  constexpr EpochTimes kNothing{.io = 6, .compute = 0, .overhead = 0.5};
  EXPECT_EQ(AsyncEpoch(kNothing), 6.5);
  EXPECT_EQ(Application(1, 30, 2), 33);
}

constexpr QueuedEpoch kEpoch{.times = {.io = 4, .compute = 3, .overhead = 1}, .room = 100};

TEST(EpochTest, WhatIsLeftWaitsForTheNextPause) {
  const Queue first = AfterEpoch(0, kEpoch);
  EXPECT_EQ(first.waits, 1) << "the copy";
  EXPECT_EQ(first.left, 1);
  EXPECT_EQ(AfterEpoch(first.left, kEpoch).left, 2);
  EXPECT_EQ(AfterEpoch(0, {.times = {4, 9, 1}, .room = 100}).left, 0);
}

TEST(EpochTest, WhoAsksWaitsForWhatIsLeft) {
  QueuedEpoch asks = kEpoch;
  asks.asks = true, asks.slack = 3;
  EXPECT_EQ(AfterEpoch(0, asks).waits, 2) << "the corrected equation, less the computation";
  EXPECT_EQ(AfterEpoch(0, asks).waits + asks.times.compute, AsyncEpoch(asks.times));
  asks.slack = 0;
  EXPECT_EQ(AfterEpoch(2, asks).waits, 7) << "also for what was left before";
}

TEST(EpochTest, WhatHasNoRoomIsWaitedFor) {
  QueuedEpoch little = kEpoch;
  little.room = 2;
  EXPECT_EQ(AfterEpoch(0, little).waits, 3);
  EXPECT_EQ(AfterEpoch(0, little).left, 0);
  // Full from epoch to epoch: as the corrected equation says again.
  little.times = {4, 1, 1};
  const Queue queue = AfterEpoch(1, little);
  EXPECT_EQ(queue.left, 1);
  EXPECT_EQ(queue.waits + little.times.compute, AsyncEpoch(little.times));
}

TEST(EpochTest, StorageThatNeedsNoProcessorWorksAlongsideTheCopy) {
  QueuedEpoch alongside = kEpoch;
  alongside.alongside = 1;
  EXPECT_EQ(AfterEpoch(0, alongside).left, 0);
  alongside.times = {1, 0, 4};
  EXPECT_EQ(AfterEpoch(2, alongside).left, 2) << "it never does more than the epoch's own work so";
}

TEST(RecentMeanTest, TheFirstValuesCountAlikeThenTheLastMost) {
  RecentMean mean(0.25);
  mean.Add(10);
  EXPECT_EQ(mean.mean(), 10);
  EXPECT_EQ(mean.deviation(), 0);
  mean.Add(20);
  EXPECT_EQ(mean.mean(), 15);
  for (int i = 0; i < 100; ++i) mean.Add(40);
  EXPECT_NEAR(mean.mean(), 40, 1e-6);
  EXPECT_NEAR(mean.deviation(), 0, 1e-3);
}

TEST(RecentMeanTest, MergedItLiesBetween) {
  RecentMean old(0.25), newer(0.25);
  for (int i = 0; i < 100; ++i) old.Add(10);
  newer.Add(20);
  old.Merge(newer);
  EXPECT_EQ(old.mean(), 12) << "one value beside the four that still count";
  RecentMean empty(0.25);
  empty.Merge(newer);
  EXPECT_EQ(empty.mean(), 20);
}

}  // namespace
}  // namespace tidelane::model
