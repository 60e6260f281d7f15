/// \file
/// Bytes that lanes have prepared: what extents hold of them is not copied, is there for as long as they do, and is counted.
#include "file/prepared_bytes.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "base/counters.h"
#include "buffer/arena.h"
#include "file/file_fixture.h"

namespace tidelane {
namespace {

class PreparedBytesTest : public ::testing::Test, protected FileBench {
 protected:
  PreparedBytesTest() { Open(); }

  static std::unique_ptr<PreparedBytes> Prepare(const std::string& text) {
    RawBytes bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    auto prepared = std::make_unique<PreparedBytes>();
    prepared->Set(std::move(bytes));
    return prepared;
  }
  Status Put(uint64_t address, PreparedBytes& prepared) {
    const HoldsBytes held(&prepared);
    return file_->Write(address, prepared.size(), prepared.data(), InProgress());
  }
  uint64_t Held() const { return tidelane::Read(Counter::kBytesHeld) - held_before_; }

  const uint64_t held_before_ = tidelane::Read(Counter::kBytesHeld);
  const std::shared_ptr<std::atomic<uint64_t>> counted_ =
      std::make_shared<std::atomic<uint64_t>>(0);
  const std::string text_ = std::string((1u << 20) + 5, 'p');
};

TEST_F(PreparedBytesTest, AreNotCopied) {
  auto prepared = Prepare(text_);
  ASSERT_TRUE(Put(7, *prepared).ok());
  EXPECT_EQ(Held(), text_.size());
  EXPECT_EQ(arena_.in_use(), 0u);
  prepared.reset();
  EXPECT_EQ(FileBench::Read(7, text_.size()), text_);
  EXPECT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Difference(Stored().substr(7), text_), "");
}

TEST_F(PreparedBytesTest, FewAreCopied) {
  const auto prepared = Prepare(std::string(PreparedBytes::kLeastHeld - 1, 'f'));
  ASSERT_TRUE(Put(0, *prepared).ok());
  EXPECT_EQ(Held(), 0u);
  EXPECT_GT(arena_.in_use(), 0u);
  EXPECT_FALSE(prepared->CountHeld(counted_));
}

TEST_F(PreparedBytesTest, WhatLiesElsewhereIsCopied) {
  const auto prepared = Prepare(text_);
  const HoldsBytes held(prepared.get());
  ASSERT_TRUE(Write(0, text_).ok());  // another place with the same bytes
  const uint64_t size = PreparedBytes::kLeastHeld;
  const std::byte* const end = prepared->data() + prepared->size();
  EXPECT_EQ(prepared->SlabOf(end - size + 1, size), nullptr);
  EXPECT_EQ(Held(), 0u);
}

TEST_F(PreparedBytesTest, CountForAsLongAsAFileHoldsThem) {
  auto prepared = Prepare(text_);
  EXPECT_FALSE(prepared->CountHeld(counted_)) << "nobody holds them";
  ASSERT_TRUE(Put(0, *prepared).ok());
  EXPECT_TRUE(prepared->CountHeld(counted_));
  EXPECT_FALSE(prepared->CountHeld(counted_)) << "once";
  prepared.reset();
  EXPECT_EQ(*counted_, text_.size());
  ASSERT_TRUE(Write(0, std::string(text_.size() - 1, 'n')).ok());
  EXPECT_EQ(*counted_, text_.size()) << "the last byte keeps all of them";
  EXPECT_TRUE(file_->Flush().ok());
  EXPECT_EQ(*counted_, 0u);
}

TEST_F(PreparedBytesTest, WhatStorageRefusesIsTriedAgain) {
  FailingWrites storage(*this);
  auto prepared = Prepare(text_);
  ASSERT_TRUE(Put(0, *prepared).ok());
  EXPECT_TRUE(prepared->CountHeld(counted_));
  prepared.reset();
  EXPECT_EQ(file_->Flush().code(), ENOSPC);
  EXPECT_EQ(*counted_, text_.size());
  storage.failing = false;
  EXPECT_TRUE(file_->Flush().ok());
  EXPECT_EQ(*counted_, 0u);
  EXPECT_EQ(Difference(Stored(), text_), "");
}

// HDF5 may write a chunk a second time, to another place, when the first attempt has failed.
TEST_F(PreparedBytesTest, MayBeWrittenTwice) {
  auto prepared = Prepare(text_);
  ASSERT_TRUE(Put(0, *prepared).ok());
  ASSERT_TRUE(Put(0, *prepared).ok());
  ASSERT_TRUE(Put(2 * text_.size(), *prepared).ok());
  EXPECT_TRUE(prepared->CountHeld(counted_));
  prepared.reset();
  EXPECT_EQ(*counted_, text_.size());
  EXPECT_TRUE(file_->Flush().ok());
  EXPECT_EQ(*counted_, 0u);
  EXPECT_EQ(Difference(Stored().substr(2 * text_.size()), text_), "");
  EXPECT_EQ(Difference(Stored().substr(0, text_.size()), text_), "");
}

}  // namespace
}  // namespace tidelane
