// The arithmetic of chunks, against a model that looks at every element.
#include "chunk/chunk_grid.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

uint64_t Product(int rank, const Coordinates& size) {
  uint64_t product = 1;
  for (int d = 0; d < rank; ++d) product *= size[d];
  return product;
}

Coordinates At(int rank, const Coordinates& size, uint64_t index) {
  Coordinates at{};
  for (int d = rank - 1; d >= 0; --d) {
    at[d] = index % size[d];
    index /= size[d];
  }
  return at;
}

uint64_t IndexAt(int rank, const Coordinates& size, const Coordinates& at) {
  uint64_t index = 0;
  for (int d = 0; d < rank; ++d) index = index * size[d] + at[d];
  return index;
}

struct Case {
  ChunkGrid grid;
  Box box;
  Coordinates memory_extent{};
  Coordinates memory_start{};
  bool packed = false;

  MemoryLayout layout() const {
    return packed ? MemoryLayout::Packed(grid.rank, box.size, grid.element, 3)
                  : MemoryLayout::Inside(grid.rank, memory_extent, memory_start, grid.element);
  }
};

Case Draw(std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return random() % n; };
  Case c;
  c.grid.rank = 1 + static_cast<int>(below(5));
  c.grid.element = 1 + below(9);
  const uint64_t most = c.grid.rank < 3 ? 40 : 9;
  c.packed = below(2) == 0;
  for (int d = 0; d < c.grid.rank; ++d) {
    c.grid.extent[d] = 1 + below(most);
    c.grid.chunk[d] = 1 + below(most + 3);
    const bool all = below(3) == 0;
    c.box.start[d] = all ? 0 : below(c.grid.extent[d]);
    const uint64_t room = c.grid.extent[d] - c.box.start[d];
    c.box.size[d] = all ? room : 1 + below(room);
    const uint64_t margin = below(2) == 0 ? 0 : below(4);
    c.memory_start[d] = margin == 0 ? 0 : below(margin + 1);
    c.memory_extent[d] = c.box.size[d] + margin;
  }
  return c;
}

// What memory should hold: for each byte the chunk and the place there that it comes from.
struct Byte {
  uint64_t chunk = UINT64_MAX;
  uint64_t from = 0;
  bool operator==(const Byte&) const = default;
};

std::vector<Byte> Expected(const Case& c, uint64_t memory_bytes) {
  const ChunkGrid& grid = c.grid;
  std::vector<Byte> memory(memory_bytes);
  Coordinates chunks{};
  for (int d = 0; d < grid.rank; ++d) chunks[d] = grid.Along(d);
  for (uint64_t e = 0; e < Product(grid.rank, c.box.size); ++e) {
    const Coordinates at = At(grid.rank, c.box.size, e);
    Coordinates number{}, inside{}, in_memory{};
    for (int d = 0; d < grid.rank; ++d) {
      number[d] = (c.box.start[d] + at[d]) / grid.chunk[d];
      inside[d] = (c.box.start[d] + at[d]) % grid.chunk[d];
      in_memory[d] = c.memory_start[d] + at[d];
    }
    const uint64_t to = c.packed ? 3 + e * grid.element
                                 : IndexAt(grid.rank, c.memory_extent, in_memory) * grid.element;
    for (uint64_t b = 0; b < grid.element; ++b) {
      memory.at(to + b) = {IndexAt(grid.rank, chunks, number),
                           IndexAt(grid.rank, grid.chunk, inside) * grid.element + b};
    }
  }
  return memory;
}

TEST(ChunkGrid, PiecesAreTheBox) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 4000; ++round) {
    const Case c = Draw(random);
    const uint64_t bytes = Product(c.grid.rank, c.memory_extent) * c.grid.element + 3;
    const TouchedChunks touched(c.grid, c.box, c.layout());
    std::vector<Byte> memory(bytes);
    uint64_t previous = 0;
    for (uint64_t i = 0; i < touched.count(); ++i) {
      const ChunkPiece piece = touched.At(i);
      ASSERT_TRUE(i == 0 || piece.chunk > previous) << "chunks come in the grid's order";
      previous = piece.chunk;
      uint64_t runs = 0;
      touched.ForEachRun(piece, [&](uint64_t from, uint64_t to, uint64_t run_bytes) {
        ++runs;
        for (uint64_t b = 0; b < run_bytes; ++b) {
          ASSERT_EQ(memory.at(to + b).chunk, UINT64_MAX) << "a byte comes twice";
          memory.at(to + b) = {piece.chunk, from + b};
        }
        ASSERT_LE(from + run_bytes, c.grid.ChunkBytes());
        ASSERT_TRUE(!piece.whole || run_bytes == c.grid.ChunkBytes());
      });
      ASSERT_TRUE(!piece.whole || runs == 1);
    }
    ASSERT_TRUE(memory == Expected(c, bytes)) << "round " << round;
  }
}

TEST(ChunkGrid, WholeChunksInAFlatArrayAreWhole) {
  ChunkGrid grid{.rank = 2, .extent = {8, 6}, .chunk = {4, 6}, .element = 4};
  const Box box{.start = {0, 0}, .size = {8, 6}};
  const TouchedChunks touched(grid, box, MemoryLayout::Packed(2, box.size, 4));
  ASSERT_EQ(touched.count(), 2u);
  EXPECT_TRUE(touched.At(1).whole);
  EXPECT_EQ(touched.At(1).to, 96u);
  grid.chunk = {4, 3};  // now rows of a chunk are apart in memory
  EXPECT_FALSE(TouchedChunks(grid, box, MemoryLayout::Packed(2, box.size, 4)).At(0).whole);
}

TEST(ChunkGrid, ChunksAreFoundByTheirFirstElement) {
  const ChunkGrid grid{.rank = 2, .extent = {10, 7}, .chunk = {4, 3}, .element = 1};
  EXPECT_EQ(grid.Chunks(), 9u);
  const uint64_t last[] = {8, 6}, between[] = {4, 1}, outside[] = {12, 0};
  EXPECT_EQ(grid.IndexOf(last), 8u);
  EXPECT_EQ(grid.IndexOf(between), UINT64_MAX);
  EXPECT_EQ(grid.IndexOf(outside), UINT64_MAX);
}

TEST(ChunkGrid, TooManyChunksAreNotCounted) {
  const ChunkGrid grid{
      .rank = 2, .extent = {UINT64_MAX, UINT64_MAX}, .chunk = {1, 1}, .element = 1};
  EXPECT_EQ(grid.Chunks(), UINT64_MAX);
}

TEST(ChunkGrid, AChunkTooLargeToBeCountedIsNotASmallOne) {
  const uint64_t half = uint64_t{1} << 31;
  const ChunkGrid grid{.rank = 3, .extent = {9, 9, 9}, .chunk = {3, half, half}, .element = 4};
  EXPECT_EQ(grid.ChunkBytes(), UINT64_MAX);  // 3 * 2^64
}

}  // namespace
}  // namespace tidelane
