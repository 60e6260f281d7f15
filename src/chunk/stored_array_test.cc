#include "chunk/stored_array.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

constexpr uint64_t kAddress = 4096;

ChunkGrid Grid(std::vector<uint64_t> extent, uint64_t element) {
  ChunkGrid grid;
  grid.rank = static_cast<int>(extent.size());
  std::ranges::copy(extent, grid.extent.begin());
  grid.element = element;
  return grid;
}

// Where an element of an array in one piece lies, and where its piece says so.
void ExpectPlaced(const StoredArray& array, const Coordinates& at) {
  const ChunkGrid& grid = array.grid;
  uint64_t position = 0;
  uint64_t index = 0;
  uint64_t inside = 0;
  for (int d = 0; d < grid.rank; ++d) {
    position = position * grid.extent[d] + at[d];
    index = index * grid.Along(d) + at[d] / grid.chunk[d];
    inside = inside * grid.chunk[d] + at[d] % grid.chunk[d];
  }
  const ChunkLocation& piece = (*array.map)[index];
  EXPECT_EQ(piece.address + inside * grid.element, kAddress + position * grid.element);
  EXPECT_LE((inside + 1) * grid.element, piece.size);
}

TEST(StoredArrayTest, OneInOnePieceHasItsElementsWhereTheyAre) {
  const std::vector<std::pair<std::vector<uint64_t>, uint64_t>> arrays = {
      {{1}, 1},
      {{1000}, 8},
      {{uint64_t{1} << 33}, 4},
      {{3, 5, 7}, 2},
      {{1, uint64_t{1} << 27, 3}, 8},
      {{5, 40000, 30000}, 4},
      {{2, 3, uint64_t{1} << 25}, 16},
      {{7, 1, 1}, uint64_t{1} << 30},
  };
  std::mt19937_64 random(5);
  for (const auto& [extent, element] : arrays) {
    SCOPED_TRACE(::testing::PrintToString(extent));
    const StoredArray array = StoredArray::InOnePiece(nullptr, Grid(extent, element), kAddress);
    uint64_t bytes = 0;
    for (const ChunkLocation& piece : *array.map) bytes += piece.size;
    uint64_t expected = element;
    for (const uint64_t size : extent) expected *= size;
    EXPECT_EQ(bytes, expected);
    EXPECT_LE(array.grid.ChunkBytes(), std::max<uint64_t>(element, 8u << 20));
    for (int i = 0; i < 200; ++i) {
      Coordinates at{};
      for (int d = 0; d < array.grid.rank; ++d)
        at[d] = i == 0 ? 0 : i == 1 ? extent[d] - 1 : random() % extent[d];
      ExpectPlaced(array, at);
    }
  }
}

// Rows of pages, far from one another, are not read with all that is between them.
TEST(StoredArrayTest, NarrowBoxesAskForLittleMoreThanTheyWant) {
  const std::vector<uint64_t> extent = {512, 64 * 1024};
  const StoredArray array = StoredArray::InOnePiece(nullptr, Grid(extent, 4), kAddress);
  Box box;
  box.size[0] = extent[0];
  box.size[1] = 1024;
  const TouchedChunks touched(array.grid, box, MemoryLayout::Packed(2, box.size, 4));
  std::vector<std::byte> memory(extent[0] * 4096);
  uint64_t asked = 0;
  ReadRooms rooms;
  for (uint64_t i = 0; i < touched.count(); ++i) {
    const auto read = [&](uint64_t, uint64_t size, std::byte*) {
      asked += size;
      return Status();
    };
    ASSERT_TRUE(array.ReadPiece(touched, touched.At(i), memory.data(), read, rooms).ok());
  }
  EXPECT_EQ(asked, memory.size());
}

TEST(StoredRangesTest, TouchWhatTheyHaveAndNoMore) {
  StoredRanges ranges;
  ranges.Add(1000, 100);
  ranges.Add(100, 10);
  ranges.Add(5000, 1);
  ranges.Sort();
  EXPECT_EQ(ranges.bytes(), 111u);
  EXPECT_TRUE(ranges.Touch(0, UINT64_MAX));
  EXPECT_TRUE(ranges.Touch(1099, 1100));
  EXPECT_TRUE(ranges.Touch(109, 110));
  EXPECT_TRUE(ranges.Touch(4000, 5001));
  EXPECT_FALSE(ranges.Touch(1100, 5000));
  EXPECT_FALSE(ranges.Touch(110, 1000));
  EXPECT_FALSE(ranges.Touch(0, 100));
  EXPECT_FALSE(ranges.Touch(5001, UINT64_MAX));
  EXPECT_FALSE(StoredRanges().Touch(0, UINT64_MAX));
}

}  // namespace
}  // namespace tidelane
