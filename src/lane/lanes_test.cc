/// \file
/// Lanes: who runs, when, in what surroundings, and what a fork leaves.
#include "lane/lanes.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = Lanes::Clock;

class Task final : public LaneTask {
 public:
  explicit Task(std::function<void()> work, bool computes = false)
      : work_(std::move(work)), computes_(computes) {}
  void RunOne() override { work_(); }
  bool computes() const override { return computes_; }

 private:
  std::function<void()> work_;
  const bool computes_;
};

std::shared_ptr<LaneTask> Do(std::function<void()> work) {
  return std::make_shared<Task>(std::move(work));
}

std::shared_ptr<LaneTask> Compute(std::function<void()> work) {
  return std::make_shared<Task>(std::move(work), true);
}

// Waits until `condition` holds; false after long enough for any machine.
bool Eventually(const std::function<bool()>& condition) {
  const auto late = Clock::now() + seconds(60);
  while (!condition()) {
    if (Clock::now() > late) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(LanesTest, WithoutThreadsTasksRunInOrderWhenAsked) {
  Lanes lanes(0);
  std::vector<int> ran;
  EXPECT_FALSE(lanes.threaded());
  EXPECT_TRUE(lanes.idle());
  lanes.Schedule(Do([&] { ran.push_back(1); }));
  lanes.ScheduleAfter(Do([&] { ran.push_back(3); }), seconds(1000));
  lanes.Schedule(Do([&] { ran.push_back(2); }));
  EXPECT_FALSE(lanes.idle());
  EXPECT_TRUE(ran.empty());
  while (lanes.RunQueued()) {
  }
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(lanes.idle());
}

// Who waited for busy lanes to make room in the arena waited for as long as some file lingered.
TEST(LanesTest, WhatLingersDoesNotMakeLanesBusy) {
  Lanes lanes(1);
  std::atomic<bool> ran{false};
  lanes.Schedule(Do([&] { ran = true; }));
  lanes.ScheduleAfter(Do([] {}), seconds(1000));
  EXPECT_TRUE(Eventually([&] { return ran && lanes.idle(); }));
}

TEST(LanesTest, ATaskMayScheduleItself) {
  Lanes lanes(0);
  int left = 5;
  std::shared_ptr<LaneTask> task;
  task = Do([&] {
    EXPECT_FALSE(lanes.idle()) << "it is running";
    if (--left > 0) lanes.Schedule(task);
  });
  lanes.Schedule(task);
  while (lanes.RunQueued()) {
  }
  EXPECT_EQ(left, 0);
  task.reset();
}

// Chunks that wait for their filters would have storage wait behind them.
TEST(LanesTest, StorageDoesNotStandBehindWhatOnlyComputes) {
  Lanes lanes(0);
  std::vector<int> ran;
  lanes.Schedule(Compute([&] { ran.push_back(2); }));
  lanes.Schedule(Compute([&] { ran.push_back(3); }));
  lanes.Schedule(Do([&] { ran.push_back(1); }));
  EXPECT_FALSE(lanes.idle());
  while (lanes.RunQueued()) {
  }
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(lanes.idle());
}

TEST(LanesTest, HalfOfTheLanesComputeWhileTheOthersStore) {
  std::atomic<bool> leave{false};
  std::atomic<int> stores{0}, computed{0};
  Lanes lanes(2);
  const auto store = [&] {
    ++stores;
    while (!leave) std::this_thread::yield();
    --stores;
  };
  lanes.Schedule(Do(store));
  EXPECT_TRUE(Eventually([&] { return stores == 1; }));
  lanes.Schedule(Compute([&] { computed += stores == 1 ? 1 : 100; }));
  lanes.Schedule(Do(store));  // there is a lane for it, once nothing is to be computed
  EXPECT_TRUE(Eventually([&] { return stores == 2; }));
  EXPECT_EQ(computed, 1);
  leave = true;
}

// How many tasks of a kind run at once, at most: each stays until `leave`.
class AtOnce {
 public:
  std::function<void()> work() {
    return [this] {
      const int now = ++running_;
      for (int seen = most_; now > seen && !most_.compare_exchange_weak(seen, now);) {
      }
      while (!leave) std::this_thread::yield();
      --running_;
    };
  }
  int running() const { return running_; }
  int most() const { return most_; }
  std::atomic<bool> leave{false};

 private:
  std::atomic<int> running_{0}, most_{0};
};

TEST(LanesTest, WhatOnlyComputesMayHaveMoreThreads) {
  AtOnce computing, storing;
  std::atomic<int> asked{0};
  Lanes lanes(2);
  lanes.SetMostComputing([&] {
    ++asked;
    return 6u;
  });
  for (int i = 0; i < 20; ++i) lanes.Schedule(Do(storing.work()));
  EXPECT_TRUE(Eventually([&] { return storing.running() == 2; }));
  EXPECT_EQ(asked, 0);  // what stores has no use for them
  for (int i = 0; i < 20; ++i) lanes.Schedule(Compute(computing.work()));
  EXPECT_TRUE(Eventually([&] { return computing.running() == 4; }));
  EXPECT_EQ(storing.running(), 2);
  storing.leave = true;  // those two may compute, too, once there is nothing to be stored
  EXPECT_TRUE(Eventually([&] { return computing.running() == 6; }));
  computing.leave = true;
  EXPECT_TRUE(Eventually([&] { return lanes.idle(); }));
  EXPECT_EQ(storing.most(), 2);
  EXPECT_EQ(computing.most(), 6);
  EXPECT_EQ(asked, 1);
}

TEST(LanesTest, StorageHasItsLanesWhileMoreThreadsComputed) {
  AtOnce computing, storing;
  Lanes lanes(2);
  lanes.SetMostComputing([] { return 4u; });
  for (int i = 0; i < 4; ++i) lanes.Schedule(Compute(computing.work()));
  EXPECT_TRUE(Eventually([&] { return computing.running() == 4; }));
  for (int i = 0; i < 8; ++i) lanes.Schedule(Do(storing.work()));
  computing.leave = true;
  EXPECT_TRUE(Eventually([&] { return storing.running() == 2; }));
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(storing.most(), 2);
  storing.leave = true;
  EXPECT_TRUE(Eventually([&] { return lanes.idle(); }));
  EXPECT_EQ(storing.most(), 2);
}

TEST(LanesTest, TheyMayBeNicerThanTheProgram) {
  const int own = getpriority(PRIO_PROCESS, 0);
  for (const int more : {0, 2}) {
    Lanes lanes(1);
    if (more != 0) lanes.SetNiceness(more);
    std::atomic<int> found{-100};
    lanes.Schedule(Do([&] { found = getpriority(PRIO_PROCESS, 0); }));
    EXPECT_TRUE(Eventually([&] { return found != -100; }));
    EXPECT_EQ(found, std::min(own + more, 19));
    EXPECT_EQ(getpriority(PRIO_PROCESS, 0), own);  // the program's stays
  }
}

TEST(LanesTest, SeveralLanesShareOneQueue) {
  Lanes lanes(3);
  std::atomic<int> together{0};
  std::atomic<int> done{0};
  for (int i = 0; i < 3; ++i) {
    lanes.Schedule(Do([&] {
      ++together;
      EXPECT_TRUE(Eventually([&] { return together == 3; })) << "three lanes at once";
      ++done;
    }));
  }
  EXPECT_TRUE(Eventually([&] { return done == 3 && lanes.idle(); }));
}

TEST(LanesTest, EveryTaskOfManyThreadsRunsOnce) {
  Lanes lanes(2);
  std::atomic<int> ran{0};
  std::vector<std::thread> programs;
  for (int p = 0; p < 4; ++p) {
    programs.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        if (i % 3 == 0) {
          lanes.ScheduleAfter(Do([&] { ++ran; }), std::chrono::microseconds(i % 50));
        } else {
          lanes.Schedule(Do([&] { ++ran; }));
        }
      }
    });
  }
  for (std::thread& program : programs) program.join();
  EXPECT_TRUE(Eventually([&] { return ran == 8000 && lanes.idle(); })) << ran;
}

