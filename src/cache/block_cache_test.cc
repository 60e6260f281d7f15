/// \file
/// The block cache: when it wants a read, and that a block never says anything but what the file holds.
#include "cache/block_cache.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

constexpr uint64_t kBlock = BlockCache::kBlock;
model::BlockWorth nothing_known;

void Fill(BlockCache& cache, uint64_t start, char letter, uint64_t valid = kBlock) {
  auto bytes = cache.TakeMemory(start);
  std::memset(bytes.get(), letter, valid);
  cache.Insert(start, valid, std::move(bytes));
}

std::string Read(BlockCache& cache, uint64_t address, uint64_t size) {
  std::string text(size, '?');
  return cache.Read(address, size, text.data()) ? text : "miss";
}

TEST(BlockCacheTest, ManyFilesTogetherTakeNoMoreThanIsThereForAll) {
  std::vector<std::unique_ptr<BlockCache>> caches;
  const uint64_t before = BlockMemory::Taken();
  for (uint64_t file = 0; file < 200; ++file) {
    caches.push_back(std::make_unique<BlockCache>(Toggle::kOn, nothing_known));
    for (uint64_t at = 0; at < 20; ++at) Fill(*caches.back(), at * kBlock, 'x');
    EXPECT_EQ(Read(*caches.back(), 19 * kBlock, 3), "xxx") << "each has at least one";
  }
  EXPECT_LE(BlockMemory::Taken(), BlockMemory::Most() + 200 * kBlock);
  caches.clear();
  EXPECT_EQ(BlockMemory::Taken(), before);
}

TEST(BlockCacheTest, ABlockAnswersWhatLiesWhollyInItsValidBytes) {
  BlockCache cache(Toggle::kOn, nothing_known);
  EXPECT_EQ(Read(cache, 0, 1), "miss");
  Fill(cache, kBlock, 'a', 100);
  EXPECT_EQ(Read(cache, kBlock, 3), "aaa");
  EXPECT_EQ(Read(cache, kBlock + 97, 3), "aaa");
  EXPECT_EQ(Read(cache, kBlock + 98, 3), "miss");
  EXPECT_EQ(Read(cache, kBlock - 1, 2), "miss");
  cache.Clear();
  EXPECT_EQ(Read(cache, kBlock, 3), "miss");
}

TEST(BlockCacheTest, AFailedFillHoldsNothing) {
  BlockCache cache(Toggle::kOn, nothing_known);
  cache.Insert(0, 0, cache.TakeMemory(0));
  EXPECT_EQ(Read(cache, 0, 1), "miss");
}

TEST(BlockCacheTest, WritesPatchBlocksAndExtendThemWithoutHoles) {
  BlockCache cache(Toggle::kOn, nothing_known);
  Fill(cache, 0, 'a', 10);
  cache.Update(3, 2, "bb");
  EXPECT_EQ(Read(cache, 0, 10), "aaabbaaaaa");
  cache.Update(9, 3, "ccc");
  EXPECT_EQ(Read(cache, 8, 4), "accc");
  cache.Update(20, 1, "d");
  EXPECT_EQ(Read(cache, 20, 1), "miss") << "what lies between 12 and 20 is not known here";
  EXPECT_EQ(Read(cache, 11, 1), "c");
}

TEST(BlockCacheTest, AWriteAcrossBlocksPatchesEach) {
  BlockCache cache(Toggle::kOn, nothing_known);
  Fill(cache, 0, 'a');
  Fill(cache, kBlock, 'b');
  cache.Update(kBlock - 2, 4, "wxyz");
  EXPECT_EQ(Read(cache, kBlock - 3, 3), "awx");
  EXPECT_EQ(Read(cache, kBlock, 3), "yzb");
}

TEST(BlockCacheTest, ACutTakesWhatLiesBehindIt) {
  BlockCache cache(Toggle::kOn, nothing_known);
  Fill(cache, 0, 'a');
  Fill(cache, kBlock, 'b');
  cache.CutFrom(100);
  EXPECT_EQ(Read(cache, 99, 1), "a");
  EXPECT_EQ(Read(cache, 99, 2), "miss");
  EXPECT_EQ(Read(cache, kBlock, 1), "miss");
  cache.Update(100, 2, "zz");
  EXPECT_EQ(Read(cache, 99, 3), "azz");
}

TEST(BlockCacheTest, TheLeastRecentlyUsedBlockGoes) {
  BlockCache cache(Toggle::kOn, nothing_known);
  for (uint64_t i = 0; i < BlockCache::kBlocks; ++i) Fill(cache, i * kBlock, 'a');
  EXPECT_EQ(Read(cache, 0, 1), "a");
  Fill(cache, 1000 * kBlock, 'n');
  EXPECT_EQ(Read(cache, 1000 * kBlock, 1), "n");
  EXPECT_EQ(Read(cache, 0, 1), "a") << "just used";
  EXPECT_EQ(Read(cache, kBlock, 1), "miss") << "the oldest";
}

