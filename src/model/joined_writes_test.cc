/// \file
/// Where MPI-IO joins ranks' pieces, and where a program's pauses hide that nobody does.
#include "model/joined_writes.h"

#include <gtest/gtest.h>

namespace tidelane::model {
namespace {

constexpr uint64_t kMs = 1'000'000, kMib = 1 << 20;

// A program's steps of four writes, which take MPI-IO 15 ms each, and lanes `longer` times as long.
struct Program {
  JoinedWrites model{};
  double longer = 2;
  uint64_t now_ns = 1000 * kMs;
  int joined = 0, deferred = 0;

  void Write(uint64_t bytes = kMib) {
    model.Begin(now_ns);
    if (model.Hidden(longer)) {
      ++deferred;
      model.End(now_ns, bytes, 0);
    } else {
      ++joined;
      now_ns += 15 * kMs;
      model.End(now_ns, bytes, 15 * kMs);
    }
  }
  // Pauses after each, and asks for its bytes after so long.
  Program& Steps(int count, uint64_t pause_ms, uint64_t asks_ms = UINT64_MAX) {
    for (int i = 0; i < count; ++i) Step(pause_ms, asks_ms);
    return *this;
  }
  void Step(uint64_t pause_ms, uint64_t asks_ms = UINT64_MAX) {
    for (int i = 0; i < 4; ++i) Write();
    if (asks_ms <= pause_ms) model.Asked(now_ns + asks_ms * kMs);
    now_ns += pause_ms * kMs;
  }
};

TEST(JoinedWritesTest, WhatARequestCostsIsWhatJoiningSaves) {
  EXPECT_DOUBLE_EQ(JoinedWrites::TimesLonger(256, 256, 1024), 1.6);
  EXPECT_DOUBLE_EQ(JoinedWrites::TimesLonger(256, 1024, 1024), 1);
  EXPECT_LT(JoinedWrites::TimesLonger(4, 256, 1024), JoinedWrites::kMuchLonger);
  EXPECT_GT(JoinedWrites::TimesLonger(256, 1, 8), 7);
}

TEST(JoinedWritesTest, AProgramThatGoesOnHidesNothing) {
  EXPECT_EQ(Program().Steps(10, 0).deferred, 0);
}

TEST(JoinedWritesTest, APauseHidesTheStepsAfterTheFirst) {
  EXPECT_EQ(Program().Steps(10, 120).joined, 4);
}

// Not all of it, but more than MPI-IO would take.
TEST(JoinedWritesTest, APauseAsLongAsTheWritesIsEnough) {
  EXPECT_EQ(Program().Steps(10, 70).joined, 4);
}

TEST(JoinedWritesTest, AMuchShorterOneIsNot) { EXPECT_EQ(Program().Steps(10, 40).deferred, 0); }

TEST(JoinedWritesTest, WhoAsksAtOnceHidesNothingHoweverLongItPauses) {
  EXPECT_EQ(Program().Steps(10, 1000, 1).deferred, 0);
}

TEST(JoinedWritesTest, AProgramThatPausesNoMoreIsJoinedAgain) {
  Program program;
  for (int i = 0; i < 10; ++i) program.Step(120);
  program.joined = program.deferred = 0;
  for (int i = 0; i < 30; ++i) program.Step(20);
  EXPECT_LE(program.deferred, 30);
}

// A machine that does other things stops programs for a few milliseconds now and then.
TEST(JoinedWritesTest, AShortStopIsNoPause) {
  Program program;
  for (int i = 0; i < 100; ++i) {
    program.Write();
    program.now_ns += i % 3 == 0 ? 5 * kMs : 0;
  }
  EXPECT_EQ(program.deferred, 0);
}

TEST(JoinedWritesTest, AStepMayBeManyWrites) {
  Program program;
  for (int step = 0; step < 5; ++step) {
    for (int i = 0; i < 100; ++i) {
      program.Write();
      program.now_ns += i % 10 == 0 ? 2 * kMs : 0;
    }
    program.now_ns += 4000 * kMs;
  }
  EXPECT_EQ(program.joined, 100);
}

TEST(JoinedWritesTest, WhoWritesNothingHidesNothing) {
  Program program;
  for (int i = 0; i < 10; ++i) {
    program.Write(0);
    program.now_ns += 1000 * kMs;
  }
  EXPECT_EQ(program.deferred, 0);
}

}  // namespace
}  // namespace tidelane::model
