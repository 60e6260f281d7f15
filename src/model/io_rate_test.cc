#include "model/io_rate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "model/model_data.h"

namespace tidelane::model {
namespace {

constexpr double kMib = 1 << 20;

TEST(IoRateTest, NothingIsPredictedBeforeTheFirstMeasurement) {
  EXPECT_FALSE(IoRate().Predict(kMib, 1).has_value());
}

TEST(IoRateTest, OneMeasurementIsARate) {
  IoRate rate;
  rate.Add(10 * kMib, 1, 0.5);
  EXPECT_DOUBLE_EQ(rate.Predict(10 * kMib, 1)->seconds, 0.5);
  EXPECT_DOUBLE_EQ(rate.Predict(40 * kMib, 64)->seconds, 2);
  EXPECT_EQ(rate.Predict(kMib, 1)->relative_error, 1) << "nobody knows yet";
}

TEST(IoRateTest, NonsenseIsNotAdded) {
  IoRate rate;
  rate.Add(0, 1, 1);
  rate.Add(kMib, 0, 1);
  rate.Add(kMib, 1, 0);
  rate.Add(kMib, 1, -1);
  rate.Add(std::nan(""), 1, 1);
  EXPECT_FALSE(rate.Predict(kMib, 1).has_value());
}

// Trained on some sizes, asked for others: a device with a latency and a bandwidth.
TEST(IoRateTest, ALatencyAndABandwidthArePredictedForSizesNotSeen) {
  IoRate rate;
  const auto seconds = [](double bytes) { return 0.002 + bytes / 200e6; };
  for (int round = 0; round < 5; ++round) {
    for (const double mib : {0.25, 1., 4., 16., 64.}) rate.Add(mib * kMib, 1, seconds(mib * kMib));
  }
  EXPECT_EQ(rate.Predict(kMib, 1)->form, Form::kTime);
  for (const double mib : {0.5, 2., 8., 32., 128.}) {
    const double wanted = seconds(mib * kMib);
    EXPECT_NEAR(rate.Predict(mib * kMib, 1)->seconds, wanted, 0.01 * wanted) << mib << " MiB";
  }
  EXPECT_GT(*rate.Predict(kMib, 1)->r2, 0.99);
}

// Weak scaling that saturates, as the publication's file systems: the logarithms say it.
TEST(IoRateTest, RatesThatGrowWithTheLogarithmOfTheRanks) {
  IoRate rate;
  Numbers numbers(7);
  const auto seconds = [](double ranks) {
    return 32 * kMib * ranks / (1e9 + 3e9 * std::log(ranks));
  };
  for (int round = 0; round < 20; ++round) {
    for (double ranks = 32; ranks <= 2048; ranks *= 2)
      rate.Add(32 * kMib * ranks, ranks, seconds(ranks) * numbers.Between(0.97, 1.03));
  }
  EXPECT_EQ(rate.Predict(kMib, 1)->form, Form::kLinearLog);
  EXPECT_GT(*rate.Predict(kMib, 1)->r2, 0.9);
  for (const double ranks : {96., 384., 1536., 4096.}) {
    const double wanted = seconds(ranks);
    EXPECT_NEAR(rate.Predict(32 * kMib * ranks, ranks)->seconds, wanted, 0.05 * wanted) << ranks;
  }
}

TEST(IoRateTest, RatesThatGrowWithTheSize) {
  IoRate rate;
  for (int round = 0; round < 5; ++round) {
    for (double mib = 1; mib <= 16; ++mib) rate.Add(mib * kMib, 1, mib * kMib / (1e8 + 1e7 * mib));
  }
  EXPECT_EQ(rate.Predict(kMib, 1)->form, Form::kLinear);
  EXPECT_NEAR(rate.Predict(12.5 * kMib, 1)->seconds, 12.5 * kMib / 2.25e8, 1e-4);
}

TEST(IoRateTest, ThePredictionsErrorIsThatOnDataNotSeen) {
  IoRate rate;
  Numbers numbers(3);
  for (int i = 0; i < 400; ++i) {
    const double bytes = kMib * numbers.Between(1, 64);
    rate.Add(bytes, 1, bytes / 1e8 * numbers.Between(0.8, 1.2));
  }
  // A value between 0.8 and 1.2 is missed by 0.1 on average.
  EXPECT_NEAR(rate.Predict(kMib, 1)->relative_error, 0.1, 0.06);
}

TEST(IoRateTest, TheNewestMeasurementsCountMost) {
  IoRate rate;
  for (int i = 0; i < 500; ++i) rate.Add(kMib, 1, 0.001);
  for (int i = 0; i < 150; ++i) rate.Add(kMib, 1, 0.010);
  EXPECT_NEAR(rate.Predict(kMib, 1)->seconds, 0.010, 0.005);
}

// Whatever was measured, in every form.
TEST(IoRateTest, TimesAreNeverNegativeAndGrowWithTheSize) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Numbers numbers(seed);
    IoRate rate;
    const int count = static_cast<int>(numbers.Between(1, 30));
    for (int i = 0; i < count; ++i) {
      rate.Add(std::exp(numbers.Between(0, 25)), std::floor(numbers.Between(1, 100)),
               std::exp(numbers.Between(-15, 5)));
    }
    for (const Form form : {Form::kLinear, Form::kLinearLog, Form::kTime}) {
      for (const double ranks : {1., 10., 10'000.}) {
        double before = 0;
        for (double bytes = 1; bytes < 1e13; bytes *= 3) {
          const double seconds = rate.PredictBy(form, bytes, ranks)->seconds;
          ASSERT_TRUE(std::isfinite(seconds));
          ASSERT_GT(seconds, 0);
          ASSERT_GE(seconds, before * (1 - 1e-9)) << "seed " << seed << ", " << Name(form);
          before = seconds;
        }
      }
    }
  }
}

TEST(IoRateTest, StateComesBackAndImpossibleOnesDoNot) {
  IoRate rate;
  for (double mib = 1; mib < 20; ++mib) rate.Add(mib * kMib, 1, 0.001 + mib * 0.005);
  IoRate read;
  ASSERT_TRUE(read.SetState(rate.state()));
  EXPECT_EQ(read.Predict(5e6, 1)->seconds, rate.Predict(5e6, 1)->seconds);
  IoRate::State state = rate.state();
  std::swap(state.slowest, state.quickest);
  EXPECT_FALSE(read.SetState(state));
  EXPECT_TRUE(read.SetState(IoRate().state())) << "nothing is known: that is possible";
  EXPECT_FALSE(read.Predict(5e6, 1).has_value());
}

}  // namespace
}  // namespace tidelane::model