TEST(LanesTest, ALingeringTaskComesWhenItIsDueAndNotBefore) {
  Lanes lanes(1);
  std::atomic<bool> ran{false};
  Clock::time_point when;
  const auto before = Clock::now();
  lanes.ScheduleAfter(Do([&] {
                        when = Clock::now();
                        ran = true;
                      }),
                      milliseconds(30));
  EXPECT_TRUE(Eventually([&] { return ran.load(); }));
  EXPECT_GE(when - before, milliseconds(30));
}

// A lane slept until the first task was due; one that is due earlier must wake it.
TEST(LanesTest, AnEarlierTaskDoesNotWaitForALaterOne) {
  Lanes lanes(1);
  std::atomic<bool> ran{false};
  lanes.ScheduleAfter(Do([] {}), seconds(3600));
  std::this_thread::sleep_for(milliseconds(10));
  lanes.ScheduleAfter(Do([&] { ran = true; }), milliseconds(5));
  EXPECT_TRUE(Eventually([&] { return ran.load(); }));
}

TEST(LanesTest, LanesBlockAllSignals) {
  Lanes lanes(1);
  std::atomic<bool> ran{false};
  sigset_t blocked;
  lanes.Schedule(Do([&] {
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    ran = true;
  }));
  ASSERT_TRUE(Eventually([&] { return ran.load(); }));
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD}) {
    EXPECT_EQ(sigismember(&blocked, signal), 1) << signal;
  }
  sigset_t ours;
  pthread_sigmask(SIG_BLOCK, nullptr, &ours);
  EXPECT_EQ(sigismember(&ours, SIGUSR1), 0) << "the program's own mask is as it was";
}

