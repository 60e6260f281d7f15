/// \file
/// Lent buffers: stored without a copy while the program keeps them, copied before it is told that it need not.
#include <cerrno>
#include <string>

#include "base/counters.h"
#include "file/file_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TL_SANITIZED_ALLOCATOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TL_SANITIZED_ALLOCATOR 1
#endif
#endif

namespace tidelane {
namespace {

using State = Completion::State;

class FileLoanTest : public ::testing::Test, protected FileBench {
 protected:
  FileLoanTest() { Open(); }

  std::shared_ptr<Completion> WriteLent(uint64_t address, const std::string& buffer) {
    CallScope scope(CallScope::kNone, true);
    scope.Lend(buffer.data(), buffer.size());
    EXPECT_TRUE(Write(address, buffer).ok());
    return scope.TakeCompletion();
  }

  std::string buffer_ = std::string(3u << 20, 'b');
};

TEST_F(FileLoanTest, LargeWritesTakeNoArena) {
  const uint64_t lent = tidelane::Read(Counter::kBytesLent);
  const auto request = WriteLent(0, buffer_);
  EXPECT_EQ(tidelane::Read(Counter::kBytesLent) - lent, buffer_.size());
  EXPECT_EQ(arena_.in_use(), 0u);
  EXPECT_EQ(FileBench::Read(1000, 5), "bbbbb");
  EXPECT_EQ(request->Wait(UINT64_MAX), State::kDone);
  EXPECT_EQ(Difference(Stored(), buffer_), "");
}

// Another thread may wait for the request while this one reads, and its buffer may be gone before the read has ended.
TEST_F(FileLoanTest, AReadKeepsLentBytesWhoseRequestCompletesMeanwhile) {
  ASSERT_TRUE(Write(4000, "stored").ok());
  ASSERT_TRUE(file_->Flush().ok());
  std::string buffer(5000, 'b');
  const auto request = WriteLent(5000, buffer);
  bool completed = false;
  plan_ = [&](FaultPoint point, uint64_t, uint64_t) {
    if (point == FaultPoint::kRead && !completed) {
      completed = request->Wait(UINT64_MAX) == State::kDone;
      buffer.assign(buffer.size(), 'x');
    }
    return Fault{};
  };
  const std::string read = FileBench::Read(4000, 2000);
  EXPECT_TRUE(completed);
  EXPECT_EQ(Difference(read.substr(1000), std::string(1000, 'b')), "");
  EXPECT_EQ(read.substr(0, 6), "stored");
}

TEST_F(FileLoanTest, OnlyTheLentBufferIsLent) {
  CallScope scope(CallScope::kNone, true);
  scope.Lend(buffer_.data(), 100'000);
  const uint64_t lent = tidelane::Read(Counter::kBytesLent);
  std::string other(50'000, 'o');  // such as what a type conversion made of it
  EXPECT_TRUE(Write(0, other).ok());
  EXPECT_TRUE(file_->Write(60'000, 100'001, buffer_.data(), InProgress()).ok());  // ends outside
  EXPECT_TRUE(file_->Write(200'000, 100, buffer_.data(), InProgress()).ok());     // not worth it
  EXPECT_EQ(tidelane::Read(Counter::kBytesLent), lent);
  EXPECT_TRUE(file_->Write(300'000, 90'000, buffer_.data() + 10'000, InProgress()).ok());
  EXPECT_EQ(tidelane::Read(Counter::kBytesLent) - lent, 90'000u);
}

TEST_F(FileLoanTest, WithoutARequestNothingIsLent) {
  CallScope scope(CallScope::kNone, false);
  scope.Lend(buffer_.data(), buffer_.size());
  const uint64_t lent = tidelane::Read(Counter::kBytesLent);
  EXPECT_TRUE(Write(0, buffer_).ok());
  EXPECT_EQ(tidelane::Read(Counter::kBytesLent), lent);
}

TEST_F(FileLoanTest, WhatFailedIsCopiedBeforeTheProgramIsTold) {
  FailingWrites storage(*this);
  const auto request = WriteLent(0, buffer_);
  EXPECT_EQ(request->Wait(UINT64_MAX), State::kFailed);
  EXPECT_EQ(request->error().code(), ENOSPC);
  const std::string wanted = buffer_;
  buffer_.assign(buffer_.size(), '!');  // told of a failure, the program uses its buffer again
  storage.failing = false;
  EXPECT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Difference(Stored(), wanted), "");
}

TEST_F(FileLoanTest, SoIsWhatOthersLentToTheSameFile) {
  FailingWrites storage(*this);
  std::string second(200'000, 's');
  const auto first = WriteLent(0, buffer_);
  const auto other = WriteLent(buffer_.size(), second);
  const std::string wanted = buffer_ + second;
  EXPECT_EQ(first->Wait(UINT64_MAX), State::kFailed);
  buffer_.assign(buffer_.size(), '!');
  second.assign(second.size(),
                '!');  // cleaning up after the first failure, it does not wait for the second
  storage.failing = false;
  EXPECT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Difference(Stored(), wanted), "");
}

TEST_F(FileLoanTest, ACallThatFailsLaterKeepsNothingOfItsBuffer) {
  const std::string wanted = buffer_;
  {
    CallScope scope(CallScope::kNone, true);
    scope.Lend(buffer_.data(), buffer_.size());
    EXPECT_TRUE(Write(0, buffer_).ok());
  }  // HDF5 failed after that: the program gets no request to wait for
  buffer_.assign(buffer_.size(), '!');
  EXPECT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Difference(Stored(), wanted), "");
}

// No memory for the copy: the bytes are gone, and no flush and no close succeeds any more.
TEST_F(FileLoanTest, WhatCannotBeCopiedIsLostAndEverybodyIsTold) {
#ifdef TL_SANITIZED_ALLOCATOR
  GTEST_SKIP() << "a sanitizer ends a program that asks for so much";
#endif
  FailingWrites storage(*this);
  CallScope scope(CallScope::kNone, true);
  constexpr uint64_t kMoreThanThereIs = uint64_t{1} << 50;  // only its first request is touched
  scope.Lend(buffer_.data(), kMoreThanThereIs);
  EXPECT_TRUE(file_->Write(0, kMoreThanThereIs, buffer_.data(), InProgress()).ok());
  EXPECT_TRUE(Write(kMoreThanThereIs, "behind").ok());
  const auto request = scope.TakeCompletion();
  EXPECT_EQ(request->Wait(UINT64_MAX), State::kFailed);
  storage.failing = false;
  ASSERT_TRUE(file_->Truncate(1u << 20).ok());
  EXPECT_EQ(file_->Flush(false, InProgress()).code(), ENOMEM);
  EXPECT_EQ(Difference(Stored(), std::string(1u << 20, 'b')), "") << "what could be copied";
  bool stored = false;
  EXPECT_EQ(file_->drainer().Test(stored).code(), ENOMEM);
  Status closed;
  file_->closing().Begin(
      [&closed](const std::shared_ptr<File>& file) { closed = file->closing().CloseDevice(); },
      InProgress());
  EXPECT_EQ(file_->closing().WaitClosed(Wait::kOpen).code(), ENOMEM);
}

TEST_F(FileLoanTest, NothingIsLentOnceAFailureWasSeen) {
  FailingWrites storage(*this);
  const auto request = WriteLent(0, buffer_);
  EXPECT_EQ(request->Wait(UINT64_MAX), State::kFailed);
  const uint64_t lent = tidelane::Read(Counter::kBytesLent);
  const std::string small(50'000, 's');
  const auto after = WriteLent(buffer_.size(), small);  // the request may be told much later
  EXPECT_EQ(tidelane::Read(Counter::kBytesLent), lent);
  storage.failing = false;
  EXPECT_TRUE(file_->Flush().ok());
}

TEST_F(FileLoanTest, NewerBytesCutALoan) {
  const auto request = WriteLent(0, buffer_);
  EXPECT_TRUE(Write(1000, "newer").ok());
  EXPECT_EQ(FileBench::Read(998, 9), "bbnewerbb");
  EXPECT_TRUE(file_->Flush().ok());
  EXPECT_EQ(request->Wait(0), State::kDone);
  std::string wanted = buffer_;
  wanted.replace(1000, 5, "newer");
  EXPECT_EQ(Difference(Stored(), wanted), "");
}

}  // namespace
}  // namespace tidelane
