// What is free in a segment, and which entries are still seen.
#include "log/segment_space.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "log/segment_entries.h"

namespace tidelane::log {
namespace {

using Range = SegmentSpace::Range;

TEST(SegmentSpaceTest, WhatIsNotNeededIsTakenAgainButForItsSectors) {
  SegmentSpace space;
  EXPECT_EQ(space.Take(3000), kDataBegin);
  EXPECT_EQ(space.Take(100), kDataBegin + 3000);
  EXPECT_EQ(space.taken(), 3100u);
  // One byte in the sector from 1024 to 1536; and what lies at the end.
  space.KeepOnly({{kDataBegin + 3000, kDataBegin + 3100}, {kDataBegin + 1100, kDataBegin + 1101}});
  EXPECT_EQ(space.taken(), 3100u - 1024 - (2560 - 1536));
  EXPECT_EQ(space.Take(1025), kDataBegin + 3100);  // no place is so large
  EXPECT_EQ(space.Take(1000), kDataBegin);
  EXPECT_EQ(space.Take(24), kDataBegin + 1000);
  EXPECT_EQ(space.Take(500), kDataBegin + 1536);
  EXPECT_EQ(space.Take(600), kDataBegin + 4125);
  EXPECT_EQ(space.end(), kDataBegin + 4725);
}

// Against an array of who has each byte.
TEST(SegmentSpaceTest, NobodyIsGivenWhatIsNeeded) {
  std::mt19937_64 random(7);
  for (unsigned round = 0; round < 50; ++round) {
    SegmentSpace space;
    std::vector<Range> needed;
    for (unsigned step = 0; step < 60; ++step) {
      const uint64_t size = 1 + random() % 3000;
      const uint64_t begin = space.Take(size);
      ASSERT_GE(begin, kDataBegin);
      for (const Range& other : needed)
        ASSERT_TRUE(begin + size <= other.begin || other.end <= begin);
      needed.push_back({begin, begin + size});
      if (random() % 5 != 0) continue;
      std::erase_if(needed, [&](const Range&) { return random() % 2 == 0; });
      space.KeepOnly(needed);
    }
    ASSERT_LT(space.end(), kDataBegin + uint64_t{60} * 3000 * 3 / 4);
  }
}

TEST(SegmentEntriesTest, EntriesThatAreHiddenAreForgotten) {
  SegmentEntries entries;
  PieceMap pieces;
  const auto add = [&](uint64_t address, uint64_t size, uint64_t offset) {
    entries.Add({.address = address, .size = size, .offset = offset, .crc = 0}, pieces);
  };
  const auto addresses = [](std::span<const CommitEntry> some) {
    std::vector<uint64_t> found;
    for (const CommitEntry& entry : some) found.push_back(entry.address);
    return found;
  };
  add(0, 100, 5000);
  add(200, 100, 5100);
  add(400, 100, 0);
  entries.Committed();
  add(200, 100, 5200);
  add(50, 10, 5300);
  EXPECT_EQ(addresses(entries.fresh()), (std::vector<uint64_t>{200, 50}));
  EXPECT_EQ(addresses(entries.Seen(pieces)), (std::vector<uint64_t>{0, 400, 200, 50}));
  EXPECT_EQ(entries.FreshAt(0, 100, pieces), nullptr);  // it is committed, and cut
  ASSERT_NE(entries.FreshAt(200, 100, pieces), nullptr);
  EXPECT_EQ(entries.Hidden(pieces, 400), 400u - (90 + 100 + 10));
  entries.KeepSeen(pieces, 250);
  EXPECT_EQ(entries.Hidden(pieces, 250), 0u);  // nothing was hidden since
  EXPECT_EQ(entries.Hidden(pieces, 260), 10u);
  EXPECT_EQ(addresses(entries.fresh()), (std::vector<uint64_t>{200, 50}));
  EXPECT_EQ(addresses(entries.Seen(pieces)), (std::vector<uint64_t>{0, 400, 200, 50}));
  ASSERT_NE(entries.FreshAt(200, 100, pieces), nullptr);
  EXPECT_EQ(entries.FreshAt(200, 100, pieces)->offset, 5200u);
  entries.Committed();
  EXPECT_EQ(entries.FreshAt(200, 100, pieces), nullptr);
  add(0, 1000, 6000);
  EXPECT_EQ(addresses(entries.Seen(pieces)), (std::vector<uint64_t>{0}));
  EXPECT_EQ(pieces.bytes(), 1000u);
  entries.KeepSeen(pieces, 1000);
  EXPECT_EQ(addresses(entries.fresh()), (std::vector<uint64_t>{0}));
}

}  // namespace
}  // namespace tidelane::log
