/// \file
/// Completions and call scopes: what a request waits for, from whichever thread, and what scopes tell the driver.
#include "file/completion.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "file/file_fixture.h"

namespace tidelane {
namespace {

using State = Completion::State;

TEST(CallScopeTest, ScopesNestAndTheInnermostSpeaks) {
  EXPECT_EQ(CallScope::current(), nullptr);
  EXPECT_FALSE(CallScope::Has(CallScope::kFlushMayReturnEarly));
  CallScope outer(CallScope::kFlushMayReturnEarly | CallScope::kCloseMayBeDeferred);
  EXPECT_TRUE(CallScope::Has(CallScope::kCloseMayBeDeferred));
  {
    CallScope inner(CallScope::kHandOutDescriptor);
    EXPECT_EQ(CallScope::current(), &inner);
    EXPECT_FALSE(CallScope::Has(CallScope::kCloseMayBeDeferred));
    EXPECT_TRUE(CallScope::Has(CallScope::kHandOutDescriptor));
  }
  EXPECT_EQ(CallScope::current(), &outer);
  std::thread([] { EXPECT_EQ(CallScope::current(), nullptr) << "another thread's"; }).join();
}

class CompletionTest : public ::testing::Test, protected FileBench {
 protected:
  std::shared_ptr<Completion> TrackedWrite(uint64_t address, const std::string& text) {
    CallScope scope(CallScope::kNone, true);
    EXPECT_TRUE(Write(address, text).ok());
    return scope.TakeCompletion();
  }
};

TEST_F(CompletionTest, OneCallIsOneEpochHoweverOftenItWrites) {
  Open();
  CallScope scope(CallScope::kNone, true);
  ASSERT_TRUE(Write(0, "a").ok());
  const uint64_t epoch = scope.EpochOf(&file_->epochs());
  EXPECT_NE(epoch, 0u);
  ASSERT_TRUE(Write(100, "b").ok());
  EXPECT_EQ(scope.EpochOf(&file_->epochs()), epoch);
  const auto request = scope.TakeCompletion();
  EXPECT_EQ(request->Wait(UINT64_MAX), State::kDone);
  EXPECT_EQ(Stored().size(), 101u);
}

// A look that only lanes could make true would never be.
TEST_F(CompletionTest, WithoutLanesAReadGetsOnByBeingAskedFor) {
  Open();
  ASSERT_FALSE(lanes_.threaded());
  constexpr uint64_t kBytes = 4u << 20;
  ASSERT_TRUE(Write(0, std::string(kBytes, 'a')).ok());
  ASSERT_TRUE(file_->drainer().Drain(Wait::kFlush).ok());
  std::string to(kBytes, '?');
  CallScope scope(CallScope::kNone);
  auto* const begin = reinterpret_cast<std::byte*>(to.data());
  scope.AcceptLater(begin, to.size());
  ASSERT_TRUE(file_->Read(0, to.size(), begin, true, InProgress()).ok());
  const auto request = scope.TakeCompletion();
  ASSERT_NE(request, nullptr);
  State state = State::kPending;
  for (int i = 0; i < 100 && state == State::kPending; ++i) {
    ASSERT_TRUE(request->LooksDone());
    state = request->Poll();
  }
  EXPECT_EQ(state, State::kDone);
  EXPECT_EQ(to, std::string(kBytes, 'a'));
}

// What the calls write replaces what the other one wrote, in turn.
TEST_F(CompletionTest, ACallInsideACallWaitsForItsOwnBytesOnly) {
  Open();
  CallScope outer(CallScope::kNone, true);
  std::shared_ptr<Completion> inner_request;
  ASSERT_TRUE(Write(0, "outer").ok());
  {
    CallScope inner(CallScope::kNone, true);
    ASSERT_TRUE(Write(0, "inner").ok());
    inner_request = inner.TakeCompletion();
  }
  ASSERT_TRUE(Write(0, "again").ok());
  const auto outer_request = outer.TakeCompletion();
  EXPECT_EQ(inner_request->Poll(), State::kPending);
  EXPECT_EQ(outer_request->Poll(), State::kPending);
  RunLanes();
  EXPECT_EQ(inner_request->Poll(), State::kDone);
  EXPECT_EQ(outer_request->Poll(), State::kDone);
  EXPECT_EQ(Stored(), "again");
}

TEST_F(CompletionTest, ACallMayTouchSeveralFiles) {
  FileBench other;
  Open();
  other.Open();
  CallScope scope(CallScope::kNone, true);
  ASSERT_TRUE(Write(0, "here").ok());
  ASSERT_TRUE(other.Write(0, "there").ok());
  const auto request = scope.TakeCompletion();
  EXPECT_EQ(request->Poll(), State::kPending);
  RunLanes();
  EXPECT_EQ(request->Poll(), State::kPending);
  other.RunLanes();
  EXPECT_EQ(request->Poll(), State::kDone);
}

TEST_F(CompletionTest, AFailureInOneFileDoesNotHideThatAnotherIsPending) {
  FileBench other;
  Open();
  other.Open();
  FailingWrites faults(*this);
  CallScope scope(CallScope::kNone, true);
  ASSERT_TRUE(Write(0, "here").ok());
  ASSERT_TRUE(other.Write(0, "there").ok());
  const auto request = scope.TakeCompletion();
  RunLanes();
  EXPECT_EQ(request->Poll(), State::kPending);
  EXPECT_EQ(request->Wait(UINT64_MAX), State::kFailed);
  EXPECT_EQ(other.Stored(), "there");
  EXPECT_EQ(request->error().code(), ENOSPC);
}

TEST_F(CompletionTest, AFinishedRequestLetsGoOfTheFile) {
  Open();
  const auto request = TrackedWrite(0, "data");
  ASSERT_EQ(request->Wait(UINT64_MAX), State::kDone);
  RunLanes();
  const std::weak_ptr<File> watched = file_;
  file_.reset();
  EXPECT_TRUE(watched.expired());
}

TEST_F(CompletionTest, AWaitEndsAtItsLimit) {
  FileBench bench(1);
  bench.Open();
  std::atomic<bool> go_on{false};
  bench.plan_ = [&](FaultPoint point, uint64_t, uint64_t) {
    while (point == FaultPoint::kWrite && !go_on) std::this_thread::yield();
    return Fault{};
  };
  CallScope scope(CallScope::kNone, true);
  ASSERT_TRUE(bench.Write(0, "data").ok());
  const auto request = scope.TakeCompletion();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(request->Wait(20'000'000), State::kPending);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
  go_on = true;
  EXPECT_EQ(request->Wait(UINT64_MAX), State::kDone);
  EXPECT_EQ(request->Wait(0), State::kDone);
}

TEST_F(CompletionTest, SeveralThreadsMayWaitForOneRequest) {
  FileBench bench(2);
  bench.Open();
  for (int i = 0; i < 200; ++i) {
    CallScope scope(CallScope::kNone, true);
    ASSERT_TRUE(bench.Write(static_cast<uint64_t>(i) * 10, "data").ok());
    const auto request = scope.TakeCompletion();
    std::thread other([&] { EXPECT_EQ(request->Wait(UINT64_MAX), State::kDone); });
    EXPECT_EQ(request->Wait(UINT64_MAX), State::kDone);
    other.join();
  }
}

// The program writes, cuts and flushes while other threads wait for its requests: every wait ends.
void WaitElsewhere(unsigned lanes, bool faults) {
  FileBench bench(lanes, 1u << 20);
  bench.record_ = false;
  bench.Open();
  std::atomic<unsigned> calls{0};
  std::atomic<bool> failing{faults};
  bench.plan_ = [&](FaultPoint point, uint64_t, uint64_t) {
    const unsigned call = ++calls;
    if (call % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    return failing && point != FaultPoint::kRead && call % 11 == 0 ? Fault{EIO, 0} : Fault{};
  };
  Mutex mutex;
  std::deque<std::shared_ptr<Completion>> requests;
  std::atomic<bool> over{false};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back([&] {
      for (;;) {
        std::shared_ptr<Completion> request;
        {
          MutexLock lock(mutex);
          if (!requests.empty()) request = std::move(requests.front()), requests.pop_front();
        }
        if (request != nullptr) {
          EXPECT_NE(request->Wait(UINT64_MAX), State::kPending);
        } else if (over) {
          return;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  std::mt19937 random(lanes);
  for (int step = 0; step < 1500; ++step) {
    CallScope scope(random() % 4 == 0 ? CallScope::kFlushMayReturnEarly : CallScope::kNone, true);
    const unsigned choice = random() % 10;
    if (choice < 7) {
      const Status status =
          bench.Write(random() % 500'000, std::string(1 + random() % 30'000, 'w'));
      EXPECT_TRUE(faults || status.ok());
    } else if (choice == 7) {
      const Status status = bench.file_->Truncate(random() % 600'000);
      EXPECT_TRUE(faults || status.ok());
    } else {
      const Status status = bench.file_->Flush(false, InProgress());
      EXPECT_TRUE(faults || status.ok());
    }
    if (auto request = scope.TakeCompletion(); request != nullptr) {
      MutexLock lock(mutex);
      requests.push_back(std::move(request));
    }
  }
  over = true;
  for (std::thread& waiter : waiters) waiter.join();
  failing = false;
  bool stored = bench.file_->Flush().ok();
  if (!stored)
    stored = bench.file_->Flush().ok();  // a run may have failed just before storage recovered
  EXPECT_TRUE(stored);
}

TEST_F(CompletionTest, OtherThreadsWaitWhileTheProgramGoesOn) {
  for (const unsigned lanes : {1u, 3u}) WaitElsewhere(lanes, false);
}

TEST_F(CompletionTest, OtherThreadsWaitWhileTheProgramGoesOnAndStorageFails) {
  for (const unsigned lanes : {1u, 3u}) WaitElsewhere(lanes, true);
}

}  // namespace
}  // namespace tidelane
