/// \file
/// Where bytes rest: runs with gaps, sizes after failures, what others cut.
#include "store/direct_store.h"

#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "device/fault_device.h"

namespace tidelane {
namespace {

class DirectStoreTest : public testing::Test {
 protected:
  void Open(const std::string& contents) {
    const auto* bytes = reinterpret_cast<const std::byte*>(contents.data());
    file_->bytes.assign(bytes, bytes + contents.size());
    store_ = DirectStoreOn(
        MakeFaultDevice(MakeMemoryDevice(file_), [this](FaultPoint point, uint64_t, uint64_t) {
          if (point == FaultPoint::kRead) ++reads_;
          return point == failing_ ? Fault{ENOSPC, written_first_} : Fault{};
        }));
  }
  // A run over [begin, end) that holds `texts` at their places.
  int Write(uint64_t begin, uint64_t end,
            const std::vector<std::pair<uint64_t, std::string>>& texts) {
    tidelane::Run run;
    run.begin = begin;
    run.end = run.begin;
    for (const auto& [address, text] : texts) {
      run.gap_bytes += address - run.end;
      Extent extent;
      extent.address = address;
      extent.size = text.size();
      extent.data = reinterpret_cast<const std::byte*>(text.data());
      run.extents.push_back(extent);
      run.end = address + text.size();
    }
    EXPECT_EQ(run.end, end);
    return store_->Write(run);
  }
  std::string Contents() const {
    return {reinterpret_cast<const char*>(file_->bytes.data()), file_->bytes.size()};
  }

  const std::shared_ptr<MemoryFile> file_ = std::make_shared<MemoryFile>();
  std::unique_ptr<Store> store_;
  FaultPoint failing_ = FaultPoint::kSync;  // which is never called
  uint64_t written_first_ = 0;
  unsigned reads_ = 0;
};

TEST_F(DirectStoreTest, WhatLiesBetweenExtentsStays) {
  Open("abcdefghij");
  ASSERT_EQ(Write(1, 8, {{1, "BC"}, {6, "GH"}}), 0);
  EXPECT_EQ(Contents(), "aBCdefGHij");
  EXPECT_EQ(reads_, 1u);
  EXPECT_EQ(store_->size(), 10u);
}

TEST_F(DirectStoreTest, BeyondTheEndItIsZeroAndNothingIsRead) {
  Open("ab");
  ASSERT_EQ(Write(4, 9, {{4, "x"}, {8, "y"}}), 0);
  EXPECT_EQ(Contents(), std::string("ab\0\0x\0\0\0y", 9));
  EXPECT_EQ(reads_, 0u);
  EXPECT_EQ(store_->size(), 9u);
}

TEST_F(DirectStoreTest, ARunAcrossTheEndKeepsWhatIsThere) {
  Open("abcd");
  ASSERT_EQ(Write(1, 8, {{1, "B"}, {6, "gh"}}), 0);
  EXPECT_EQ(Contents(), std::string("aBcd\0\0gh", 8));
}

TEST_F(DirectStoreTest, AFailedWriteMayHaveMadeItLonger) {
  Open("ab");
  failing_ = FaultPoint::kWrite;
  written_first_ = 3;
  EXPECT_EQ(Write(2, 8, {{2, "cdefgh"}}), ENOSPC);
  EXPECT_EQ(store_->size(), 5u);
  failing_ = FaultPoint::kSync;
  ASSERT_EQ(store_->SetSize(2), 0);
  EXPECT_EQ(Contents(), "ab");
  EXPECT_EQ(store_->size(), 2u);
}

TEST_F(DirectStoreTest, ASizeThatIsRefusedChangesNothing) {
  Open("abcd");
  failing_ = FaultPoint::kTruncate;
  EXPECT_EQ(store_->SetSize(9), ENOSPC);
  EXPECT_EQ(store_->size(), 4u);
}

TEST_F(DirectStoreTest, ItIsNoticedWhenSomebodyElseHasCutIt) {
  Open("abcd");
  uint64_t found = 0;
  store_->EndReservations(found);
  EXPECT_EQ(found, 4u);
  file_->bytes.resize(1);
  store_->EndReservations(found);
  EXPECT_EQ(found, 1u);
  EXPECT_EQ(store_->size(), 4u);
}

}  // namespace
}  // namespace tidelane
