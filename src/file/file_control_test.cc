// What a program may say about when a file's bytes are stored: pause, delay, start, synchronous calls.
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/counters.h"
#include "file/file_fixture.h"

namespace tidelane {
namespace {

class FileControlTest : public ::testing::Test, protected FileBench {
 protected:
  void Pause() {
    FileSettings settings;
    settings.paused = true;
    file_->SetSettings(settings);
  }
};

TEST_F(FileControlTest, APausedFileStoresNothingUntilItIsStarted) {
  Open();
  file_->SetPaused(true);
  const std::string big(3u << 20, 'b');  // three requests, each worth making
  ASSERT_TRUE(Write(0, big).ok());
  RunLanes();
  EXPECT_TRUE(TakeChanges().empty());
  EXPECT_EQ(Read(big.size() - 1, 1), "b");
  file_->Start();
  RunLanes();
  EXPECT_EQ(Difference(Stored(), big), "");
  ASSERT_TRUE(Write(0, "later").ok());
  RunLanes();
  EXPECT_EQ(Stored().substr(0, 5), "later") << "a start ends the pause";
}

TEST_F(FileControlTest, WhatLingeredWhenThePauseCameStays) {
  Open();
  ASSERT_TRUE(Write(0, "abc").ok());
  file_->SetPaused(true);
  RunLanes();
  EXPECT_EQ(Stored(), "");
  file_->SetPaused(false);
  RunLanes();
  EXPECT_EQ(Stored(), "abc");
}

TEST_F(FileControlTest, AFlushStoresThePastAndThePauseGoesOn) {
  Open();
  Pause();
  ASSERT_TRUE(Write(0, "abc").ok());
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Stored(), "abc");
  ASSERT_TRUE(Write(3, "def").ok());
  RunLanes();
  EXPECT_EQ(Stored(), "abc");
  bool stored = true;
  ASSERT_TRUE(file_->drainer().Test(stored).ok());  // who asks wants it
  EXPECT_FALSE(stored);
  RunLanes();
  ASSERT_TRUE(file_->drainer().Test(stored).ok());
  EXPECT_TRUE(stored);
  EXPECT_EQ(Stored(), "abcdef");
}

TEST_F(FileControlTest, ARequestIsStoredFromAPausedFile) {
  Open();
  Pause();
  std::shared_ptr<Completion> completion;
  {
    CallScope scope(CallScope::kNone, true);
    ASSERT_TRUE(Write(0, "abc").ok());
    completion = scope.TakeCompletion();
  }
  ASSERT_NE(completion, nullptr);
  EXPECT_EQ(completion->Wait(UINT64_MAX), Completion::State::kDone);
  EXPECT_EQ(Stored(), "abc");
}

TEST(FileControl, AFullArenaStoresFromAPausedFile) {
  FileBench bench(2, 256u << 10);
  bench.Open();
  bench.file_->SetPaused(true);
  const std::string more_than_fits(1u << 20, 'x');
  ASSERT_TRUE(bench.Write(0, more_than_fits).ok());
  ASSERT_TRUE(bench.file_->Flush().ok());
  EXPECT_EQ(Difference(bench.Stored(), more_than_fits), "");
}

TEST(FileControl, ADelayHoldsEvenLargeWritesForItsTime) {
  FileBench bench(1);
  bench.Open();
  bench.file_->SetDelay(50'000);
  const std::string big(2u << 20, 'b');
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(bench.Write(0, big).ok());
  while (!bench.file_->drainer().drained()) std::this_thread::yield();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(50));
  EXPECT_EQ(Difference(bench.Stored(), big), "");
}

TEST(FileControl, ADelayEndsEarlyForWhoeverWaits) {
  FileBench bench(1);
  bench.Open();
  bench.file_->SetDelay(3'600'000'000);
  ASSERT_TRUE(bench.Write(0, "abc").ok());
  ASSERT_TRUE(bench.file_->Flush().ok());
  EXPECT_EQ(bench.Stored(), "abc");
}

TEST_F(FileControlTest, AFileMayBeSynchronousForCallsWithoutARequest) {
  Open();
  FileSettings settings;
  settings.implicit_sync = true;
  file_->SetSettings(settings);
  const uint64_t counted = tidelane::Read(Fallback::kImplicitOff);
  {
    CallScope scope(CallScope::kNone, true);
    ASSERT_TRUE(Write(0, "abc").ok());
  }
  EXPECT_EQ(Stored(), "");
  ASSERT_TRUE(Write(1, "x").ok());  // its own bytes, and in program order
  EXPECT_EQ(Stored(), std::string("\0x", 2));
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Stored(), "axc");
  EXPECT_EQ(tidelane::Read(Fallback::kImplicitOff), counted + 1);
}

TEST_F(FileControlTest, ACallMayBeSynchronous) {
  Open();
  {
    CallScope scope(CallScope::kWriteThrough);
    ASSERT_TRUE(Write(0, "abc").ok());
  }
  EXPECT_EQ(Stored(), "abc");
  ASSERT_TRUE(Write(3, "def").ok());
  EXPECT_EQ(Stored(), "abc");
}

TEST_F(FileControlTest, ASynchronousSuperblockWaitsForWhatIsPending) {
  Open();
  ASSERT_TRUE(Write(100, "abc").ok());
  {
    CallScope scope(CallScope::kWriteThrough);
    ASSERT_TRUE(Write(0, Superblock('s') + "neighbour").ok());
  }
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{FaultPoint::kWrite, 48, 9}}));
  ASSERT_TRUE(file_->Flush().ok());
  const std::vector<Call> changes = TakeChanges();
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes.back(), (Call{FaultPoint::kWrite, 0, 48}));
}

// So long a delay passed the end of the clock's range, and was none.
TEST(FileDelayTest, TheLongestIsNotNone) {
  FileBench bench(1);
  bench.Open();
  bench.file_->SetDelay(UINT64_MAX);
  ASSERT_TRUE(bench.Write(0, "stays").ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(bench.TakeChanges().size(), 0u);
  EXPECT_TRUE(bench.file_->drainer().Drain(Wait::kFlush).ok());
  EXPECT_EQ(bench.Stored(), "stays");
}

}  // namespace
}  // namespace tidelane