TEST(LanesTest, LanesLeaveACoreThatALauncherBoundThemTo) {
  cpu_set_t before;
  ASSERT_EQ(pthread_getaffinity_np(pthread_self(), sizeof(before), &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one core only";
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(one), &one), 0);
  std::atomic<int> cores{0};
  {
    Lanes lanes(1);
    lanes.Schedule(Do([&] {
      cpu_set_t mine;
      pthread_getaffinity_np(pthread_self(), sizeof(mine), &mine);
      cores = CPU_COUNT(&mine);
    }));
    EXPECT_TRUE(Eventually([&] { return cores != 0; }));
  }
  pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
  EXPECT_GT(cores, 1);
}

TEST(LanesTest, IdleLanesDoIdleWorkUntilThereIsNone) {
  std::atomic<int> idle_calls{0};
  std::atomic<bool> ran{false};
  Lanes lanes(1);
  lanes.SetIdleWork([&] {
    return ++idle_calls < 4 ? Lanes::Clock::duration::zero() : Lanes::Clock::duration::max();
  });
  lanes.Schedule(Do([&] { ran = true; }));
  EXPECT_TRUE(Eventually([&] { return ran && idle_calls >= 4; }));
}

TEST(LanesTest, TheLastLaneStaysForIdleWorkThatIsDueLater) {
  std::atomic<int> idle_calls{0};
  Lanes lanes(2, milliseconds(10));
  lanes.SetIdleWork([&]() -> Lanes::Clock::duration {
    return ++idle_calls < 4 ? milliseconds(60) : Lanes::Clock::duration::max();
  });
  lanes.Schedule(Do([] {}));
  EXPECT_TRUE(Eventually([&] { return idle_calls >= 4; }));
  // Then it ends, and who comes later is served by another one.
  std::this_thread::sleep_for(milliseconds(50));
  std::atomic<bool> ran{false};
  lanes.Schedule(Do([&] { ran = true; }));
  EXPECT_TRUE(Eventually([&] { return ran.load(); }));
}

