/// \file
/// Reserved space: a full disk is told at the call that captures, and nothing is reserved for longer than the file.
#include <cerrno>
#include <string>

#include "base/counters.h"
#include "file/file_fixture.h"

namespace tidelane {
namespace {

class FileReserveTest : public ::testing::Test, protected FileBench {
 protected:
  FileReserveTest() {
    config_.reserve = true;
    plan_ = [this](FaultPoint point, uint64_t address, uint64_t size) {
      if (point != FaultPoint::kReserve) return Fault{};
      if (unsupported_) return Fault{EOPNOTSUPP};
      return address + size > capacity_ ? Fault{ENOSPC} : Fault{};
    };
    Open();
    file_->SetSettings(config_);
  }

  unsigned Reservations() {
    unsigned count = 0;
    for (const Call& call : TakeChanges()) count += call.point == FaultPoint::kReserve;
    return count;
  }

  uint64_t capacity_ = UINT64_MAX;
  bool unsupported_ = false;
};

TEST_F(FileReserveTest, AFullDiskIsToldAtTheCall) {
  capacity_ = 5000;
  EXPECT_TRUE(Write(0, std::string(4000, 'a')).ok()) << "exactly what is needed still fits";
  const Status status = Write(4000, std::string(2000, 'b'));
  EXPECT_EQ(status.code(), ENOSPC);
  EXPECT_NE(status.Message().find("reserve space for 2000 bytes at address 4000 of 'memory.h5'"),
            std::string::npos)
      << status.Message();
  EXPECT_EQ(file_->eof(), 4000u) << "nothing of it was captured";
  capacity_ = 10'000;
  EXPECT_TRUE(Write(4000, std::string(2000, 'b')).ok());
  EXPECT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Stored(), std::string(4000, 'a') + std::string(2000, 'b'));
}

TEST_F(FileReserveTest, SmallAppendsReserveInSteps) {
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(Write(i * 100, std::string(100, 'x')).ok());
  EXPECT_EQ(Reservations(), 1u);
  EXPECT_TRUE(Write(5000, "again").ok());
  EXPECT_EQ(Reservations(), 0u);
}

TEST_F(FileReserveTest, FarAwayBytesDoNotReserveTheHole) {
  capacity_ = UINT64_MAX;
  EXPECT_TRUE(Write(0, "front").ok());
  (void)TakeChanges();
  EXPECT_TRUE(Write(uint64_t{1} << 40, "far").ok());
  for (const Call& call : TakeChanges()) {
    if (call.point == FaultPoint::kReserve) {
      EXPECT_LE(call.size, 2u << 20);
    }
  }
}

TEST_F(FileReserveTest, WhereItIsNotPossibleItIsCountedOnce) {
  unsupported_ = true;
  const uint64_t before = tidelane::Read(Fallback::kNoReservation);
  EXPECT_TRUE(Write(0, std::string(100, 'x')).ok());
  EXPECT_TRUE(Write(8'000'000, std::string(100, 'x')).ok());
  EXPECT_EQ(tidelane::Read(Fallback::kNoReservation) - before, 1u);
}

TEST_F(FileReserveTest, WhatWasReservedBeyondTheEndIsGivenBackAtClose) {
  EXPECT_TRUE(Write(0, std::string(100, 'x')).ok());
  EXPECT_TRUE(file_->Flush().ok());
  (void)TakeChanges();
  EXPECT_TRUE(file_->closing().CloseDevice().ok());
  bool given_back = false;
  for (const Call& call : TakeChanges()) {
    given_back |= call.point == FaultPoint::kTruncate && call.size == 100;
  }
  EXPECT_TRUE(given_back);
}

TEST_F(FileReserveTest, GivingBackDoesNotHideThatTheFileWasCutShort) {
  EXPECT_TRUE(Write(0, std::string(100, 'x')).ok());
  EXPECT_TRUE(file_->Flush().ok());
  storage_->bytes.clear();  // another process created it anew
  EXPECT_EQ(file_->closing().CloseDevice().code(), EIO);
  EXPECT_EQ(Stored(), "");
}

TEST_F(FileReserveTest, GivingBackCutsNothingThatOthersAppended) {
  EXPECT_TRUE(Write(0, std::string(100, 'x')).ok());
  EXPECT_TRUE(file_->Flush().ok());
  storage_->bytes.resize(150, std::byte{'o'});
  EXPECT_TRUE(file_->closing().CloseDevice().ok());
  EXPECT_EQ(Stored(), std::string(100, 'x') + std::string(50, 'o'));
}

TEST_F(FileReserveTest, AWriteThatFoundNoSpaceIsNotRead) {
  config_.read_ahead = Toggle::kOn;
  Open(std::string(2000, 'a'));
  file_->SetSettings(config_);
  ASSERT_TRUE(file_->Lock(true).ok());
  const uint64_t hits = tidelane::Read(Counter::kReadAheadHits);
  EXPECT_EQ(FileBench::Read(100, 4, false), "aaaa");
  capacity_ = 0;
  EXPECT_EQ(Write(1500, "new!").code(), ENOSPC);
  EXPECT_EQ(FileBench::Read(1500, 4, false), "aaaa");
  EXPECT_GT(tidelane::Read(Counter::kReadAheadHits), hits) << "read from a block";
}

}  // namespace
}  // namespace tidelane
