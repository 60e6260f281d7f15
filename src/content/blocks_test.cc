/// \file
/// Blocks over a source that changes, fails, and may not be kept; and that storage is asked with no lock held.
#include "content/blocks.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "base/counters.h"

namespace tidelane {
namespace {

class Text final : public ByteSource {
 public:
  Status Read(Reader, uint64_t address, uint64_t size, void* buffer, ReadTimes& times) override {
    ++reads;
    if (during) during();
    times.Add(1, 2, size);
    if (fails) return Status::Failed(EIO, "read").At(name, address, size);
    std::memcpy(buffer, text.data() + address, size);
    return {};
  }
  uint64_t size() const override { return text.size(); }
  const std::string& path() const override { return name; }
  Keep keep() const override { return kept; }

  std::string text = std::string(100'000, 't');
  std::string name = "text";
  Keep kept = Keep::kYes;
  bool fails = false;
  unsigned reads = 0;
  std::function<void()> during;
};

class BlocksTest : public testing::Test {
 protected:
  bool Read(uint64_t address, std::string& got) {
    got.assign(100, '?');
    Blocks::Filled filled;
    return blocks_.Read(source_, address, got.size(), got.data(), false, filled);
  }

  Text source_;
  model::BlockWorth worth_;
  Blocks blocks_{Toggle::kOn, worth_};
  std::string got_;
};

TEST_F(BlocksTest, NeighboursAreReadOnce) {
  for (uint64_t at = 0; at < 10'000; at += 100) {
    ASSERT_TRUE(Read(at, got_));
    EXPECT_EQ(got_, std::string(100, 't'));
  }
  EXPECT_EQ(source_.reads, 1u);
}

TEST_F(BlocksTest, WritesShow) {
  ASSERT_TRUE(Read(0, got_));
  source_.text.replace(50, 3, "new");
  blocks_.Written(50, 3, "new");
  ASSERT_TRUE(Read(0, got_));
  EXPECT_EQ(got_.substr(49, 5), "tnewt");
  EXPECT_EQ(source_.reads, 1u);
}

TEST_F(BlocksTest, WhatChangesWhileABlockIsReadIsNotKept) {
  source_.during = [&] { blocks_.Written(50, 3, "new"); };  // needs the lock: nobody holds it
  ASSERT_TRUE(Read(0, got_));
  source_.during = nullptr;
  source_.text.replace(50, 3, "new");
  ASSERT_TRUE(Read(0, got_));
  EXPECT_EQ(got_.substr(49, 5), "tnewt");
  EXPECT_EQ(source_.reads, 2u);
}

TEST_F(BlocksTest, NothingIsKeptOfWhatOthersMayChange) {
  const uint64_t before = tidelane::Read(Fallback::kLocking);
  source_.kept = ByteSource::Keep::kNotLocked;
  EXPECT_FALSE(Read(0, got_));
  EXPECT_FALSE(Read(0, got_));
  EXPECT_EQ(tidelane::Read(Fallback::kLocking), before + 1);
  source_.kept = ByteSource::Keep::kNever;
  EXPECT_FALSE(Read(0, got_));
  EXPECT_EQ(source_.reads, 0u);
}

// Rows of as many datasets in turn as HDF5 has open, each of which natively has a sieve buffer. Rows lie across the ends of blocks.
TEST_F(BlocksTest, EachOfManyStreamsKeepsItsBlock) {
  constexpr uint64_t kRows = 150, kRow = 1024, kBytes = kRows * kRow + 300;
  // As many as there is memory for: little in a small container.
  const uint64_t streams =
      std::min<uint64_t>(512, BlockMemory::Most() / BlockCache::kBlock * 3 / 4);
  source_.text.assign(streams * kBytes, 's');
  std::string got(kRow, '?');
  for (uint64_t row = 0; row < kRows; ++row) {
    for (uint64_t stream = 0; stream < streams; ++stream) {
      const uint64_t at = stream * kBytes + row * kRow;
      Blocks::Filled filled;
      if (!blocks_.Read(source_, at, kRow, got.data(), true, filled)) ++source_.reads;
    }
  }
  EXPECT_LE(source_.reads, streams * (kBytes / BlockCache::kBlock + 4));
}

TEST_F(BlocksTest, AFailureIsTheCallersToMeet) {
  source_.fails = true;
  EXPECT_FALSE(Read(0, got_));
  source_.fails = false;
  ASSERT_TRUE(Read(0, got_));
  EXPECT_EQ(got_, std::string(100, 't'));
}

}  // namespace
}  // namespace tidelane
