/// \file
/// What chunks may have together: what is lent of them to files counts, and never keeps a chunk from being taken.
#include "vol/chunk_memory.h"

#include <gtest/gtest.h>

#include "buffer/arena.h"

namespace tidelane::vol {
namespace {

// A file's extent in the place of prepared bytes.
struct Lent {
  Lent(ChunkMemory& memory, size_t size) {
    PreparedBytes bytes;
    bytes.Set(RawBytes(size));
    slab = bytes.SlabOf(bytes.data(), size);
    memory.CountLent(bytes);
  }
  ~Lent() { Arena::Unref(slab); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  Slab* slab;
};

constexpr uint64_t kSize = uint64_t{1} << 20;

TEST(ChunkMemory, WhatIsLentIsPartOfWhatChunksMayHave) {
  ChunkMemory memory;
  const uint64_t most = ChunkMemory::Most();
  EXPECT_TRUE(memory.HasRoom(most - kSize));
  {
    const Lent lent(memory, kSize);
    EXPECT_EQ(memory.lent(), kSize);
    EXPECT_FALSE(memory.HasRoom(most - kSize + 1));
  }
  EXPECT_EQ(memory.lent(), 0u);
  EXPECT_TRUE(memory.HasRoom(most));
}

TEST(ChunkMemory, HalfOfItIsLentAtMost) {
  ChunkMemory memory;
  const uint64_t half = ChunkMemory::Most() / 2;
  EXPECT_TRUE(memory.MayLend(half));
  EXPECT_FALSE(memory.MayLend(half + 1));
  const Lent lent(memory, kSize);
  EXPECT_TRUE(memory.MayLend(half - kSize));
  EXPECT_FALSE(memory.MayLend(half - kSize + 1));
}

// Else it would go to HDF5 until lanes have stored what is lent.
TEST(ChunkMemory, WhatIsLentLeavesRoomForTheLargestChunk) {
  ChunkMemory memory;
  const uint64_t most = ChunkMemory::Most();
  EXPECT_TRUE(memory.HasRoom(most - 2 * kSize));
  EXPECT_TRUE(memory.MayLend(2 * kSize));
  const Lent lent(memory, 2 * kSize);
  EXPECT_FALSE(memory.MayLend(1));
  EXPECT_TRUE(memory.HasRoom(most - 2 * kSize));
}

TEST(ChunkMemory, AKeptBufferIsUsedAgain) {
  ChunkMemory memory;
  memory.Reserve();
  RawBytes bytes = memory.Buffer(1000);
  const std::byte* const at = bytes.data();
  memory.Charge(2000);
  memory.Release(2000, std::move(bytes));
  EXPECT_TRUE(memory.Spare(999).empty());
  EXPECT_EQ(memory.Buffer(1000).data(), at);
}

}  // namespace
}  // namespace tidelane::vol
