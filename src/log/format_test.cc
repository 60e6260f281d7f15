// What lies in a segment comes back as it was, and nothing that was changed does.
#include "log/format.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "log/crc32c.h"
#include "log/superblocks.h"

namespace tidelane::log {
namespace {

SegmentHeader Header() {
  SegmentHeader header;
  header.id = 0x1122334455667788;
  header.number = 7;
  header.before = 0x99aabbccddeeff00;
  header.end = 12345;
  header.superblock = Superblock(512, SuperblockOfVersion(0));
  header.path = "/there/file.h5";
  return header;
}

TEST(FormatTest, AHeaderComesBack) {
  for (const SuperblockSample& sample : kSuperblocks) {
    SegmentHeader header = Header();
    header.superblock = Superblock(2048, sample.bytes());
    const auto parsed = SegmentHeader::Parse(header.Encode());
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->version, kVersion);
    EXPECT_EQ(parsed->id, header.id);
    EXPECT_EQ(parsed->number, header.number);
    EXPECT_EQ(parsed->before, header.before);
    EXPECT_EQ(parsed->end, header.end);
    EXPECT_EQ(parsed->path, header.path);
    EXPECT_TRUE(parsed->superblock == header.superblock);
  }
}

TEST(FormatTest, ALongPathIsCutAtItsFront) {
  SegmentHeader header = Header();
  header.path = std::string(1000, 'x').append("/end.h5");
  const auto parsed = SegmentHeader::Parse(header.Encode());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->path, header.path.substr(header.path.size() - 319));
}

TEST(FormatTest, AHeaderWithAnyByteChangedIsNone) {
  const Sector right = Header().Encode();
  for (size_t i = 0; i < right.size(); ++i) {
    Sector wrong = right;
    wrong[i] ^= std::byte{0x10};
    EXPECT_FALSE(SegmentHeader::Parse(wrong)) << i;
  }
  EXPECT_FALSE(SegmentHeader::Parse(Sector{}));
}

TEST(FormatTest, ANewerHeaderSaysOnlyThat) {
  SegmentHeader header = Header();
  header.version = kVersion + 1;
  const auto parsed = SegmentHeader::Parse(header.Encode());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->version, kVersion + 1);
  EXPECT_EQ(parsed->id, 0u);
}

TEST(FormatTest, ASlotComesBackAndBelongsToItsSegment) {
  const CommitSlot slot{.generation = 3, .offset = 4096, .length = 96, .crc = 0x12345678};
  const Sector right = slot.Encode(42);
  const auto parsed = CommitSlot::Parse(right, 42);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->generation, 3u);
  EXPECT_EQ(parsed->offset, 4096u);
  EXPECT_EQ(parsed->length, 96u);
  EXPECT_EQ(parsed->crc, 0x12345678u);
  EXPECT_FALSE(CommitSlot::Parse(right, 43));
  EXPECT_FALSE(CommitSlot::Parse(Sector{}, 42));
  for (size_t i = 0; i < right.size(); ++i) {
    Sector wrong = right;
    wrong[i] ^= std::byte{1};
    EXPECT_FALSE(CommitSlot::Parse(wrong, 42)) << i;
  }
  EXPECT_EQ(CommitSlot::Place(1), 512u);
  EXPECT_EQ(CommitSlot::Place(2), 1024u);
}

CommitRecord Record() {
  CommitRecord record{.id = 42,
                      .generation = 9,
                      .end = 1000,
                      .high_water = 2000,
                      .previous = 5000,
                      .previous_length = 64,
                      .previous_crc = 77,
                      .entries = {}};
  record.entries.push_back({.address = 1, .size = 2, .offset = 4096, .crc = 3});
  record.entries.push_back({.address = 10, .size = 20, .offset = 0, .crc = 0});
  return record;
}

TEST(FormatTest, ARecordComesBack) {
  const CommitRecord record = Record();
  const auto bytes = record.Encode();
  const auto parsed = CommitRecord::Parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, record.id);
  EXPECT_EQ(parsed->generation, record.generation);
  EXPECT_EQ(parsed->end, record.end);
  EXPECT_EQ(parsed->high_water, record.high_water);
  EXPECT_EQ(parsed->previous, record.previous);
  EXPECT_EQ(parsed->previous_length, record.previous_length);
  EXPECT_EQ(parsed->previous_crc, record.previous_crc);
  ASSERT_EQ(parsed->entries.size(), 2u);
  EXPECT_EQ(parsed->entries[0].offset, 4096u);
  EXPECT_EQ(parsed->entries[1].size, 20u);
}

// Its checksum is the slot's; what is not of this format is refused all the same.
TEST(FormatTest, ARecordOfAnotherFormOrLengthIsNone) {
  const auto right = Record().Encode();
  for (size_t i = 0; i < right.size(); ++i) {
    auto wrong = right;
    wrong[i] ^= std::byte{1};
    EXPECT_NE(Crc32c(wrong.data(), wrong.size()), Crc32c(right.data(), right.size()));
    const bool of_form = i < 8 || (i >= 68 && i < 72) || (i >= 72 && (i - 72) % 32 >= 28);
    EXPECT_EQ(!CommitRecord::Parse(wrong), of_form) << i;
  }
  EXPECT_FALSE(CommitRecord::Parse(std::span(right).first(right.size() - 1)));
  EXPECT_FALSE(CommitRecord::Parse(std::span(right).first(63)));
  EXPECT_FALSE(CommitRecord::Parse({}));
}

TEST(FormatTest, NamesOfSegments) {
  EXPECT_EQ(SegmentName("a.h5", 1), "a.h5-wal.0");
  EXPECT_EQ(SegmentName("a.h5", 2), "a.h5-wal.1");
  EXPECT_EQ(SegmentName("a.h5", 3), "a.h5-wal.0");
  std::string file;
  EXPECT_TRUE(IsSegmentName("a.h5-wal.1", file));
  EXPECT_EQ(file, "a.h5");
  for (const char* name : {"a.h5", "-wal.0", "a-wal.2", "a-wal", "a-wal.0.0123456789abcdef", ""})
    EXPECT_FALSE(IsSegmentName(name, file)) << name;
  const std::string longest(kLongestName, 'n');
  EXPECT_LE(AsideName(SegmentName(longest, 1), UINT64_MAX).size(), 255u);
}

}  // namespace
}  // namespace tidelane::log
