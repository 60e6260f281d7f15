#include "vol/chunk_reuse.h"

#include <gtest/gtest.h>

namespace tidelane::vol {
namespace {

// A line of 100 chunks of 10 elements.
TouchedChunks chunks(uint64_t first, uint64_t count) {
  ChunkGrid grid;
  grid.rank = 1;
  grid.extent[0] = 1000;
  grid.chunk[0] = 10;
  grid.element = 4;
  Box box;
  box.start[0] = 10 * first;
  box.size[0] = 10 * count;
  return {grid, box, MemoryLayout::Packed(1, box.size, grid.element)};
}

TEST(ChunkReuse, WhatIsWrittenOnceDoesNotSuitTheCache) {
  ChunkReuse habit(8);
  for (uint64_t i = 0; i < 100; ++i) {
    habit.NoteWrite(chunks(i, 1), 0);
    EXPECT_FALSE(habit.suits_cache());
  }
}

TEST(ChunkReuse, WhatIsWrittenAgainDoes) {
  ChunkReuse habit(8);
  for (int i = 0; i < 4; ++i) {
    habit.NoteWrite(chunks(2, 8), 0);
    EXPECT_FALSE(habit.suits_cache()) << i;
  }
  habit.NoteWrite(chunks(2, 8), 0);
  EXPECT_TRUE(habit.suits_cache());
  // Until it goes elsewhere for long enough.
  for (uint64_t i = 20; i < 30 && habit.suits_cache(); ++i) habit.NoteWrite(chunks(i, 1), 0);
  EXPECT_FALSE(habit.suits_cache());
}

TEST(ChunkReuse, ReadsOfWhatWasJustWrittenCount) {
  ChunkReuse habit(8);
  for (int i = 0; i < 2; ++i) {
    habit.NoteUse(0);  // nothing there yet
    EXPECT_FALSE(habit.suits_cache());
  }
  for (int i = 0; i < 3; ++i) {
    habit.NoteWrite(chunks(0, 1), 0);
    habit.NoteUse(0);
  }
  EXPECT_TRUE(habit.suits_cache());
}

TEST(ChunkReuse, WhatComesAfterAFlushIsNew) {
  ChunkReuse habit(8);
  for (uint64_t flushes = 0; flushes < 20; ++flushes) {
    habit.NoteUse(flushes);
    habit.NoteWrite(chunks(0, 4), flushes);
    EXPECT_FALSE(habit.suits_cache());
  }
}

TEST(ChunkReuse, MoreThanThereIsRoomForWasNeverThere) {
  ChunkReuse habit(8);
  for (int i = 0; i < 20; ++i) habit.NoteWrite(chunks(0, 9), 0);
  EXPECT_FALSE(habit.suits_cache());
  ChunkReuse none(0);
  for (int i = 0; i < 20; ++i) {
    none.NoteWrite(chunks(0, 1), 0);
    none.NoteUse(0);
  }
  EXPECT_FALSE(none.suits_cache());
}

}  // namespace
}  // namespace tidelane::vol
