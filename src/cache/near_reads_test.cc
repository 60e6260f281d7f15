#include "cache/near_reads.h"

#include <random>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

constexpr uint64_t kReach = NearReads::kReach;

TEST(NearReadsTest, EachOfManyStreamsIsSeen) {
  NearReads reads;
  constexpr uint64_t kStreams = 64, kApart = uint64_t{100} << 20, kRow = 1000;
  int seen = 0;
  for (uint64_t row = 0; row < 200; ++row) {
    for (uint64_t stream = 0; stream < kStreams; ++stream) {
      seen += reads.Note(stream * kApart + row * kRow) ? 1 : 0;
    }
  }
  EXPECT_GT(seen, 200 * 64 * 95 / 100) << "hardly any stream loses its place to others";
  EXPECT_LE(reads.streams(), kStreams);
}

TEST(NearReadsTest, AStreamThatGoesOnIsOneForwardsAndBackwards) {
  NearReads reads;
  EXPECT_FALSE(reads.Note(0));
  for (uint64_t at = 0; at < 100 * kReach; at += kReach / 2) EXPECT_TRUE(reads.Note(at)) << at;
  EXPECT_EQ(reads.streams(), 1u);
  for (uint64_t at = 100 * kReach; at >= kReach; at -= kReach / 2) {
    EXPECT_TRUE(reads.Note(at)) << at;
  }
  EXPECT_EQ(reads.streams(), 1u);
  EXPECT_FALSE(reads.Note(3 * kReach)) << "as far as that is no neighbour";
}

TEST(NearReadsTest, RandomReadsOfALargeFileSeldomFollowOneAnother) {
  NearReads reads;
  std::mt19937_64 random(1);
  int seen = 0;
  for (int i = 0; i < 10'000; ++i) seen += reads.Note(random() % (uint64_t{4} << 30)) ? 1 : 0;
  EXPECT_LT(seen, 300);
  EXPECT_LT(reads.streams(), NearReads::kStreams / 10)
      << "no block is kept for those that go nowhere";
}

}  // namespace
}  // namespace tidelane
