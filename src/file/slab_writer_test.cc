/// \file
/// What a file's writes pin of the arena: little where little is queued, whatever is written and replaced.
#include "file/slab_writer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/counters.h"
#include "extent/pending_map.h"

namespace tidelane {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;

class SlabWriterTest : public testing::Test {
 protected:
  void Write(uint64_t address, uint64_t size, int value) {
    while (size != 0) {
      const SlabWriter::Space space = writer_.Take(size, address);
      ASSERT_NE(space.data, nullptr);
      std::memset(space.data, value, space.size);
      too_much_ |= writer_.PinsTooMuch(pending_);
      pending_.Insert({address, space.size, space.data, space.slab, 0, false});
      address += space.size;
      size -= space.size;
      EXPECT_LE(writer_.pinned_bytes(), SlabWriter::kMostPinned * pending_.queued_bytes() +
                                            SlabWriter::kFreelyPinned + 2 * arena_.slab_size());
    }
  }
  // Whether all that is queued there is `value`.
  bool Holds(uint64_t address, uint64_t size, int value) {
    std::vector<Piece> pieces;
    pending_.Overlay(address, size, pieces);
    bool right = true;
    for (const Piece& piece : pieces) {
      right &= piece.data != nullptr &&
               std::all_of(piece.data, piece.data + piece.size,
                           [value](std::byte byte) { return byte == std::byte(value); });
      if (piece.slab != nullptr) Arena::Unref(piece.slab);
    }
    return right;
  }

  Arena arena_{256 * kMiB};
  PendingMap pending_;
  SlabWriter writer_{arena_};
  bool too_much_ = false;
};

TEST_F(SlabWriterTest, AStateOverwrittenWithALogRowEachTimePinsLittle) {
  constexpr int kTimes = 1000;
  for (int i = 0; i < kTimes; ++i) {
    Write(0, kMiB, i);
    Write(10 * kMiB + uint64_t(i) * 100, 100, i + 1);
    EXPECT_LE(arena_.in_use(), 4 * kMiB);
  }
  EXPECT_TRUE(Holds(0, kMiB, kTimes - 1));
  for (int i = 0; i < kTimes; ++i)
    ASSERT_TRUE(Holds(10 * kMiB + uint64_t(i) * 100, 100, i + 1)) << i;
}

TEST_F(SlabWriterTest, SmallPiecesThatPinLargeSlabsAreMovedTogether) {
  const uint64_t moved = Read(Counter::kBytesMoved);
  std::map<uint64_t, int> last;
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    Write(0, kMiB / 2, i);  // replaced each time,
    const uint64_t row = random() % 1000;
    Write(10 * kMiB + row * kMiB, 70'000,
          i);  // and rows as large, which mostly are not, between two of it
    last[row] = i;
    if (last.size() < 150) continue;
    for (const auto& [kept, value] : last)
      ASSERT_TRUE(Holds(10 * kMiB + kept * kMiB, 70'000, value)) << kept;
    pending_.CutRange(10 * kMiB, UINT64_MAX);
    last.clear();
  }
  EXPECT_GT(Read(Counter::kBytesMoved), moved);
  EXPECT_FALSE(too_much_);
}

TEST_F(SlabWriterTest, AFileThatWritesLittleTakesLittle) {
  Write(0, 100, 1);
  EXPECT_EQ(writer_.pinned_bytes(), kMiB / SlabParts::kParts / SlabParts::kParts);
  Write(100, 5000, 1);
  EXPECT_LE(writer_.pinned_bytes(), 2 * kMiB / SlabParts::kParts);
  Write(5100, 95'000, 1);
  EXPECT_LE(writer_.pinned_bytes(), kMiB * 5 / 4);
  pending_.CutRange(0, UINT64_MAX);
  writer_.Recycle(false);
  EXPECT_LE(writer_.pinned_bytes(), kMiB / SlabParts::kParts);
  writer_.Recycle(true);
  EXPECT_EQ(writer_.pinned_bytes(), 0u);
  EXPECT_EQ(arena_.in_use(), 0u);
}

// A thousand files that each kept a part took 64 MiB for nothing.
TEST_F(SlabWriterTest, AmongManyFilesOneThatIsStoredKeepsNothing) {
  std::vector<Slab*> others;
  const auto write_and_store = [&] {
    for (uint64_t at = 0; at < 30'000; at += 1000) Write(at, 1000, 1);
    pending_.CutRange(0, UINT64_MAX);
    writer_.Recycle(false);
  };
  write_and_store();
  EXPECT_GT(writer_.pinned_bytes(), 0u);
  while (arena_.in_use() < 40 * kMiB) {
    others.push_back(arena_.TryAcquire());
    ASSERT_NE(others.back(), nullptr);
  }
  write_and_store();
  EXPECT_EQ(writer_.pinned_bytes(), 0u);
  for (Slab* slab : others) Arena::Unref(slab);
}

TEST_F(SlabWriterTest, AStreamOfSmallWritesFillsWholeSlabs) {
  for (uint64_t i = 0; i < 10'000; ++i) Write(i * 1000, 1000, static_cast<int>(i));
  EXPECT_LE(writer_.pinned_bytes(), 12 * kMiB);
  EXPECT_LE(pending_.queued_extents(), 40u);
}

TEST_F(SlabWriterTest, OthersTakeThePartsThatAreLeft) {
  Slab* const part = arena_.parts().TryAcquire();
  std::vector<Slab*> slabs;
  while (Slab* slab = arena_.TryAcquire()) slabs.push_back(slab);
  Write(0, 100'000, 3);
  EXPECT_TRUE(Holds(0, 100'000, 3));
  for (Slab* slab : slabs) Arena::Unref(slab);
  Arena::Unref(part);
}

}  // namespace
}  // namespace tidelane
