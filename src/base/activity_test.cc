/// \file
/// Waits and work: that one object tells the counters, the timeline and the overlap. All three are
/// one per process: these tests count from what they find.
#include "base/activity.h"

#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

// Long enough for any clock to have moved.
void Pass() {
  for (const uint64_t begin = NowNs(); NowNs() - begin < 100'000;) {
  }
}

TEST(ActivityTest, AWaitIsTimedAndCounted) {
  const uint64_t ns = Read(Counter::kWaitFlushNs);
  const uint64_t times = Read(Counter::kWaitsFlush);
  {
    const Waiting waiting(Wait::kFlush);
    Pass();
  }
  EXPECT_GE(Read(Counter::kWaitFlushNs) - ns, 100'000u);
  EXPECT_EQ(Read(Counter::kWaitsFlush) - times, 1u);
}

TEST(ActivityTest, StopEndsItOnce) {
  const uint64_t times = Read(Counter::kWaitsRead);
  Waiting waiting(Wait::kRead);
  Pass();
  EXPECT_GE(waiting.Stop(), 100'000u);
  EXPECT_EQ(waiting.Stop(), 0u);
  EXPECT_EQ(Read(Counter::kWaitsRead) - times, 1u);
}

TEST(ActivityTest, TheRestOfAWaitIsTimedButNotCountedAgain) {
  const uint64_t ns = Read(Counter::kWaitCloseNs);
  const uint64_t times = Read(Counter::kWaitsClose);
  {
    const Waiting waiting(Wait::kClose, 0, Waiting::kRest);
    Pass();
  }
  EXPECT_GE(Read(Counter::kWaitCloseNs) - ns, 100'000u);
  EXPECT_EQ(Read(Counter::kWaitsClose), times);
}

// A read under a close is the close's: the table's waits add up to time.
TEST(ActivityTest, AWaitInsideAWaitIsTheOuterOnes) {
  const uint64_t outer = Read(Counter::kWaitsClose);
  const uint64_t inner = Read(Counter::kWaitReadNs);
  {
    const Waiting close(Wait::kClose);
    Waiting read(Wait::kRead);
    Pass();
    EXPECT_GE(read.Stop(), 100'000u) << "who asks how long it took is told all the same";
  }
  EXPECT_EQ(Read(Counter::kWaitsClose) - outer, 1u);
  EXPECT_EQ(Read(Counter::kWaitReadNs), inner);
}

TEST(ActivityTest, WorkIsHiddenUntilSomebodyWaits) {
  const Overlap::Totals before = ReadOverlap();
  const uint64_t busy = Read(Counter::kLaneBusyNs);
  Working working;
  Pass();
  const Overlap::Totals alone = ReadOverlap();
  EXPECT_GE(alone.hidden_ns - before.hidden_ns, 100'000u);
  const Waiting waiting(Wait::kRequest);
  const Overlap::Totals begun = ReadOverlap();
  Pass();
  const Overlap::Totals end = ReadOverlap();
  EXPECT_GE(end.storage_ns - begun.storage_ns, 100'000u);
  EXPECT_EQ(end.hidden_ns, begun.hidden_ns);
  const uint64_t ns = working.Stop();
  EXPECT_EQ(Read(Counter::kLaneBusyNs) - busy, ns);
  EXPECT_EQ(working.Stop(), 0u);
}

TEST(ActivityTest, WhereNobodyAskedNothingIsRecorded) {
  const uint64_t times = Read(Counter::kWaitsRead) + Read(Counter::kWaitsFlush);
  RecordWaits(false);
  {
    Waiting flush(Wait::kFlush);
    Waiting read(Wait::kRead, 0, Waiting::kTimed);
    Pass();
    EXPECT_EQ(flush.Stop(), 0u);
    EXPECT_GE(read.Stop(), 100'000u) << "but who asks is told";
  }
  RecordWaits(true);
  EXPECT_EQ(Read(Counter::kWaitsRead) + Read(Counter::kWaitsFlush), times);
}

TEST(ActivityTest, WaitsAfterTheFirstAreNotFreeTime) {
  ResetActivityAfterFork();
  EXPECT_EQ(FreeTimeAfter(Wait::kClose), 0u);
  {
    const Waiting first(Wait::kClose);
  }
  Pass();
  const uint64_t begin = NowNs();
  const uint64_t free = FreeTimeAfter(Wait::kClose);
  EXPECT_GE(free, 100'000u);
  {
    const Waiting later(Wait::kFlush);
    for (int i = 0; i < 100; ++i) Pass();
  }
  // Whatever else took time: the second wait is not in it.
  const uint64_t more = FreeTimeAfter(Wait::kClose) - free;  // read before the clock is
  EXPECT_LE(more, NowNs() - begin - 10'000'000);
}

TEST(ActivityTest, AThreadsWaitsAreItsOwn) {
  const uint64_t times = Read(Counter::kWaitsOpen);
  const Waiting mine(Wait::kOther);
  std::thread([] { const Waiting other(Wait::kOpen); }).join();
  EXPECT_EQ(Read(Counter::kWaitsOpen) - times, 1u);
}

TEST(ActivityTest, EveryWaitHasItsCountersAndWords) {
  std::set<std::string> keys;
  std::set<Counter> counters;
  for (unsigned i = 0; i < kWaitCount; ++i) {
    const WaitKind& kind = KindOf(static_cast<Wait>(i));
    keys.insert(kind.key);
    counters.insert({kind.ns, kind.times});
    EXPECT_EQ(Name(kind.ns), "wait_" + std::string(kind.key) + "_ns");
    EXPECT_EQ(Name(kind.times), "waits_" + std::string(kind.key));
  }
  EXPECT_EQ(keys.size(), kWaitCount);
  EXPECT_EQ(counters.size(), 2 * kWaitCount);
}

}  // namespace
}  // namespace tidelane
