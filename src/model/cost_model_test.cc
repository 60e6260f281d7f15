/// \file
/// The automatic mode without clocks: what it does after which phases, and what that costs a simulated program against
/// both fixed modes.
#include "model/cost_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/model_data.h"

namespace tidelane::model {
namespace {

constexpr uint64_t kMib = 1u << 20;
constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kDevice = 7;
constexpr uint64_t kCopyNs = kMs / 8;  // a MiB

int measured = 0;  // how often a copy was

const CostModel::Times kTimes{.calibrate = [](CopyCost& cost) {
  ++measured;
  cost.Add(kMib, kMib, kCopyNs / 1e9);
}};

class CostModelTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kMost = 64;  // MiB that may be queued: half the room

  void Storage(uint64_t ns_per_mib) {
    for (int i = 0; i < 50; ++i) cost_model_.Stored(kDevice, kMib, 0, ns_per_mib);
    ns_per_mib_ = ns_per_mib;
  }
  // Written through, whatever was allowed.
  uint64_t WriteMib() {
    const std::string file = "run.h5";
    const auto allowed = cost_model_.Begin(
        now_, {.device = kDevice, .file = file, .room = 2 * kMost * kMib, .held = held_}, kMib);
    const uint64_t begin = now_;
    now_ += ns_per_mib_;
    cost_model_.End(kDevice, {.begin_ns = begin, .end_ns = now_});
    return allowed.bytes == UINT64_MAX ? UINT64_MAX : allowed.bytes / kMib;
  }
  // A step of 16 MiB; returns what its last MiB was allowed.
  uint64_t Phase() {
    for (int i = 0; i < 15; ++i) WriteMib();
    return WriteMib();
  }
  void Pause(uint64_t ms) { now_ += ms * kMs; }

