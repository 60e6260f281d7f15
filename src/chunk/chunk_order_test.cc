#include "chunk/chunk_order.h"

#include <string>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

// Rows of four chunks of 10 elements; `rows` says how far the dataset has grown.
SharedWrite Write(uint64_t dataset, uint64_t rows, uint64_t columns = 40) {
  return {dataset, {.rank = 2, .extent = {rows, columns}, .chunk = {1, 10}, .element = 1}};
}

std::string Order(const std::vector<ToldChunk>& all, int ranks,
                  const std::vector<SharedWrite>& writes) {
  std::string text;
  for (const OrderedChunk& chunk : OrderChunks(all, ranks, writes)) {
    text += std::to_string(writes[chunk.told.write].dataset) + ":" +
            std::to_string(chunk.origin[0]) + "," + std::to_string(chunk.origin[1]) + " of " +
            std::to_string(chunk.rank) + " size " + std::to_string(chunk.told.size) + "; ";
  }
  return text;
}

TEST(ChunkOrder, FollowsDatasetsAndPlaces) {
  const std::vector<SharedWrite> writes{Write(9, 2), Write(5, 2)};
  // Lists of two ranks, the second one's shorter.
  const std::vector<ToldChunk> all{{0, 5, 30}, {1, 3, 31}, {0, 0, 32}, {0, 4, 40}, {}, {}};
  EXPECT_EQ(Order(all, 2, writes),
            "5:0,30 of 0 size 31; 9:0,0 of 0 size 32; 9:1,0 of 1 size 40; 9:1,10 of 0 size 30; ");
}

TEST(ChunkOrder, TheLaterWriteOfAChunkStays) {
  const std::vector<SharedWrite> writes{Write(9, 2), Write(9, 2)};
  EXPECT_EQ(Order({{1, 5, 30}, {0, 5, 40}}, 2, writes), "9:1,10 of 0 size 30; ");
  EXPECT_EQ(Order({{0, 5, 30}, {1, 5, 40}}, 2, writes), "9:1,10 of 1 size 40; ");
}

TEST(ChunkOrder, OfTwoRanksInOneCallTheHigherOneStays) {
  const std::vector<SharedWrite> writes{Write(9, 2)};
  EXPECT_EQ(Order({{0, 5, 30}, {0, 5, 40}}, 2, writes), "9:1,10 of 1 size 40; ");
}

TEST(ChunkOrder, AChunkIsTheSameOneAfterTheDatasetHasGrown) {
  const std::vector<SharedWrite> writes{Write(9, 2, 40), Write(9, 3, 80)};
  EXPECT_EQ(Order({{0, 5, 30}, {1, 9, 40}}, 2, writes), "9:1,10 of 1 size 40; ");
}

TEST(ChunkOrder, NobodyHasAny) { EXPECT_EQ(Order({}, 2, {Write(9, 2)}), ""); }

}  // namespace
}  // namespace tidelane
