/// \file
/// What blocks of metadata may lose, and that they are read where they gain.
#include "model/block_worth.h"

#include <gtest/gtest.h>

namespace tidelane::model {
namespace {

constexpr uint64_t kUs = 1000;

// A program on storage that takes `alone_us` for a small read and `block_us` for a block, which answers `hits` more reads.
struct Program {
  BlockWorth worth{};
  uint64_t alone_us, block_us;
  uint64_t took_us = 0, natively_us = 0, blocks = 0;

  void Read(uint64_t hits) {
    natively_us += (hits + 1) * alone_us;
    if (worth.Pays()) {
      ++blocks;
      took_us += block_us;
      worth.Filled(block_us * kUs);
      for (; hits != 0; --hits) worth.Answered();
    } else {
      took_us += alone_us;
      worth.ReadAlone(alone_us * kUs);
      for (; hits != 0; --hits) took_us += alone_us, worth.ReadAlone(alone_us * kUs);
    }
  }
};

TEST(BlockWorthTest, NothingIsReadByTheBlockFromMemory) {
  Program program{.alone_us = 5, .block_us = 10};
  for (int i = 0; i < 100; ++i) program.Read(20);
  EXPECT_EQ(program.blocks, 0u);
}

TEST(BlockWorthTest, WhereARequestCostsMoreThanItsBytesBlocksAreReadFromTheSecondReadOn) {
  Program program{.alone_us = 1000, .block_us = 1330};
  for (int i = 0; i < 100; ++i) program.Read(1);
  EXPECT_GE(program.blocks, 95u);
}

TEST(BlockWorthTest, WhereBytesCostMoreThanRequestsBlocksInVainAreFew) {
  Program program{.alone_us = 125, .block_us = 3300};
  for (int i = 0; i < 10'000; ++i) program.Read(0);
  EXPECT_GT(program.blocks, 1u) << "it may have become worth it";
  EXPECT_LE(program.took_us, program.natively_us * 104 / 100 + 2 * program.block_us);
}

TEST(BlockWorthTest, BlocksThatAnswerNothingAreFewWhateverTheySeemToTake) {
  Program program{.alone_us = 3000, .block_us = 3100};
  for (int i = 0; i < 1000; ++i) program.Read(0);
  EXPECT_LE(program.blocks, 1000 / 30u);
}

TEST(BlockWorthTest, TheyAreManyThereTooIfTheyAreUsed) {
  Program program{.alone_us = 125, .block_us = 3300};
  for (int i = 0; i < 1000; ++i) program.Read(200);
  EXPECT_GE(program.blocks, 970u);
}

TEST(BlockWorthTest, WhatWasGainedIsNotLostElsewhere) {
  Program program{.alone_us = 125, .block_us = 3300};
  for (int i = 0; i < 1000; ++i) program.Read(200);
  program.took_us = program.natively_us = 0;
  for (int i = 0; i < 1000; ++i) program.Read(0);
  EXPECT_LE(program.took_us, program.natively_us * 104 / 100 + 3 * program.block_us);
}

TEST(BlockWorthTest, AnHourOfOneBlockIsForgotten) {
  Program program{.alone_us = 1000, .block_us = 3'600'000'000};
  program.Read(0);
  program.Read(0);
  program.block_us = 1330;
  for (int i = 0; i < 2000; ++i) program.Read(1);
  EXPECT_GT(program.blocks, 1000u);
}

// The first one opened a connection, say: it says nothing of those that follow.
TEST(BlockWorthTest, AFirstReadThatTookLongIsNotBelievedForLong) {
  Program program{.alone_us = 3300, .block_us = 3300};
  program.Read(0);
  program.alone_us = 125;
  for (int i = 0; i < 1000; ++i) program.Read(0);
  EXPECT_LE(program.blocks, 6u);
}

// The machine was busy: a read from memory took long.
TEST(BlockWorthTest, ABlockThatComesSoonerThanReadsDidSaysThatReadsDo) {
  BlockWorth worth{};
  worth.ReadAlone(1000 * kUs);
  EXPECT_TRUE(worth.Pays());
  worth.Filled(10 * kUs);
  EXPECT_FALSE(worth.Pays());
}

}  // namespace
}  // namespace tidelane::model
