// How arrays are cut, against a model that counts every element.
#include "query/blocks.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane::query {
namespace {

struct Array {
  int rank = 1;
  Coordinates extent{};
  Coordinates quantum{};
  uint64_t wanted = 1;
  uint64_t most = 1;

  uint64_t Elements() const {
    uint64_t elements = 1;
    for (int d = 0; d < rank; ++d) elements *= extent[d];
    return elements;
  }
  Blocks Cut() const { return {rank, extent, quantum, wanted, most}; }
};

Array Draw(std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return random() % n; };
  Array array;
  array.rank = 1 + static_cast<int>(below(4));
  const uint64_t longest = array.rank == 1 ? 300 : array.rank == 2 ? 30 : 9;
  for (int d = 0; d < array.rank; ++d) {
    array.extent[d] = 1 + below(longest);
    array.quantum[d] = below(2) == 0 ? 1 : 1 + below(longest + 3);
  }
  array.wanted = 1 + below(100);
  array.most = array.wanted + below(200);
  return array;
}

uint64_t Product(int rank, const Coordinates& size) {
  uint64_t product = 1;
  for (int d = 0; d < rank; ++d) product *= size[d];
  return product;
}

// The row-major positions in the array of a box's elements, in the box's own order.
std::vector<uint64_t> PositionsOf(const Array& array, const Box& box) {
  std::vector<uint64_t> positions;
  for (uint64_t i = 0; i < Product(array.rank, box.size); ++i) {
    Coordinates at{};
    uint64_t rest = i;
    for (int d = array.rank - 1; d >= 0; --d) {
      at[d] = box.start[d] + rest % box.size[d];
      rest /= box.size[d];
    }
    uint64_t position = 0;
    for (int d = 0; d < array.rank; ++d) position = position * array.extent[d] + at[d];
    positions.push_back(position);
  }
  return positions;
}

TEST(BlocksTest, FollowEachOtherAndAreTheArray) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    const Array array = Draw(random);
    const Blocks blocks = array.Cut();
    ASSERT_EQ(blocks.elements(), array.Elements());
    uint64_t next = 0, count = 0;
    while (next < blocks.elements()) {
      const Blocks::Block block = blocks.At(next);
      const std::vector<uint64_t> positions = PositionsOf(array, block.box);
      ASSERT_EQ(positions.size(), block.elements);
      for (uint64_t i = 0; i < positions.size(); ++i) ASSERT_EQ(positions[i], next + i);
      next += block.elements;
      ++count;
    }
    EXPECT_EQ(next, array.Elements());
    EXPECT_EQ(count, blocks.count());
  }
}

TEST(BlocksTest, TilesAreTheBlock) {
  std::mt19937_64 random(2);
  uint64_t many = 0;
  for (int round = 0; round < 2000; ++round) {
    const Array array = Draw(random);
    const Blocks blocks = array.Cut();
    for (uint64_t next = 0; next < blocks.elements();) {
      const Blocks::Block block = blocks.At(next);
      std::vector<int> seen(block.elements);
      many += blocks.TilesOf(block) > 1;
      for (uint64_t i = 0; i < blocks.TilesOf(block); ++i) {
        const Box tile = blocks.Tile(block, i);
        const std::vector<uint64_t> positions = PositionsOf(array, tile);
        uint64_t walked = 0;
        blocks.ForEachRun(block, tile, [&](uint64_t from, uint64_t to, uint64_t length) {
          ASSERT_EQ(from, walked);
          for (uint64_t k = 0; k < length; ++k) {
            ASSERT_EQ(positions[from + k], block.first + to + k);
            ++seen[to + k];
          }
          walked += length;
        });
        EXPECT_EQ(walked, positions.size());
      }
      EXPECT_TRUE(std::ranges::all_of(seen, [](int times) { return times == 1; }));
      next += block.elements;
    }
  }
  EXPECT_GT(many, 500u);
}

TEST(BlocksTest, AreOfWholeChunks) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 1000; ++round) {
    const Array array = Draw(random);
    const Blocks blocks = array.Cut();
    for (uint64_t next = 0; next < blocks.elements();) {
      const Blocks::Block block = blocks.At(next);
      for (uint64_t i = 0; i < blocks.TilesOf(block); ++i) {
        const Box tile = blocks.Tile(block, i);
        for (int d = 0; d < array.rank; ++d) {
          EXPECT_EQ(tile.start[d] % array.quantum[d], 0u);
          const uint64_t end = tile.start[d] + tile.size[d];
          EXPECT_TRUE(end == array.extent[d] || end % array.quantum[d] == 0);
        }
      }
      next += block.elements;
    }
  }
}

TEST(BlocksTest, TilesAreSmall) {
  // Rows too long for a tile, without chunks: a part of one row after the other.
  const Array rows{2, {100, 1'000'000}, {1, 1}, 1000, 10'000};
  const Blocks::Block block = rows.Cut().At(0);
  EXPECT_EQ(block.box.size[0], 1u);
  EXPECT_LE(block.elements, 10'000u);
  // In chunks of ten rows: ten rows at once, in tiles.
  const Array chunks{2, {100, 1'000'000}, {10, 100}, 1000, 10'000};
  const Blocks cut = chunks.Cut();
  EXPECT_EQ(cut.At(0).box.size[0], 10u);
  EXPECT_EQ(cut.TilesOf(cut.At(0)), 1000u);
  EXPECT_EQ(cut.Tile(cut.At(0), 1).size[1], 1000u);
}

TEST(BlocksTest, AnEmptyArrayHasNone) {
  const Blocks blocks(2, {0, 5}, {1, 1}, 10, 10);
  EXPECT_EQ(blocks.elements(), 0u);
  EXPECT_EQ(blocks.count(), 0u);
}

}  // namespace
}  // namespace tidelane::query
