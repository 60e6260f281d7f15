#include "extent/ranges.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

TEST(RangesTest, NeighboursAndOverlapsBecomeOne) {
  Ranges ranges;
  EXPECT_TRUE(ranges.empty());
  ranges.Add(10, 20);
  ranges.Add(30, 40);
  EXPECT_FALSE(ranges.Covers(10, 40));
  ranges.Add(20, 30);
  EXPECT_TRUE(ranges.Covers(10, 40));
  EXPECT_TRUE(ranges.Covers(15, 25));
  EXPECT_FALSE(ranges.Covers(9, 11));
  EXPECT_FALSE(ranges.Covers(39, 41));
}

TEST(RangesTest, CuttingTakesTheRestAway) {
  Ranges ranges;
  ranges.Add(0, 100);
  ranges.Add(200, 300);
  ranges.CutFrom(50);
  EXPECT_TRUE(ranges.Covers(0, 50));
  EXPECT_FALSE(ranges.Covers(0, 51));
  EXPECT_FALSE(ranges.Covers(200, 201));
  ranges.CutFrom(0);
  EXPECT_TRUE(ranges.empty());
}

TEST(RangesTest, AgreesWithASetOfBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Ranges ranges;
    std::set<uint64_t> bytes;
    for (int step = 0; step < 60; ++step) {
      const uint64_t begin = random() % 100;
      const uint64_t end = begin + 1 + random() % 20;
      if (random() % 5 == 0) {
        ranges.CutFrom(begin);
        bytes.erase(bytes.lower_bound(begin), bytes.end());
      } else {
        ranges.Add(begin, end);
        for (uint64_t byte = begin; byte < end; ++byte) bytes.insert(byte);
      }
      const uint64_t from = random() % 100;
      const uint64_t to = from + 1 + random() % 20;
      bool all = true;
      for (uint64_t byte = from; byte < to; ++byte) all = all && bytes.contains(byte);
      ASSERT_EQ(ranges.Covers(from, to), all) << from << " " << to;
    }
  }
}

}  // namespace
}  // namespace tidelane
