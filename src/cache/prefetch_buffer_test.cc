// What becomes of bytes that are fetched ahead: used once, dropped when they change, given back when they are in the way.
#include "cache/prefetch_buffer.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/counters.h"

namespace tidelane {
namespace {

constexpr uint64_t kSlab = 64 * 1024;

class PrefetchBufferTest : public ::testing::Test {
 protected:
  PrefetchBufferTest() {
    file_.resize(64 * kSlab);
    for (size_t i = 0; i < file_.size(); ++i) file_[i] = static_cast<char>(i * 7 + i / 1000);
  }

  // A lane's work; how many bytes it fetched.
  uint64_t FetchBatch(bool works = true) {
    const std::shared_ptr<Slab> slab = PrefetchBudget::TakeSlab(room_);
    if (slab == nullptr) return pieces_.GiveUp(), 0;
    uint64_t bytes = 0;
    for (const PrefetchBuffer::Fetch& fetch : pieces_.TakeBatch(slab)) {
      std::memcpy(fetch.to, file_.data() + fetch.begin, fetch.size);
      pieces_.End(fetch, works);
      bytes += fetch.size;
    }
    return bytes;
  }
  uint64_t FetchAll() {
    uint64_t bytes = 0;
    while (pieces_.AnyWanted()) bytes += FetchBatch();
    return bytes;
  }
  // A read; the bytes that came from storage.
  uint64_t Read(uint64_t begin, uint64_t end) {
    uint64_t from_storage = 0;
    for (uint64_t at = begin; at < end;) {
      const PrefetchBuffer::Part part = pieces_.Take(at, end);
      EXPECT_GT(part.end, at);
      if (part.data == nullptr) {
        from_storage += part.end - at;
      } else {
        EXPECT_EQ(std::memcmp(part.data, file_.data() + at, part.end - at), 0) << at;
      }
      at = part.end;
    }
    return from_storage;
  }
  bool Want(std::vector<ByteRange> ranges, uint64_t most = UINT64_MAX) {
    return pieces_.Want(ranges, most);
  }
  uint64_t wasted() { return pieces_.score().wasted; }

