// Pieces over others, against an array of bytes.
#include "log/piece_map.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane::log {
namespace {

TEST(PieceMapTest, RandomPiecesLieWhereTheArraySays) {
  constexpr uint64_t kSize = 300;
  std::mt19937_64 random(3);
  for (unsigned round = 0; round < 200; ++round) {
    PieceMap map;
    std::vector<uint64_t> expected(kSize, UINT64_MAX);  // offsets; UINT64_MAX: none, 0: zeros
    for (unsigned step = 0; step < 30; ++step) {
      const uint64_t begin = random() % kSize;
      const uint64_t size = 1 + random() % (kSize - begin);
      const uint64_t offset = random() % 4 == 0 ? 0 : 4096 + random() % 100'000;
      map.Insert(begin, {.size = size, .offset = offset, .entry = step});
      for (uint64_t i = 0; i < size; ++i) expected[begin + i] = offset == 0 ? 0 : offset + i;
      ASSERT_NE(map.Exact(begin, size), nullptr);
      ASSERT_EQ(map.Exact(begin, size)->entry, step);
      const uint64_t from = random() % kSize;
      const uint64_t to = from + 1 + random() % (kSize - from);
      uint64_t next = from;
      map.Visit(
          from, to,
          [&](uint64_t at, uint64_t end, uint64_t found) {
            ASSERT_EQ(at, next);
            ASSERT_LT(at, end);
            for (uint64_t i = at; i < end; ++i)
              ASSERT_EQ(found == 0 ? 0 : found + (i - at), expected[i]);
            next = end;
          },
          [&](uint64_t at, uint64_t end) {
            ASSERT_EQ(at, next);
            for (uint64_t i = at; i < end; ++i) ASSERT_EQ(expected[i], UINT64_MAX);
            next = end;
          });
      ASSERT_EQ(next, to);
    }
  }
}

TEST(PieceMapTest, OnlyAWholePieceIsExact) {
  PieceMap map;
  EXPECT_TRUE(map.empty());
  map.Insert(10, {.size = 10, .offset = 5000, .entry = 1});
  EXPECT_NE(map.Exact(10, 10), nullptr);
  EXPECT_EQ(map.Exact(10, 9), nullptr);
  EXPECT_EQ(map.Exact(11, 9), nullptr);
  map.Insert(15, {.size = 1, .offset = 6000, .entry = 2});
  EXPECT_EQ(map.Exact(10, 10), nullptr);
  EXPECT_NE(map.Exact(10, 5), nullptr);
  EXPECT_EQ(map.Exact(16, 4)->offset, 5006u);
}

}  // namespace
}  // namespace tidelane::log
