/// \file
/// Whoever waits for quick storage does the lanes' work: what becomes of the work that it leaves, of waits that have
/// nothing to do or only so much time, and of what a fork finds half done.
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "file/file_fixture.h"

namespace tidelane {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = Completion::State;

constexpr uint64_t kFarAway = 16u << 20;  // a request of its own

class FileWaitTest : public ::testing::Test {
 protected:
  FileWaitTest() {
    bench_.config_.mode = Mode::kAuto;
    bench_.config_.linger_us = 100'000'000;
    bench_.storage_->promises_speed = true;
    bench_.plan_ = [this](FaultPoint point, uint64_t address, uint64_t) {
      if (point == FaultPoint::kWrite && address == held_address_ && !released_.load()) {
        reached_.set_value();
        released_.wait(false);
      }
      return Fault{};
    };
    bench_.Open();
  }
  ~FileWaitTest() override { Release(); }

  std::shared_ptr<Completion> Issue(uint64_t address, const std::string& bytes) {
    CallScope scope(CallScope::kNone, true);
    EXPECT_TRUE(bench_.Write(address, bytes).ok());
    return scope.TakeCompletion();
  }
  // What a closed file's registry does when it has drained.
  void CloseInBackground(milliseconds closing_takes = milliseconds(0)) {
    bench_.file_->closing().Begin([this, closing_takes](const std::shared_ptr<File>& file) {
      std::this_thread::sleep_for(closing_takes);
      EXPECT_TRUE(file->closing().CloseDevice().ok());
      closed_.set_value();
    });
  }
  bool Closes() { return closed_.get_future().wait_for(seconds(20)) == std::future_status::ready; }
  // From here on a write at `address` does not return before Release.
  void Hold(uint64_t address) { held_address_ = address; }
  void AwaitHeld() { reached_.get_future().wait(); }
  void Release() {
    released_ = true;
    released_.notify_all();
  }

  std::promise<void> reached_;
  std::promise<void> closed_;
  std::atomic<uint64_t> held_address_{UINT64_MAX};
  std::atomic<bool> released_{false};
  FileBench bench_{2};
};

TEST_F(FileWaitTest, LanesTakeOverWhatIsLeftWhenTheWaiterHasWhatItWanted) {
  const auto request = Issue(0, "mine");
  Hold(0);
  std::thread waiter([&] { EXPECT_EQ(request->Wait(UINT64_MAX), State::kDone); });
  AwaitHeld();  // in the waiter's hands
  ASSERT_TRUE(bench_.Write(kFarAway, "later").ok());
  CloseInBackground();
  Release();
  waiter.join();
  EXPECT_TRUE(Closes());
  EXPECT_EQ(bench_.Stored().substr(kFarAway), "later");
}

TEST_F(FileWaitTest, ACloseThatBeganWhileAWaiterStoredTheLastBytesEnds) {
  const auto request = Issue(0, "mine");
  Hold(0);
  std::thread waiter([&] { EXPECT_EQ(request->Wait(UINT64_MAX), State::kDone); });
  AwaitHeld();
  CloseInBackground();
  Release();
  waiter.join();
  EXPECT_TRUE(Closes());
}

TEST_F(FileWaitTest, AFlushThatReturnedEarlyIsCarriedOutBehindAWaiter) {
  const auto request = Issue(0, "mine");
  Hold(0);
  std::thread waiter([&] { EXPECT_EQ(request->Wait(UINT64_MAX), State::kDone); });
  AwaitHeld();
  ASSERT_TRUE(bench_.Write(kFarAway, "later").ok());
  {
    CallScope scope(CallScope::kFlushMayReturnEarly);
    ASSERT_TRUE(bench_.file_->Flush(false, InProgress()).ok());
  }
  Release();
  waiter.join();
  const auto late = std::chrono::steady_clock::now() + seconds(20);
  while (!bench_.file_->drainer().drained() && std::chrono::steady_clock::now() < late)
    std::this_thread::yield();
  EXPECT_TRUE(bench_.file_->drainer().drained());
}

uint64_t CpuNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

TEST_F(FileWaitTest, WhoWaitsForASlowCloseSleeps) {
  std::shared_ptr<Completion> closed;
  {
    CallScope scope(CallScope::kNone, true);
    ASSERT_TRUE(bench_.Write(0, "bytes").ok());
    CloseInBackground(milliseconds(500));
    closed = scope.TakeCompletion();
  }
  const uint64_t begin_ns = CpuNs();
  EXPECT_EQ(closed->Wait(UINT64_MAX), State::kDone);
  EXPECT_LT(CpuNs() - begin_ns, 200'000'000u);
  EXPECT_TRUE(Closes());
}

TEST_F(FileWaitTest, AWaitForSoLongIsNotHeldUpByStorage) {
  const auto request = Issue(0, "mine");
  Hold(0);
  auto wait = std::async(std::launch::async, [&] { return request->Wait(1'000'000); });
  const bool in_time = wait.wait_for(seconds(10)) == std::future_status::ready;
  Release();
  EXPECT_TRUE(in_time);
  EXPECT_EQ(wait.get(), State::kPending);
  EXPECT_EQ(request->Wait(UINT64_MAX), State::kDone);
}

// Another thread closed it between the barrier of the fork and the fork: its lane is not in the child.
TEST_F(FileWaitTest, AForkedChildClosesWhatNoLaneOfItsOwnWasToldOf) {
  bench_.lanes_.Pause();
  CloseInBackground();
  bench_.file_->LockForFork();
  bench_.lanes_.LockForFork();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    bench_.lanes_.ForgetThreadsAfterFork();
    bench_.lanes_.UnlockAfterFork();
    bench_.file_->UnlockAfterFork(true);
    _exit(bench_.file_->closing().WaitClosed(Wait::kExit).ok() ? 0 : 1);
  }
  bench_.lanes_.UnlockAfterFork();
  bench_.file_->UnlockAfterFork(false);
  bench_.lanes_.Resume();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(Closes());
}

}  // namespace
}  // namespace tidelane