// Five hundred datasets of 40 KiB side by side, read row by row in turn: each row read a block anew.
TEST(BlockCacheTest, BlocksThatAreWantedAgainGetRoom) {
  constexpr uint64_t kMany = 300;
  BlockCache cache(Toggle::kOn, nothing_known);
  uint64_t fills = 0;
  for (int round = 0; round < 20; ++round) {
    for (uint64_t i = 0; i < kMany; ++i) {
      if (Read(cache, i * kBlock, 1) == "a") continue;
      Fill(cache, i * kBlock, 'a');
      ++fills;
    }
  }
  EXPECT_LE(fills, 2 * kMany) << "of " << 20 * kMany << " reads";
  BlockCache once(Toggle::kOn, nothing_known);
  const uint64_t before = BlockMemory::Taken();
  for (uint64_t i = 0; i < 10 * kMany; ++i) Fill(once, i * kBlock, 'a');
  EXPECT_LE(BlockMemory::Taken() - before, BlockCache::kBlocks * kBlock) << "nothing was";
}

TEST(BlockCacheTest, WantsSmallReadsInsideOneBlockAndTheFile) {
  BlockCache cache(Toggle::kOn, nothing_known);
  EXPECT_TRUE(cache.Wants(0, 512, false, 1000));
  EXPECT_FALSE(cache.Wants(0, BlockCache::kSmall + 1, false, 1 << 20));
  EXPECT_FALSE(cache.Wants(600, 512, false, 1000)) << "beyond the end";
  EXPECT_FALSE(cache.Wants(kBlock - 1, 2, false, 1 << 20)) << "two blocks";
}

TEST(BlockCacheTest, OnAutoMetadataIsReadByTheBlockWhereThatPays) {
  model::BlockWorth worth;
  BlockCache cache(Toggle::kAuto, worth);
  BlockCache off(Toggle::kOff, worth);
  EXPECT_FALSE(cache.Wants(0, 100, false, 1000));
  worth.ReadAlone(1'000'000);
  EXPECT_TRUE(cache.Wants(0, 100, false, 1000));
  EXPECT_FALSE(off.Wants(0, 100, false, 1000));
}

TEST(BlockCacheTest, RawReadsCountOnlyNearTheLastOne) {
  BlockCache cache(Toggle::kAuto, nothing_known);
  const uint64_t eof = uint64_t{1} << 30;
  EXPECT_FALSE(cache.Wants(0, 100, true, eof)) << "the first says nothing";
  EXPECT_TRUE(cache.Wants(200, 100, true, eof));
  EXPECT_FALSE(cache.Wants(uint64_t{1} << 29, 100, true, eof));
  EXPECT_TRUE(cache.Wants((uint64_t{1} << 29) - 5000, 100, true, eof)) << "backwards, too";
}

TEST(BlockCacheTest, RandomHistoriesNeverReadStaleBytes) {
  constexpr uint64_t kSize = 40 * kBlock;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    std::mt19937_64 random(seed);
    BlockCache cache(Toggle::kOn, nothing_known);
    std::string file(kSize, 'o');
    unsigned hits = 0;
    for (int step = 0; step < 4000; ++step) {
      const uint64_t address =
          random() % 4 == 0 ? random() % kSize : random() % 4 * kBlock + random() % 3000;
      if (address >= file.size()) continue;
      const uint64_t size = std::min<uint64_t>(1 + random() % 2000, file.size() - address);
      const uint64_t start = BlockCache::BlockStart(address);
      switch (random() % 8) {
        case 0:
        case 1:
        case 2: {
          const std::string bytes(size, static_cast<char>(random()));
          file.replace(address, size, bytes);
          cache.Update(address, size, bytes.data());
          break;
        }
        case 3:
          if (random() % 50 != 0) break;
          cache.CutFrom(address);
          file.resize(address);
          file.resize(kSize, '\0');
          break;
        case 4:
        case 5: {
          const uint64_t valid = std::min(kBlock, file.size() - start);
          auto bytes = cache.TakeMemory(start);
          std::memcpy(bytes.get(), file.data() + start, valid);
          cache.Insert(start, valid, std::move(bytes));
          break;
        }
        default: {
          std::string got(size, '?');
          if (!cache.Read(address, size, got.data())) break;
          ++hits;
          ASSERT_EQ(got, file.substr(address, size)) << "seed " << seed << " step " << step;
        }
      }
    }
    EXPECT_GT(hits, 100u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tidelane