  CostModel cost_model_{kTimes};
  uint64_t now_ = kMs;
  uint64_t held_ = 0;  // in memory when a write begins
  uint64_t ns_per_mib_ = kMs / 4;
};

TEST_F(CostModelTest, AProgramThatOnlyWritesDefersNothingOnQuickStorage) {
  Storage(kMs / 4);
  EXPECT_EQ(WriteMib(), 0u);
  EXPECT_EQ(Phase(), 0u);
}

// Why small writes are no part of phases, and not told: a program that logs while it computes would never pause. What they
// are to the model is computation, behind which as much can be hidden.
TEST_F(CostModelTest, ALogBetweenPhasesWouldMakeThemOneWithoutAnyComputation) {
  Storage(kMs / 4);
  const auto compute = [this](bool told) {
    const std::string file = "run.h5";
    for (int line = 0; line < 200; ++line, now_ += kMs / 10) {
      if (!told) continue;
      cost_model_.Begin(now_, {.device = kDevice, .file = file, .room = 2 * kMost * kMib}, 100);
      cost_model_.End(kDevice, {.begin_ns = now_, .end_ns = now_ + 1000});
    }
  };
  for (int phase = 0; phase < 5; ++phase) Phase(), compute(true);
  EXPECT_EQ(Phase(), 0u) << "all of it is written by the program, and nothing hidden";
  for (int phase = 0; phase < 5; ++phase) compute(false), Phase();
  EXPECT_EQ(Phase(), kMost);
}

// A busy machine stops every program now and then.
TEST_F(CostModelTest, AStallThatWouldHideLittleOfAPhaseIsNoReasonToCopyIt) {
  Storage(kMs / 4);
  const auto long_phase = [this] {
    for (int phase = 0; phase < 7; ++phase) Phase();
    return Phase();
  };
  for (int stall = 0; stall < 6; ++stall) EXPECT_EQ(long_phase(), 0u), Pause(3);
  for (int pause = 0; pause < 6; ++pause) long_phase(), Pause(20);
  EXPECT_NE(long_phase(), 0u) << "pauses that hide half of it are one";
}

// More would be copied twice, into memory that has yet to be found.
TEST_F(CostModelTest, WhereAPauseHasNotSufficedNothingIsAdded) {
  Storage(kMs / 4);
  for (int step = 0; step < 3; ++step) Phase(), Pause(100);
  held_ = 6 * kMib;
  EXPECT_EQ(Phase(), 0u);
  Pause(100);
  held_ = 3 * kMib;  // slabs that are not full
  EXPECT_EQ(Phase(), kMost);
}

TEST_F(CostModelTest, BeforePausesAreKnownALongPhaseIsTheProgramsFromSomePointOn) {
  Storage(kMs / 4);
  Phase(), Pause(100);
  for (int phase = 0; phase < 4; ++phase) EXPECT_EQ(Phase(), kMost);
  EXPECT_EQ(Phase(), 0u);
}

// HDF5's sieve makes a large write of many small ones. A program that does nothing else has no pauses; one that logs to it
// while it computes has.
TEST_F(CostModelTest, RowsInHdf5sBufferAreNoPauseWhereTheyFollowEachOther) {
  Storage(kMs / 4);
  const auto rows = [this](uint64_t ns_each) {
    for (uint64_t until = now_ + 20 * kMs; now_ < until; now_ += ns_each)
      cost_model_.pauses().Buffered(now_);
  };
  for (int step = 0; step < 3; ++step) EXPECT_EQ(Phase(), 0u), rows(2'000);
  EXPECT_FALSE(cost_model_.pauses().Pausing(now_));
  for (int step = 0; step < 3; ++step) Phase(), rows(100'000);
  EXPECT_TRUE(cost_model_.pauses().Pausing(now_));
  EXPECT_EQ(Phase(), kMost);
}

// That takes a millisecond or two, and a busy machine stops a program as a short pause does.
TEST_F(CostModelTest, AFirstShortPauseDoesNotCostTheMeasuringOfCopies) {
  measured = 0;
  Storage(kMs / 4);
  Phase();
  Pause(2);
  Phase();
  EXPECT_EQ(measured, 0);
  Pause(2);
  Phase();
  EXPECT_EQ(measured, 1);
}

TEST_F(CostModelTest, AFirstLongPauseIsOne) {
  measured = 0;
  Storage(kMs / 4);
  Phase();
  Pause(20);
  Phase();
  EXPECT_EQ(measured, 1);
}

TEST_F(CostModelTest, AfterAPauseAsMuchAsCouldHaveBeenStoredInIt) {
  Storage(kMs / 4);
  Phase();
  Pause(2);
  EXPECT_NEAR(static_cast<double>(Phase()), 8, 1);
  Pause(1000);
  EXPECT_EQ(Phase(), kMost)
      << "the phase fits into the pause: one that is longer, too, for the next ones' sake";
}

TEST_F(CostModelTest, PhasesOfAFewMibAreNotDeferredOnQuickStorage) {
  Storage(kMs / 4);
  for (int phase = 0; phase < 20; ++phase) {
    EXPECT_EQ(WriteMib(), 0u);
    EXPECT_EQ(WriteMib(), 0u);
    Pause(1000);
  }
  for (int phase = 0; phase < 3; ++phase, Pause(1000)) Phase();
  EXPECT_EQ(Phase(), kMost) << "they have become long";
}

TEST_F(CostModelTest, AProgramThatWaitsForEachPhaseDefersNothing) {
  Storage(kMs / 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Phase(), 0u) << "it will do so again";
    cost_model_.Asked(now_ + kMs / 100);  // the file is closed; 16 MiB would have taken 4 ms
    Pause(50);
  }
}

TEST_F(CostModelTest, AskingLateIsNoWaiting) {
  Storage(kMs / 4);
  Phase();
  Pause(500);
  cost_model_.Asked(now_);  // an event set, waited for when the computation is over
  EXPECT_EQ(Phase(), kMost);
}

TEST_F(CostModelTest, InAPauseTheNextPhaseIsExpectedToBeAsTheLast) {
  Storage(kMs / 4);
  Phase();
  EXPECT_EQ(cost_model_.Expected(now_), 0u);
  Pause(10);
  EXPECT_EQ(cost_model_.Expected(now_), 16 * kMib);
  Phase();
  cost_model_.Asked(now_);
  Pause(10);
  EXPECT_EQ(cost_model_.Expected(now_), 0u) << "it waits for its phases: nothing will be deferred";
}

TEST_F(CostModelTest, SlowerStorageNeedsALongerPause) {
  Storage(kMs);
  Phase();
  Pause(10);
  EXPECT_NEAR(static_cast<double>(Phase()), 10, 2);
}

TEST_F(CostModelTest, WaitingIsNoComputation) {
  Storage(kMs / 4);
  Phase();
  cost_model_.Asked(now_ + 1);
  cost_model_.Waited(100 * kMs);
  Pause(100);
  EXPECT_EQ(Phase(), 0u);
}

TEST_F(CostModelTest, UntilAFirstRequestTheKindOfFileSystemTells) {
  Storage(kMs / 4);
  EXPECT_TRUE(cost_model_.Opened(kDevice + 1, true));
  EXPECT_FALSE(cost_model_.Opened(kDevice + 2, false));
  for (int i = 0; i < 3; ++i) cost_model_.Stored(kDevice + 1, kMib, 0, 20 * kMs);
  EXPECT_FALSE(cost_model_.Opened(kDevice + 1, true)) << "its requests know better";
  EXPECT_TRUE(cost_model_.QuickOn(kDevice)) << "others are as they were";
}

// A request may wait for a core or for memory, whatever storage there is.
TEST_F(CostModelTest, ASlowRequestNowAndThenMakesNoSlowStorage) {
  const auto stored = [this](uint64_t ms, uint64_t bytes = kMib) {
    return cost_model_.Stored(kDevice, bytes, 0, ms * kMs);
  };
  Storage(kMs / 4);
  for (int i = 0; i < 10; ++i) {
    for (const uint64_t ms : {20, 0, 0, 20, 0, 0, 0, 0}) EXPECT_TRUE(stored(ms));
  }
  EXPECT_TRUE(cost_model_.QuickOn(kDevice));
  for (int i = 0; i < 8; ++i) stored(0);
  EXPECT_TRUE(stored(20));
  EXPECT_TRUE(stored(20, 100));
  EXPECT_FALSE(stored(20));
  EXPECT_FALSE(cost_model_.QuickOn(kDevice));
  for (int i = 0; i < 10; ++i) {  // every second one is slow
    EXPECT_FALSE(stored(0));
    EXPECT_FALSE(stored(20));
  }
  for (int i = 0; i < 6; ++i) stored(0);
  EXPECT_TRUE(stored(0));
}

TEST_F(CostModelTest, OneQuickRequestSaysThatStorageIsQuickWhereNothingWasPromised) {
  cost_model_.Opened(kDevice, false);
  EXPECT_FALSE(cost_model_.Stored(kDevice, kMib, 0, 20 * kMs));
  cost_model_.Opened(kDevice + 1, false);
  EXPECT_TRUE(cost_model_.Stored(kDevice + 1, kMib, 0, kMs / 4));
}

TEST_F(CostModelTest, SmallRequestsAloneShowThatStorageIsSlow) {
  cost_model_.Opened(kDevice, true);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(cost_model_.Stored(kDevice, 100, 0, 2 * kMs));
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(cost_model_.Stored(kDevice, 100, 0, 2 * kMs));
}

TEST_F(CostModelTest, APieceIsWorthARequestWhereItTakesAsLong) {
  cost_model_.Opened(kDevice, true);
  EXPECT_EQ(cost_model_.WorthARequest(kDevice), 4096u) << "the kind of file system tells";
  cost_model_.Opened(kDevice + 1, false);
  EXPECT_EQ(cost_model_.WorthARequest(kDevice + 1), 256u << 10);
  Storage(4 * kMs);                                                        // a MiB,
  for (int i = 0; i < 50; ++i) cost_model_.Stored(kDevice, 4096, 0, kMs);  // and a request
  EXPECT_NEAR(static_cast<double>(cost_model_.WorthARequest(kDevice)), 256 << 10, 1 << 10);
  for (int i = 0; i < 50; ++i) cost_model_.Stored(kDevice, 4096, 0, 1000);
  EXPECT_EQ(cost_model_.WorthARequest(kDevice), 4096u) << "never less than a page";
  for (int i = 0; i < 2000; ++i) cost_model_.Stored(kDevice, 4096, 0, 100 * kMs);
  EXPECT_EQ(cost_model_.WorthARequest(kDevice), 1u << 20) << "storage may become slower";
}

TEST_F(CostModelTest, OnSlowStorageEverythingMayWait) {
  Storage(20 * kMs);
  cost_model_.Opened(kDevice, false);
  EXPECT_EQ(Phase(), UINT64_MAX);
  Pause(1);
  EXPECT_EQ(Phase(), UINT64_MAX);
}

TEST_F(CostModelTest, WhatAnEarlierRunLearnedHoldsFromTheFirstPhaseOn) {
  Storage(kMs / 4);
  cost_model_.Opened(kDevice, true);
  for (int i = 0; i < 6; ++i) Phase(), Pause(10);
  cost_model_.End(now_);
  const auto learned = cost_model_.TakeLearnings();
  ASSERT_TRUE(learned.empty()) << "nobody said what the device is called";
  CostModel first(kTimes), second(kTimes);
  first.Opened(kDevice, true);
  first.Remember(kDevice, "tmpfs tmpfs", Learned(), 0);
  EXPECT_TRUE(first.Remembers(kDevice));
  const std::string file = "run.h5";
  for (uint64_t now = kMs, i = 0; i < 6; ++i, now += 100 * kMs) {
    first.Begin(now, {.device = kDevice, .file = file}, 16 * kMib);
    first.End(kDevice, {.begin_ns = now, .end_ns = now + 8 * kMs});
  }
  const auto taken = first.TakeLearnings(5);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_TRUE(first.TakeLearnings().empty()) << "it was taken";
  second.Opened(kDevice, true);
  second.Remember(kDevice, "tmpfs tmpfs", taken[0].second, 1);
  EXPECT_GT(second.Begin(kMs, {.device = kDevice, .file = file}, kMib).bytes, 16 * kMib);
}

TEST_F(CostModelTest, EveryEpochIsRecordedWithWhatWasExpectedOfIt) {
  ResetDecisionsAfterFork();
  Storage(kMs / 4);
  cost_model_.Remember(kDevice, "tmpfs tmpfs", Learned(), 0);
  for (int i = 0; i < 5; ++i) Phase(), cost_model_.Asked(now_), Pause(10);
  cost_model_.End(now_);
  const Decisions all = ReadDecisions();
  EXPECT_EQ(all.epochs, 5u);
  ASSERT_EQ(all.last.size(), 5u);
  const Decision& third = all.last[2];
  EXPECT_EQ(third.epoch, 3u);
  EXPECT_EQ(third.file, "run.h5");
  EXPECT_EQ(third.storage, "tmpfs tmpfs");
  EXPECT_EQ(third.bytes, 16 * kMib);
  EXPECT_FALSE(third.async);
  EXPECT_NEAR(third.seconds, 0.014, 1e-6);
  EXPECT_NEAR(third.compute_seconds, 0.010, 1e-6);
  EXPECT_FALSE(all.last[0].forecast.has_value());
  ASSERT_TRUE(third.forecast.has_value());
  EXPECT_NEAR(third.forecast->chosen, 0.014, 1e-4);
  EXPECT_NEAR(third.forecast->sync, 0.014, 1e-4);
  EXPECT_NEAR(third.forecast->async, 0.016, 1e-4) << "a copy more, and nothing hidden";
  EXPECT_TRUE(all.last[4].last);
  EXPECT_NEAR(all.end_seconds, 0.010, 1e-6);
  ASSERT_EQ(all.storages.size(), 1u);
  EXPECT_NEAR(all.storages[0].sync.bytes_per_second, 4000. * kMib, 40. * kMib);
}

// A program on a machine -----------------------------------------------------------------------------------------------

struct Step {
  uint64_t mib = 16;
  double compute_ms = 0;
  bool flush = false;  // asks for its bytes at once
};
using Pattern = std::function<Step(int epoch)>;

struct Machine {
  double through_ms = 0.35;  // a MiB written by the program
  double lane_ms = 0.35;     // by a lane
  double copy_ms = 0.12;
  bool contends = false;  // a lane stands still while the program copies
  bool shared = false;    // who writes waits for who writes already: a device, not memory
  uint64_t room_mib = 1024;
  double slower_later = 1;  // from the middle of the run on
};

// Runs `epochs` steps; returns how long it took, in ms.
double Simulate(CostModel& cost_model, const Machine& machine, const Pattern& pattern, Mode mode,
                int epochs = 60) {
  const std::string file = "run.h5";
  double now = 1, stored = 0;  // until when lanes are busy
  const auto ns = [](double ms) { return static_cast<uint64_t>(ms * 1e6); };
  for (int i = 0; i < epochs; ++i) {
    const double slower = i >= epochs / 2 ? machine.slower_later : 1;
    const double lane_ms = machine.lane_ms * slower, through_ms = machine.through_ms * slower;
    const Step step = pattern(i);
    for (uint64_t mib = 0; mib < step.mib; ++mib) {
      const auto allowed = cost_model.Begin(
          ns(now), {.device = kDevice, .file = file, .mode = mode, .room = machine.room_mib * kMib},
          kMib);
      const double begin = now;
      double queued = std::max(stored - now, 0.0) / lane_ms;  // in MiB
      bool through = mode == Mode::kSync;
      if (mode == Mode::kAuto && (allowed.anywhere || cost_model.QuickOn(kDevice)))
        through = queued * kMib >= static_cast<double>(allowed.bytes);
      if (through) {
        const double from = machine.shared ? std::max(stored, now) : now;
        now = from + through_ms;
        if (machine.shared) stored = now;
        cost_model.Stored(kDevice, kMib, ns(from), ns(now));
        cost_model.End(kDevice, {.begin_ns = ns(begin), .end_ns = ns(now)});
        continue;
      }
      if (queued >= static_cast<double>(machine.room_mib))
        now = stored - (static_cast<double>(machine.room_mib) - 1) * lane_ms;
      if (machine.contends && stored > now) stored += machine.copy_ms;
      now += machine.copy_ms;
      const double from = std::max(stored, now);
      stored = from + lane_ms;
      cost_model.Stored(kDevice, kMib, ns(from), ns(stored));
      cost_model.End(kDevice, {.begin_ns = ns(begin),
                               .end_ns = ns(now),
                               .copied_bytes = kMib,
                               .copy_ns = ns(machine.copy_ms)});
    }
    if (step.flush) {
      cost_model.Asked(ns(now));
      if (stored > now) cost_model.Waited(ns(stored - now));
      now = std::max(now, stored);
    }
    now += step.compute_ms;
  }
  const double end = std::max(now, stored);
  if (stored > now) cost_model.Waited(ns(stored - now));
  cost_model.End(ns(end));
  return end;
}

struct Case {
  const char* name;
  Pattern pattern;
  double unknown = 1.06;  // what a first run may take of the better mode's time
};

std::vector<Case> Patterns() {
  return {
      {"no compute", [](int) { return Step{16, 0}; }},
      {"compute shorter than the copy", [](int) { return Step{16, 1.2}; }},
      {"compute as long as the copy", [](int) { return Step{16, 2}; }},
      {"compute shorter than the write", [](int) { return Step{16, 4}; }},
      {"compute as long as the write", [](int) { return Step{16, 6}; }},
      {"compute longer than the write", [](int) { return Step{16, 30}; }},
      {"compute much longer", [](int) { return Step{16, 500}; }},
      {"alternating long and short", [](int i) { return Step{16, i % 2 == 0 ? 20. : 1.5}; }},
      {"alternating large and small", [](int i) { return Step{i % 2 == 0 ? 32u : 2u, 6}; }},
      {"every fifth is large", [](int i) { return Step{i % 5 == 0 ? 64u : 4u, 8}; }},
      {"flush at once, then compute", [](int) { return Step{16, 20, true}; }},
      {"every second one flushes", [](int i) { return Step{16, 20, i % 2 == 0}; }},
      {"compute comes in the middle", [](int i) { return Step{16, i < 30 ? 0. : 20.}; },
       1.17},  // that it will ever pause, nobody could know

      {"compute ends in the middle", [](int i) { return Step{16, i < 30 ? 20. : 0.}; }},
      {"growing", [](int i) { return Step{static_cast<uint64_t>(2 + i), 8}; }},
      {"at random",
       [](int i) {
         Numbers numbers(static_cast<uint64_t>(i) * 77 + 5);
         numbers.Next();
         const auto mib = static_cast<uint64_t>(numbers.Between(1, 48));
         return Step{mib, numbers.Between(0, 30), numbers.Next() < 0.2};
       }},
  };
}

struct Storages {
  const char* name;
  Machine machine;
};

std::vector<Storages> Machines() {
  return {
      {"memory", {}},
      {"memory, one at a time", {.contends = true}},
      {"memory, slow copies", {.copy_ms = 0.3, .contends = true}},
      {"memory, copies slower than writes", {.copy_ms = 0.45, .contends = true}},
      {"a device", {.through_ms = 2, .lane_ms = 2, .shared = true}},
      {"slow storage", {.through_ms = 7, .lane_ms = 5, .shared = true}},
      {"little memory", {.through_ms = 5, .lane_ms = 5, .shared = true, .room_mib = 4}},
      {"memory that becomes slow", {.contends = true, .slower_later = 15}},
  };
}

// Twice: as a program that nobody knows, and as one whose history is known. The second run is the rule.
TEST(CostModelRegretTest, NeverMuchSlowerThanTheBetterFixedMode) {
  for (const auto& [where, machine] : Machines()) {
    for (const auto& [name, pattern, unknown] : Patterns()) {
      const auto run = [&](Mode mode, const Learned& learned, Learned* out) {
        CostModel cost_model(kTimes);
        cost_model.Opened(kDevice, machine.through_ms < 1);
        cost_model.Remember(kDevice, where, learned, 1);
        const double ms = Simulate(cost_model, machine, pattern, mode);
        if (out != nullptr) *out = cost_model.TakeLearnings().at(0).second;
        return ms;
      };
      const double sync = run(Mode::kSync, {}, nullptr), async = run(Mode::kAsync, {}, nullptr);
      Learned learned;
      const double first = run(Mode::kAuto, {}, &learned);
      const double second = run(Mode::kAuto, learned, nullptr);
      const double best = std::min(sync, async);
      if (std::getenv("TIDELANE_TEST_SHOW") != nullptr)
        std::printf("%-34s %-34s sync %8.1f async %8.1f first %+5.1f %% then %+5.1f %%\n", where,
                    name, sync, async, 100 * (first / best - 1), 100 * (second / best - 1));
      EXPECT_LE(second, 1.03 * best)
          << where << ", " << name << ": sync " << sync << ", async " << async;
      EXPECT_LE(first, unknown * best)
          << where << ", " << name << ", unknown: sync " << sync << ", async " << async;
    }
  }
}

}  // namespace
}  // namespace tidelane::model