TEST(LanesTest, AWriteYieldsToAReadButNotForLong) {
  Lanes lanes(1);
  const auto before = Clock::now();
  lanes.YieldToReads();
  EXPECT_LT(Clock::now() - before, seconds(10)) << "nobody reads";
  {
    Lanes::ForegroundRead never_ends(lanes);
    lanes.YieldToReads();
    EXPECT_GE(Clock::now() - before, milliseconds(1));
    EXPECT_LT(Clock::now() - before, seconds(10)) << "it must get on in the end";
  }
  std::atomic<bool> written{false};
  {
    Lanes::ForegroundRead read(lanes);
    lanes.Schedule(Do([&] {
      lanes.YieldToReads();
      written = true;
    }));
    Lanes::ForegroundRead nested(lanes);
  }
  EXPECT_TRUE(Eventually([&] { return written.load(); }));
}

TEST(LanesTest, DestructionDropsWhatHasNotRun) {
  std::weak_ptr<LaneTask> watched;
  {
    Lanes lanes(1);
    auto task = Do([] {});
    watched = task;
    lanes.ScheduleAfter(std::move(task), seconds(3600));
  }
  EXPECT_TRUE(watched.expired());
}

TEST(LanesTest, AForkedChildStartsLanesOfItsOwn) {
  Lanes lanes(2);
  std::atomic<int> ran{0};
  lanes.Schedule(Do([&] { ++ran; }));
  ASSERT_TRUE(Eventually([&] { return ran == 1 && lanes.idle(); }));
  lanes.LockForFork();
  const pid_t child = fork();
  if (child == 0) {
    lanes.ForgetThreadsAfterFork();
    lanes.UnlockAfterFork();
    lanes.Schedule(Do([&] { ++ran; }));
    _exit(Eventually([&] { return ran == 2 && lanes.idle(); }) ? 0 : 1);
  }
  lanes.UnlockAfterFork();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  lanes.Schedule(Do([&] { ++ran; }));
  EXPECT_TRUE(Eventually([&] { return ran == 2; }));
}

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer =
    true;  // it has a thread of its own, from the program's first one on
#else
constexpr bool kThreadSanitizer = false;
#endif

long ThreadsOfThisProcess() {
  if (kThreadSanitizer) std::thread([] {}).join();
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads));
}

// A forked child found the allocator's locks taken by a thread that was just starting, and hung.
TEST(LanesTest, NoThreadStartsDuringAPause) {
  Lanes lanes(1);
  std::atomic<bool> ran{false};
  lanes.Pause();
  const long before = ThreadsOfThisProcess();
  lanes.Schedule(Do([&] { ran = true; }));
  EXPECT_EQ(ThreadsOfThisProcess(), before);
  lanes.Resume();
  EXPECT_TRUE(Eventually([&] { return ran.load(); }));
}

// A device that does not answer holds the lane that asked it, and nobody else's bytes.
TEST(LanesTest, WhatLingersBehindABusyLaneIsDoneByAnother) {
  std::atomic<bool> busy{false}, lingered{false}, done{false};
  Lanes lanes(2);
  lanes.Schedule(Do([&] {
    busy = true;
    while (!done) std::this_thread::yield();
  }));
  ASSERT_TRUE(Eventually([&] { return busy.load(); }));
  lanes.ScheduleAfter(Do([&] { lingered = true; }), milliseconds(1));
  EXPECT_TRUE(Eventually([&] { return lingered.load(); }));
  done = true;
}

// The lane that would have come for it when it is due may have got something else to do.
void LingersBeforeALaneIsBusy(Lanes& lanes) {
  std::atomic<bool> lingered{false}, done{false}, over{false};
  lanes.ScheduleAfter(Do([&] { lingered = true; }), milliseconds(30));
  lanes.Schedule(Do([&] {
    while (!done) std::this_thread::yield();
    over = true;
  }));
  EXPECT_TRUE(Eventually([&] { return lingered.load(); }));
  done = true;
  EXPECT_TRUE(Eventually([&] { return over.load() && lanes.idle(); }));
}

TEST(LanesTest, WhatLingeredBeforeItsLaneWasBusyIsDoneByOneMore) {
  std::atomic<bool> ran{false};
  Lanes lanes(2);
  lanes.Schedule(Do([&] { ran = true; }));
  ASSERT_TRUE(Eventually([&] { return ran.load() && lanes.idle(); }));
  std::this_thread::sleep_for(milliseconds(20));  // now it sleeps without a date
  LingersBeforeALaneIsBusy(lanes);
}

