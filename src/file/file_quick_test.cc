/// \file
/// A file on storage that is as quick as memory: who writes what, in mode=auto and mode=async.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/decisions.h"
#include "file/file_fixture.h"

namespace tidelane {
namespace {

constexpr uint64_t kLarge = uint64_t{256} * 1024;
constexpr uint64_t kHourNs = 3'600'000'000'000;
constexpr uint64_t kPhase = 2 * model::CostModel::kWorthALane;
constexpr std::chrono::milliseconds kPause{20};

class FileQuickTest : public ::testing::Test {
 protected:
  void Open(Mode mode) {
    bench_.config_.mode = mode;
    bench_.config_.linger_us = 10'000'000;
    bench_.storage_->promises_speed = true;
    bench_.chooser_times_.quick_request_ns = kHourNs;  // a busy machine is no slow storage
    bench_.plan_ = [this](FaultPoint point, uint64_t, uint64_t) {
      if (point == FaultPoint::kWrite) {
        const std::lock_guard lock(mutex_);
        writers_.insert(std::this_thread::get_id());
      }
      return Fault{};
    };
    bench_.Open();
  }
  // A phase, and a pause in which storing so much again is hidden, however busy this machine is.
  void WriteAndPause(uint64_t address, const std::string& bytes) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(bench_.Write(address, bytes).ok());
    const auto took = std::chrono::steady_clock::now() - begin;
    std::this_thread::sleep_for(std::max<std::chrono::nanoseconds>(kPause, 4 * took));
  }
  std::set<std::thread::id> Writers() {
    const std::lock_guard lock(mutex_);
    return writers_;
  }
  const std::set<std::thread::id> only_me_{std::this_thread::get_id()};

 private:
  std::mutex mutex_;
  std::set<std::thread::id> writers_;