  std::string file_;
  Arena arena_{32 * kSlab};
  std::shared_ptr<PrefetchBudget> room_ = std::make_shared<PrefetchBudget>(arena_, UINT64_MAX);
  PrefetchBuffer pieces_{kSlab};
};

TEST_F(PrefetchBufferTest, WhatWasFetchedIsReadOnceAndItsMemoryGivenBack) {
  EXPECT_TRUE(pieces_.empty());
  EXPECT_TRUE(Want({{1000, 3 * kSlab}}));
  EXPECT_TRUE(pieces_.Covers(1000, 3 * kSlab));
  EXPECT_FALSE(pieces_.Covers(999, 3 * kSlab));
  EXPECT_EQ(FetchAll(), 3 * kSlab - 1000);
  EXPECT_GT(arena_.in_use(), 0u);
  EXPECT_EQ(Read(1000, 3 * kSlab), 0u);
  EXPECT_TRUE(pieces_.empty());
  EXPECT_EQ(arena_.in_use(), 0u);
  EXPECT_EQ(wasted(), 0u);
  EXPECT_EQ(pieces_.score().used, 3 * kSlab - 1000);
  EXPECT_EQ(Read(1000, 2000), 1000u);
}

TEST_F(PrefetchBufferTest, TheProgramTakesBackWhatNoLaneHasBegun) {
  Want({{0, 2 * kSlab}});
  EXPECT_EQ(Read(1000, 2000), 1000u);
  EXPECT_FALSE(pieces_.Touches(1000, 2000));
  EXPECT_TRUE(pieces_.Covers(0, 1000));
  EXPECT_TRUE(pieces_.Covers(2000, 2 * kSlab));
  EXPECT_EQ(FetchAll(), 2 * kSlab - 1000);
  EXPECT_EQ(Read(0, 2 * kSlab), 1000u);
}

TEST_F(PrefetchBufferTest, BytesThatChangeAreDropped) {
  Want({{0, 4 * kSlab}});
  EXPECT_GT(FetchBatch(), 0u);
  pieces_.Drop(10, 20);            // here
  pieces_.Drop(kSlab, kSlab + 1);  // wanted
  EXPECT_FALSE(pieces_.Touches(0, 2 * kSlab));
  EXPECT_EQ(FetchAll(), 2 * kSlab);
  EXPECT_EQ(wasted(), kSlab);
  EXPECT_EQ(Read(0, 4 * kSlab), 2 * kSlab);
}

TEST_F(PrefetchBufferTest, BytesThatChangeOnTheirWayAreNotUsed) {
  Want({{0, kSlab}});
  std::shared_ptr<Slab> slab = PrefetchBudget::TakeSlab(room_);
  const auto batch = pieces_.TakeBatch(slab);
  ASSERT_EQ(batch.size(), 1u);
  pieces_.Drop(100, 101);
  EXPECT_FALSE(pieces_.Covers(0, 10));
  pieces_.End(batch[0], true);
  EXPECT_TRUE(pieces_.empty());
  EXPECT_EQ(Read(0, kSlab), kSlab);
}

TEST_F(PrefetchBufferTest, AFailedFetchIsSilentAndTheReadGoesToStorage) {
  Want({{0, kSlab}});
  FetchBatch(false);
  EXPECT_EQ(wasted(), 0u);
  EXPECT_EQ(Read(0, kSlab), kSlab);
}

TEST_F(PrefetchBufferTest, AReaderWaitsForBytesOnTheirWay) {
  Want({{0, kSlab}});
  std::shared_ptr<Slab> slab = PrefetchBudget::TakeSlab(room_);
  const auto batch = pieces_.TakeBatch(slab);
  std::thread reader([&] { EXPECT_EQ(Read(0, kSlab), 0u); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::memcpy(batch[0].to, file_.data(), kSlab);
  pieces_.End(batch[0], true);
  reader.join();
}

TEST_F(PrefetchBufferTest, NewWishesReplaceOldOnesThatNoLaneHasBegun) {
  Want({{0, 4 * kSlab}});
  FetchBatch();
  EXPECT_TRUE(Want({{8 * kSlab, 9 * kSlab}}));
  EXPECT_TRUE(pieces_.Covers(0, kSlab));  // it is here, and in nobody's way
  EXPECT_FALSE(pieces_.Touches(kSlab, 4 * kSlab));
  EXPECT_TRUE(pieces_.Covers(8 * kSlab, 9 * kSlab));
}

TEST_F(PrefetchBufferTest, WhatIsNotWantedAnyMoreMakesRoom) {
  Want({{0, 4 * kSlab}}, 4 * kSlab);
  FetchAll();
  Want({{3 * kSlab, 6 * kSlab}}, 4 * kSlab);
  EXPECT_TRUE(pieces_.Covers(3 * kSlab, 6 * kSlab));
  EXPECT_EQ(wasted(), 2 * kSlab);
  Want({{20 * kSlab, 40 * kSlab}}, 4 * kSlab);
  EXPECT_TRUE(pieces_.Covers(20 * kSlab, 24 * kSlab));
  EXPECT_FALSE(pieces_.Touches(24 * kSlab, 40 * kSlab));
}

TEST_F(PrefetchBufferTest, SmallPiecesShareASlab) {
  std::vector<ByteRange> ranges;
  for (uint64_t i = 0; i < 7; ++i) ranges.push_back({i * 40'000, i * 40'000 + 8000});
  Want(ranges);
  EXPECT_EQ(FetchBatch(),
            6 * 8000u);  // each as it lies in its pages: some room is lost between them
  EXPECT_EQ(arena_.in_use(), kSlab);
  EXPECT_EQ(FetchAll(), 8000u);
  for (const ByteRange& range : ranges) EXPECT_EQ(Read(range.begin, range.end), 0u);
  EXPECT_EQ(arena_.in_use(), 0u);
}

TEST_F(PrefetchBufferTest, HalfOfTheArenaIsForWrites) {
  Want({{0, 64 * kSlab}});
  while (pieces_.AnyWanted()) FetchBatch();
  EXPECT_EQ(arena_.in_use(), arena_.cap() / 2);
  pieces_.DropAll();
  EXPECT_EQ(arena_.in_use(), 0u);
  room_ = std::make_shared<PrefetchBudget>(arena_, 3 * kSlab);
  Want({{0, 64 * kSlab}});
  while (pieces_.AnyWanted()) FetchBatch();
  EXPECT_EQ(arena_.in_use(), 3 * kSlab);
}

// Lanes fetch while the program wants, reads and changes bytes: what is read is what was last written.
TEST_F(PrefetchBufferTest, AProgramAndTwoLanes) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    std::atomic<bool> over{false};
    std::vector<std::atomic<uint8_t>> versions(64);  // one for each slab's bytes
    PrefetchBuffer pieces(kSlab);
    const auto lane = [&] {
      while (!over) {
        if (!pieces.AnyWanted()) {
          std::this_thread::yield();
          continue;
        }
        const std::shared_ptr<Slab> slab = PrefetchBudget::TakeSlab(room_);
        if (slab == nullptr) {
          pieces.GiveUp();  // as the engine's lanes do: nobody waits for what cannot come
          continue;
        }
        for (const PrefetchBuffer::Fetch& fetch : pieces.TakeBatch(slab)) {
          for (uint64_t i = 0; i < fetch.size; i += 512) {
            const uint64_t at = (fetch.begin + i) / kSlab;
            fetch.to[i] = static_cast<std::byte>(versions[at].load());
          }
          pieces.End(fetch, fetch.begin % 5 != 0);
        }
      }
    };
    std::thread one(lane);
    std::thread two(lane);
    std::mt19937 random(seed);
    uint64_t hits = 0;
    for (int i = 0; i < 1000; ++i) {
      const uint64_t begin = random() % 60 * kSlab + random() % 100 * 512;
      const uint64_t end = std::min<uint64_t>(begin + (1 + random() % 200) * 512, 64 * kSlab);
      switch (random() % 4) {
        case 0: {  // a write; as the engine does, no wish meanwhile
          pieces.Drop(begin / kSlab * kSlab, begin / kSlab * kSlab + kSlab);
          ++versions[begin / kSlab];
          pieces.Drop(begin / kSlab * kSlab, begin / kSlab * kSlab + kSlab);
          break;
        }
        case 1:
          pieces.Want({{begin, end}, {end + 512, end + 1024}}, 30 * kSlab);
          // Every other time the lanes have their turn, however busy the machine is: that there are hits is no luck.
          while (i % 2 == 0 && pieces.AnyWanted()) std::this_thread::yield();
          break;
        default:
          for (uint64_t at = begin; at < end;) {
            const PrefetchBuffer::Part part = pieces.Take(at, end);
            // Pieces begin at multiples of 512, where a version stands.
            for (uint64_t j = at; part.data != nullptr && j < part.end; j += 512) {
              ASSERT_EQ(static_cast<uint8_t>(part.data[j - at]), versions[j / kSlab].load()) << j;
              ++hits;
            }
            at = part.end;
          }
      }
    }
    over = true;
    one.join();
    two.join();
    EXPECT_GT(hits, 0u);
  }
  EXPECT_EQ(arena_.in_use(), 0u);
}

}  // namespace
}  // namespace tidelane
