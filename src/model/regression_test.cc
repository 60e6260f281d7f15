#include "model/regression.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "model/model_data.h"

namespace tidelane::model {
namespace {

void ExpectClose(double found, double wanted, double relative = 1e-9) {
  EXPECT_NEAR(found, wanted, relative * std::abs(wanted)) << found << " instead of " << wanted;
}

struct Row {
  double x0, x1, y, weight;
};

std::vector<Row> Rows() {
  Numbers numbers(42);
  std::vector<Row> rows;
  for (int i = 0; i < 200; ++i) {
    Row row;
    row.x0 = 1 + 1e9 * numbers.Next();
    row.x1 = 1 + 1023 * numbers.Next();
    row.y = 5e8 + 0.3 * row.x0 - 2e5 * row.x1 + 4e7 * (numbers.Next() - 0.5);
    row.weight = 0.1 + numbers.Next();
    rows.push_back(row);
  }
  return rows;
}

TEST(RegressionTest, NothingIsKnownBeforeTheFirstValue) {
  EXPECT_FALSE(Regression().Solve().has_value());
}

TEST(RegressionTest, OneValueIsAConstant) {
  Regression sums;
  sums.Add(5, 7, 100);
  const auto fit = sums.Solve();
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->At(1000, -3), 100);
  EXPECT_FALSE(fit->r2.has_value()) << "there is no variance to explain";
}

TEST(RegressionTest, TwoValuesAreALine) {
  Regression sums;
  sums.Add(1, 4, 10);
  sums.Add(3, 4, 16);
  const auto fit = sums.Solve();
  EXPECT_DOUBLE_EQ(fit->slope[0], 3);
  EXPECT_EQ(fit->slope[1], 0) << "it did not vary";
  EXPECT_DOUBLE_EQ(fit->intercept, 7);
  EXPECT_DOUBLE_EQ(*fit->r2, 1);
}

TEST(RegressionTest, WhatOnlyRepeatsTheOtherIsLeftOut) {
  Regression sums;
  for (double x = 1; x < 20; ++x) sums.Add(x, 3 * x, 2 * x + 1);
  const auto fit = sums.Solve();
  EXPECT_NEAR(fit->At(100, 300), 201, 1e-6);
  EXPECT_TRUE(fit->slope[0] == 0 || fit->slope[1] == 0);
}

// numpy.linalg.lstsq of the same rows.
TEST(RegressionTest, AsNumpyFindsItWithWeights) {
  Regression sums;
  for (const Row& row : Rows()) sums.Add(row.x0, row.x1, row.y, row.weight);
  const auto fit = sums.Solve();
  ExpectClose(fit->intercept, 504751866.3356792);
  ExpectClose(fit->slope[0], 0.2996792377763905);
  ExpectClose(fit->slope[1], -206215.3242548125);
  ExpectClose(*fit->r2, 0.9879100174724476);
}

TEST(RegressionTest, AsNumpyFindsItOfLogarithms) {
  Regression sums;
  for (const Row& row : Rows()) sums.Add(std::log(row.x0), std::log(row.x1), row.y);
  const auto fit = sums.Solve();
  ExpectClose(fit->intercept, -733318254.8534056);
  ExpectClose(fit->slope[0], 80328735.58653691);
  ExpectClose(fit->slope[1], -51212894.14581451);
  ExpectClose(*fit->r2, 0.7600795423239779);
}

// Sums of squares would have lost everything here.
TEST(RegressionTest, ASmallSpreadAroundALargeMeanIsNotLost) {
  Regression sums;
  for (int i = 0; i < 100'000; ++i) {
    const double x = i % 100;
    sums.Add(1e9 + x, 1, 1e12 + 2 * x);
  }
  const auto fit = sums.Solve();
  ExpectClose(fit->slope[0], 2, 1e-6);
  EXPECT_NEAR(*fit->r2, 1, 1e-6);
}

TEST(RegressionTest, MergedIsAsAddedInOneGo) {
  Regression whole, first, second;
  int i = 0;
  for (const Row& row : Rows()) {
    whole.Add(row.x0, row.x1, row.y, row.weight);
    (i++ < 71 ? first : second).Add(row.x0, row.x1, row.y, row.weight);
  }
  first.Merge(second);
  ExpectClose(first.weight(), whole.weight());
  ExpectClose(first.Solve()->slope[0], whole.Solve()->slope[0]);
  ExpectClose(first.Solve()->slope[1], whole.Solve()->slope[1]);
  ExpectClose(*first.Solve()->r2, *whole.Solve()->r2);
}

TEST(RegressionTest, WhatFadesYields) {
  Regression sums;
  for (int i = 0; i < 100; ++i) sums.Add(i, 1, 5);
  for (int i = 0; i < 100; ++i) {
    sums.Fade(0.8);
    sums.Add(i, 1, 1000);
  }
  EXPECT_NEAR(sums.Solve()->At(50, 1), 1000, 1);
  EXPECT_LT(sums.weight(), 6) << "and the weight stays bounded";
}

TEST(RegressionTest, WhatIsNoNumberIsNotAdded) {
  Regression sums;
  sums.Add(std::nan(""), 1, 1);
  sums.Add(1, std::numeric_limits<double>::infinity(), 1);
  sums.Add(1, 1, std::nan(""));
  sums.Add(1, 1, 1, 0);
  sums.Add(1, 1, 1, -2);
  EXPECT_EQ(sums.weight(), 0);
}

TEST(RegressionTest, NumbersComeBackAndImpossibleOnesDoNot) {
  Regression sums;
  for (const Row& row : Rows()) sums.Add(row.x0, row.x1, row.y, row.weight);
  auto numbers = sums.Numbers();
  Regression read;
  ASSERT_TRUE(read.SetNumbers(numbers));
  EXPECT_EQ(read.Numbers(), numbers);
  auto negative = numbers;
  negative[4] = -1;
  EXPECT_FALSE(read.SetNumbers(negative)) << "a negative variance";
  auto correlated = numbers;
  correlated[6] *= 100;
  EXPECT_FALSE(read.SetNumbers(correlated)) << "a correlation above 1";
  auto not_a_number = numbers;
  not_a_number[0] = std::nan("");
  EXPECT_FALSE(read.SetNumbers(not_a_number));
  EXPECT_EQ(read.Numbers(), numbers) << "it stays as it was";
}

}  // namespace
}  // namespace tidelane::model
