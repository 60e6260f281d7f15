// The mark in every kind of superblock that HDF5 makes.
#include "log/mark.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "device/fault_device.h"
#include "log/superblocks.h"

namespace tidelane {
namespace {

using log::kSuperblocks;
using log::SuperblockSample;

uint32_t Word(std::span<const std::byte> bytes) {
  uint32_t word = 0;
  for (size_t i = 4; i != 0; --i) word = word << 8 | std::to_integer<uint32_t>(bytes[i - 1]);
  return word;
}

TEST(Lookup3Test, IsTheChecksumOfSuperblocks) {
  unsigned checked = 0;
  for (const SuperblockSample& sample : kSuperblocks) {
    if (sample.version < 2) continue;
    const auto bytes = sample.bytes();
    const std::span<const std::byte> all(bytes);
    EXPECT_EQ(internal::Lookup3(all.first(all.size() - 4)), Word(all.last(4))) << sample.hex;
    ++checked;
  }
  EXPECT_EQ(checked, 6u);
}

// Bob Jenkins's own, in lookup3.c: driver5.
TEST(Lookup3Test, HasItsAuthorsValues) {
  EXPECT_EQ(internal::Lookup3({}), 0xdeadbeefu);
  const std::string text = "Four score and seven years ago";
  EXPECT_EQ(internal::Lookup3(std::as_bytes(std::span(text))), 0x17770551u);
}

TEST(MarkTest, MarksAndGivesBackEveryKindOfSuperblock) {
  for (const SuperblockSample& sample : kSuperblocks) {
    const auto bytes = sample.bytes();
    const Superblock superblock(512, bytes);
    ASSERT_FALSE(superblock.empty()) << sample.hex;
    EXPECT_EQ(superblock.size(), bytes.size());
    EXPECT_EQ(superblock.base(), 512u);
    EXPECT_EQ(superblock.end_of_file(), sample.end);
    EXPECT_FALSE(superblock.marked());
    const uint64_t id = 0xfedcba9876543210;
    const Superblock marked = superblock.Marked(id);
    EXPECT_TRUE(marked.marked());
    EXPECT_TRUE(marked.MarkedWith(id));
    EXPECT_FALSE(marked.MarkedWith(id + 1));
    EXPECT_EQ(marked.MarkedWith(id ^ uint64_t{1} << 40), sample.offset_size < 8);
    EXPECT_FALSE(superblock.MarkedWith(sample.end));
    EXPECT_TRUE(superblock.Marked(kNeverCommitted).mark() == kNeverCommitted);
    EXPECT_TRUE(marked.Unmarked(sample.end) == superblock) << sample.hex;
    // In two places and the checksum, and nowhere else.
    const auto before = superblock.bytes();
    const auto after = marked.bytes();
    const size_t flags = sample.version < 2 ? 20 : 11;
    EXPECT_EQ(after[flags], before[flags] | std::byte{0x80});
    size_t changed = 0;
    for (size_t i = 0; i < before.size(); ++i) changed += before[i] != after[i];
    EXPECT_LE(changed, 1 + sample.offset_size + (sample.version < 2 ? 0 : 4));
    if (sample.version >= 2) {
      EXPECT_EQ(internal::Lookup3(after.first(after.size() - 4)), Word(after.last(4)));
    }
  }
}

TEST(MarkTest, ClosedTakesBackOnlyWhatVersion3Says) {
  for (const SuperblockSample& sample : kSuperblocks) {
    auto bytes = sample.bytes();
    const Superblock closed(0, bytes);
    EXPECT_TRUE(closed.Closed() == closed);
    if (sample.version != 3) continue;
    bytes[11] |= std::byte{5};
    const Superblock open = Superblock(0, bytes).Unmarked(sample.end);
    EXPECT_FALSE(open == closed);
    EXPECT_TRUE(open.Closed() == closed);
    EXPECT_TRUE(open.Marked(77).marked());
  }
}

TEST(MarkTest, OverwriteChangesWhatLiesInIt) {
  auto bytes = log::SuperblockOfVersion(0);
  Superblock superblock(0, bytes);
  const std::vector<std::byte> more(200, std::byte{7});
  superblock.Overwrite(90, more);
  std::fill(bytes.begin() + 90, bytes.end(), std::byte{7});
  EXPECT_TRUE(superblock == Superblock(0, bytes));
  superblock.Overwrite(96, more);
  EXPECT_TRUE(superblock == Superblock(0, bytes));
}

TEST(MarkTest, FindsTheFirstSuperblock) {
  const auto file = std::make_shared<MemoryFile>();
  const auto device = MakeMemoryDevice(file);
  const auto bytes = log::SuperblockOfVersion(3);
  for (const size_t base : {0, 512, 1024, 4096}) {
    file->bytes.assign(base + bytes.size(), std::byte{1});
    std::ranges::copy(bytes, file->bytes.begin() + static_cast<ptrdiff_t>(base));
    Superblock found;
    ASSERT_EQ(Superblock::Find(*device, found), 0);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.base(), base);
  }
  for (const size_t size : {0, 7, 5000}) {
    file->bytes.assign(size, std::byte{1});
    Superblock found;
    ASSERT_EQ(Superblock::Find(*device, found), 0);
    EXPECT_TRUE(found.empty());
  }
}

}  // namespace
}  // namespace tidelane
