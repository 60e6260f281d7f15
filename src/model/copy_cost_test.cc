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
  EXPECT_EQ(AsyncEpochAsPrinted(kHidden), 5.5) << "both say the same where all is hidden";
  constexpr EpochTimes kPartly{.io = 6, .compute = 4, .overhead = 0.5};
  EXPECT_EQ(AsyncEpoch(kPartly), 6.5);
  EXPECT_EQ(AsyncEpochAsPrinted(kPartly), 4.5) << "storage cannot do 6 s of work in 4.5 s";
  constexpr EpochTimes kNothing{.io = 6, .compute = 0, .overhead = 0.5};
  EXPECT_EQ(AsyncEpoch(kNothing), 6.5);
  EXPECT_EQ(AsyncEpochAsPrinted(kNothing), 6.5);
  EXPECT_EQ(Application(1, 30, 2), 33);
}

TEST(EpochTest, OnlyWhatHasRoomIsHidden) {
  EXPECT_EQ(AsyncWaits(4, 1, 10, 1), 1);
  EXPECT_EQ(AsyncWaits(4, 1, 3, 1), 2);
  EXPECT_EQ(AsyncWaits(4, 1, 10, 0.25), 4) << "memory for a quarter of the phase";
  EXPECT_EQ(AsyncWaits(4, 1, 0, 1), 5) << "it asks at once";
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