TEST(LanesTest, WhatLingeredBeforeItsLaneWasBusyIsDoneByOneThatSlept) {
  Lanes lanes(3);
  for (int i = 0; i < 20; ++i) LingersBeforeALaneIsBusy(lanes);
}

TEST(LanesTest, IdleThreadsEndAndOthersStartWhenThereIsWork) {
  const auto before = ThreadsOfThisProcess();
  Lanes lanes(2, milliseconds(5));
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> ran{0};
    for (int i = 0; i < 4; ++i) lanes.Schedule(Do([&] { ++ran; }));
    EXPECT_TRUE(Eventually([&] { return ran == 4; }));
    EXPECT_TRUE(Eventually([&] { return ThreadsOfThisProcess() == before; }));
  }
}

TEST(LanesTest, ThreadsThatAreToStayDo) {
  const auto before = ThreadsOfThisProcess();
  Lanes lanes(1, milliseconds(1));
  lanes.Stay(true);
  lanes.Schedule(Do([] {}));
  EXPECT_TRUE(Eventually([&] { return lanes.idle(); }));
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(ThreadsOfThisProcess(), before + 1);
  lanes.Stay(false);
  EXPECT_TRUE(Eventually([&] { return ThreadsOfThisProcess() == before; }));
}

// How a process ends whose main thread does not wait for lanes: it leaves as pthread_exit does, without ending the others.
int EndWithoutMainThread(const std::function<void(Lanes&)>& begin, int signal_to_send,
                         Clock::duration longest_idle = milliseconds(20)) {
  const pid_t child = fork();
  if (child == 0) {
    auto* const lanes = new Lanes(2, longest_idle);
    begin(*lanes);
    syscall(SYS_exit, 0);
  }
  // While its main thread lives, that one would receive the signal.
  const std::string listed = "/proc/" + std::to_string(child) + "/stat";
  EXPECT_TRUE(Eventually([&] {
    std::string text;
    std::getline(std::ifstream(listed), text);
    return text.empty() || text.find(") Z ") != std::string::npos;
  }));
  if (signal_to_send != 0) kill(child, signal_to_send);
  int status = -1;
  const auto late = Clock::now() + seconds(20);
  while (waitpid(child, &status, WNOHANG) == 0 && Clock::now() < late) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  if (status == -1) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  return status;
}

TEST(LanesTest, AProcessEndsWhenOnlyIdleLanesAreLeft) {
  if (kThreadSanitizer) GTEST_SKIP() << "its thread keeps the process";
  EXPECT_EQ(EndWithoutMainThread([](Lanes& lanes) { lanes.Schedule(Do([] {})); }, 0), 0);
}

// However long lanes would wait for something to do: nobody is left who could bring it.
TEST(LanesTest, AProcessEndsLongBeforeItsIdleLanesWould) {
  if (kThreadSanitizer) GTEST_SKIP() << "its thread keeps the process";
  const auto once = [](Lanes& lanes) { lanes.Schedule(Do([] {})); };
  EXPECT_EQ(EndWithoutMainThread(once, 0, std::chrono::hours(1)), 0);
  const int status = EndWithoutMainThread(once, SIGTERM, std::chrono::hours(1));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

class Endless final : public LaneTask, public std::enable_shared_from_this<Endless> {
 public:
  explicit Endless(Lanes& lanes) : lanes_(lanes) {}
  void RunOne() override {
    std::this_thread::sleep_for(milliseconds(1));
    lanes_.Schedule(shared_from_this());
  }

 private:
  Lanes& lanes_;
};

TEST(LanesTest, ASignalEndsAProcessThatHasOnlyLanesLeft) {
  if (kThreadSanitizer) GTEST_SKIP() << "its thread is counted as the program's";
  const int status = EndWithoutMainThread(
      [](Lanes& lanes) { lanes.Schedule(std::make_shared<Endless>(lanes)); }, SIGTERM);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

}  // namespace
}  // namespace tidelane
