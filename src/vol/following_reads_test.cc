#include "vol/following_reads.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace tidelane::vol {
namespace {

constexpr uint64_t kWindow = 64 * 1024, kRow = 1024;

class FollowingReadsTest : public ::testing::Test {
 protected:
  // How many of so many reads, of `size` bytes each, go to the sieve.
  unsigned Read(unsigned count, uint64_t from, int64_t step, uint64_t size) {
    unsigned sieved = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (reads_.Looks())
        ++looks_, reads_.Look(from + i * static_cast<uint64_t>(step), size, kWindow);
      sieved += unsigned{reads_.follow()};
    }
    return sieved;
  }

  FollowingReads reads_;
  unsigned looks_ = 0;
};

TEST_F(FollowingReadsTest, AllButTheFirstOfRowsInOrderAreTheSieves) {
  EXPECT_EQ(Read(1000, 0, kRow, kRow), 999u);
  EXPECT_LE(looks_, 2 * (1000 / FollowingReads::kBetween + 1));
}

TEST_F(FollowingReadsTest, NoneOfRowsInReverseOrderAre) {
  EXPECT_EQ(Read(1000, uint64_t{1} << 20, -static_cast<int64_t>(kRow), kRow), 0u);
}

TEST_F(FollowingReadsTest, NoneThatLieAWindowApartAre) {
  EXPECT_EQ(Read(1000, 0, kWindow, kRow), 0u);
}

TEST_F(FollowingReadsTest, ARowThatIsReadAgainIsAsGoodAsTheNextOne) {
  EXPECT_EQ(Read(1000, kRow, 0, kRow), 999u);
}

TEST_F(FollowingReadsTest, NothingButSingleRunsIsTheSieves) {
  EXPECT_EQ(Read(1000, 0, kRow, 0), 0u);
}

TEST_F(FollowingReadsTest, WhatChangesIsSeenAtTheNextComparison) {
  Read(1000, 0, kRow, kRow);
  EXPECT_LE(Read(1000, 0, kWindow, kRow), FollowingReads::kBetween + 2);
  EXPECT_GE(Read(1000, 0, kRow, kRow), 1000 - FollowingReads::kBetween - 2);
}

}  // namespace
}  // namespace tidelane::vol