 protected:
  FileBench bench_{2, 4 * kPhase};  // last: its lanes use all the others
};

TEST_F(FileQuickTest, LargeWritesGoThroughFromTheFirstOn) {
  Open(Mode::kAuto);
  const std::string bytes(kLarge, 'q');
  ASSERT_TRUE(bench_.Write(0, bytes).ok());
  EXPECT_TRUE(bench_.Stored() == bytes);
  EXPECT_EQ(Writers(), only_me_);
}

TEST_F(FileQuickTest, RowsBetweenOtherRanksAreTheProgramsUnlessItPauses) {
  Open(Mode::kAuto);
  const uint64_t begin_ns = NowNs();
  ASSERT_TRUE(bench_.file_->writes().BeginScattered(begin_ns, 16 * 512));
  const uint64_t sync_before = Read(Fallback::kQuickStorage);
  bench_.file_->writes().EndScattered(begin_ns, 16 * 512, 16);
  EXPECT_EQ(Read(Fallback::kQuickStorage), sync_before + 1);
  for (uint64_t step = 0; step < 4; ++step) WriteAndPause(0, std::string(kPhase, 'p'));
  EXPECT_FALSE(bench_.file_->writes().BeginScattered(NowNs(), 16 * 512));
}

// Ranks on too few cores wait for the file's lock, which is not storage's doing.
TEST_F(FileQuickTest, RowsBetweenOtherRanksMaySometimesTakeLong) {
  bench_.kind_ = kSharedFile;
  Open(Mode::kAuto);
  const auto took = [&](uint64_t ns) {
    const uint64_t begin_ns = NowNs();
    const bool chosen = bench_.file_->writes().BeginScattered(begin_ns, 512);
    if (chosen) bench_.file_->writes().EndScattered(begin_ns - ns, 512, 1);
    return chosen;
  };
  for (const uint64_t ns : {2 * kHourNs, 2 * kHourNs, uint64_t{0}, 2 * kHourNs})
    EXPECT_TRUE(took(ns));
  EXPECT_FALSE(took(0)) << "three of the last eight";
}

TEST_F(FileQuickTest, RowsBetweenOtherRanksAreDeferredIfAllIs) {
  Open(Mode::kAsync);
  EXPECT_FALSE(bench_.file_->writes().BeginScattered(NowNs(), 16 * 512));
}

TEST_F(FileQuickTest, SmallOnesAreGatheredAndWhoeverFlushesStoresThem) {
  Open(Mode::kAuto);
  for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(bench_.Write(i * 100, std::string(100, 's')).ok());
  EXPECT_EQ(bench_.Stored(), "");
  ASSERT_TRUE(bench_.file_->Flush().ok());
  EXPECT_TRUE(bench_.Stored() == std::string(10'000, 's'));
  EXPECT_EQ(Writers(), only_me_);
  EXPECT_EQ(bench_.TakeChanges().size(), 1u);
}

// A thread would make its every malloc slower, and fresh memory costs more than what lies in the caches.
TEST_F(FileQuickTest, AProgramThatDoesNotPauseStoresWhatItGathersInTheSameMemory) {
  bench_.chooser_times_ = {.shortest_pause_ns = kHourNs};  // nor a pause of the program's
  Open(Mode::kAuto);
  constexpr uint64_t kPiece = 1000, kPieces = 4000;
  ASSERT_TRUE(bench_.Write(0, Superblock('s')).ok());
  for (uint64_t i = 0; i < kPieces; ++i) {
    ASSERT_TRUE(bench_.Write(48 + i * kPiece, std::string(kPiece, 'g')).ok());
  }
  EXPECT_EQ(Writers(), only_me_);
  EXPECT_LE(bench_.arena_.in_use(), bench_.arena_.slab_size());
  EXPECT_LT(kPieces * kPiece - bench_.Stored().size(), 300'000u);
  ASSERT_TRUE(bench_.file_->Flush().ok());
  EXPECT_EQ(Difference(bench_.Stored().substr(48), std::string(kPieces * kPiece, 'g')), "");
  EXPECT_EQ(Writers(), only_me_);
}

// Bytes that wait for a lane's request, which may take long, keep no program standing that only gathers.
TEST_F(FileQuickTest, WhoGathersDoesNotWaitForWhatALaneIsStoring) {
  bench_.chooser_times_ = {.shortest_pause_ns = kHourNs};
  Open(Mode::kAuto);
  std::promise<void> lane_stores, gathered;
  std::atomic<unsigned> requests{0};
  bench_.plan_ = [&](FaultPoint point, uint64_t, uint64_t) {
    if (point == FaultPoint::kWrite && requests++ == 0) {
      lane_stores.set_value();
      EXPECT_EQ(gathered.get_future().wait_for(std::chrono::seconds(20)),
                std::future_status::ready);
    }
    return Fault{};
  };
  constexpr uint64_t kPiece = 16'000, kPieces = 100;
  ASSERT_TRUE(bench_.Write(0, std::string(kPiece, 'o')).ok());
  bool stored = false;
  ASSERT_TRUE(bench_.file_->drainer().Test(stored).ok());  // a lane's business
  lane_stores.get_future().wait();
  for (uint64_t i = 0; i < kPieces; ++i) {
    ASSERT_TRUE(bench_.Write(i * kPiece, std::string(kPiece, 'n')).ok());
  }
  gathered.set_value();
  ASSERT_TRUE(bench_.file_->Flush().ok());
  EXPECT_EQ(Difference(bench_.Stored(), std::string(kPieces * kPiece, 'n')), "");
}

TEST_F(FileQuickTest, AfterAPauseLanesStore) {
  Open(Mode::kAuto);
  const std::string bytes(kPhase, 'q');
  WriteAndPause(0, bytes);
  ASSERT_TRUE(bench_.Write(kPhase, bytes).ok());
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (Writers() == only_me_ && std::chrono::steady_clock::now() < late)
    std::this_thread::yield();
  EXPECT_NE(Writers(), only_me_);
}

TEST_F(FileQuickTest, AfterAPauseFewBytesStillGoThrough) {
  Open(Mode::kAuto);
  const std::string bytes(kLarge, 'q');
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(bench_.Write(i * kLarge, bytes).ok());
    EXPECT_EQ(bench_.Stored().size(), (i + 1) * kLarge);
    std::this_thread::sleep_for(kPause);
  }
  EXPECT_EQ(Writers(), only_me_);
}

// Two steps and a third write, by which the second one is over: what was done, what it took, and what was expected.
class FileEpochsTest : public FileQuickTest {
 protected:
  std::vector<Decision> Epochs(Mode mode) {
    ResetDecisionsAfterFork();
    Open(mode);
    if (mode == Mode::kSync) {
      EXPECT_TRUE(bench_.file_->WriteThrough(Fallback::kModeSync).ok());
    }
    const std::string bytes(kPhase, 'e');
    for (uint64_t i = 0; i < 3; ++i) WriteAndPause(i * bytes.size(), bytes);
    std::vector<Decision> decisions = ReadDecisions().last;
    EXPECT_TRUE(bench_.file_->Flush().ok());  // no lane is at work when the test's own books end
    return decisions;
  }
};

TEST_F(FileEpochsTest, SynchronousOnesAreMeasuredToo) {
  const auto epochs = Epochs(Mode::kSync);
  ASSERT_EQ(epochs.size(), 2u);
  for (const Decision& epoch : epochs) {
    EXPECT_FALSE(epoch.async);
    EXPECT_TRUE(epoch.fixed);
    EXPECT_EQ(epoch.bytes, kPhase);
    EXPECT_EQ(epoch.file, "memory.h5");
    EXPECT_GE(epoch.compute_seconds, 0.019);
    EXPECT_GE(epoch.seconds, epoch.compute_seconds);
  }
  EXPECT_FALSE(epochs[0].forecast.has_value());
  ASSERT_TRUE(epochs[1].forecast.has_value());
  EXPECT_GE(epochs[1].forecast->chosen, 0.019);
  EXPECT_EQ(epochs[1].forecast->chosen, epochs[1].forecast->sync);
}

TEST_F(FileEpochsTest, AsynchronousOnesAreCopiesAndThePause) {
  const auto epochs = Epochs(Mode::kAsync);
  ASSERT_EQ(epochs.size(), 2u);
  EXPECT_TRUE(epochs[0].async && epochs[0].fixed);
  ASSERT_TRUE(epochs[1].forecast.has_value());
  EXPECT_EQ(epochs[1].forecast->chosen, epochs[1].forecast->async);
}

TEST_F(FileEpochsTest, TheAutomaticModeHandsOverBehindAPause) {
  const auto epochs = Epochs(Mode::kAuto);
  ASSERT_EQ(epochs.size(), 2u);
  EXPECT_FALSE(epochs[0].async) << "nothing was known";
  EXPECT_TRUE(epochs[1].async);
  EXPECT_FALSE(epochs[1].fixed);
}

TEST_F(FileQuickTest, WhoeverWaitsForARequestStoresItsBytes) {
  Open(Mode::kAuto);
  CallScope scope(CallScope::kNone, true);
  ASSERT_TRUE(bench_.Write(0, "request").ok());
  const auto request = scope.TakeCompletion();
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->Wait(UINT64_MAX), Completion::State::kDone);
  EXPECT_EQ(bench_.Stored(), "request");
  EXPECT_EQ(Writers(), only_me_);
}

TEST_F(FileQuickTest, ModeAsyncLeavesEverythingToTheLanes) {
  Open(Mode::kAsync);
  const std::string bytes(kLarge, 'q');
  ASSERT_TRUE(bench_.Write(0, bytes).ok());
  ASSERT_TRUE(bench_.file_->Flush().ok());
  EXPECT_TRUE(bench_.Stored() == bytes);
  EXPECT_FALSE(Writers().contains(std::this_thread::get_id()));
}

// Several threads flush what others write: one at a time stores, everybody's bytes arrive.
TEST_F(FileQuickTest, ThreadsThatFlushTogetherLoseNothing) {
  Open(Mode::kAuto);
  bench_.record_ = false;
  constexpr uint64_t kThreads = 4, kPieces = 60, kPiece = 1000;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kPieces; ++i) {
        const uint64_t size = i % 50 == 0 ? kLarge : kPiece;
        EXPECT_TRUE(bench_.Write((t * kPieces + i) * kLarge, std::string(size, 'a')).ok());
        if (i % 4 == t) {
          EXPECT_TRUE(bench_.file_->Flush().ok());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(bench_.file_->Flush().ok());
  const std::string stored = bench_.Stored();
  for (uint64_t i = 0; i < kThreads * kPieces; ++i) {
    const uint64_t size = i % kPieces % 50 == 0 ? kLarge : kPiece;
    ASSERT_TRUE(stored.substr(i * kLarge, size) == std::string(size, 'a')) << "piece " << i;
  }
}

TEST_F(FileQuickTest, AFailureIsToldAndTheBytesStay) {
  Open(Mode::kAuto);
  FailingWrites faults(bench_);
  ASSERT_TRUE(bench_.Write(0, "small").ok());
  EXPECT_EQ(bench_.file_->Flush().code(), ENOSPC);
  EXPECT_EQ(bench_.Write(100, std::string(kLarge, 'x')).code(), ENOSPC) << "as natively";
  EXPECT_EQ(bench_.Read(0, 5), "small");
  faults.failing = false;
  ASSERT_TRUE(bench_.file_->Flush().ok());
  EXPECT_EQ(bench_.Stored().substr(0, 5), "small");
}

}  // namespace
}  // namespace tidelane
