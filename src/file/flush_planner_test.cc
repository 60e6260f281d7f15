/// \file
/// When queued bytes are worth storing, by their number, their places and their age.
#include "file/flush_planner.h"

#include <chrono>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

#include "buffer/arena.h"

namespace tidelane {
namespace {

constexpr uint64_t kMib = 1u << 20;
constexpr uint64_t kArena = 64 * kMib;

class FlushPlannerTest : public testing::Test {
 protected:
  // `count` extents of `size` bytes, with as much between them.
  void Queue(size_t count, uint64_t size) {
    Slab* const slab = arena_.TryAcquire();
    ASSERT_NE(slab, nullptr);
    for (size_t i = 0; i < count; ++i) {
      if (i != 0) Arena::Ref(slab);
      pending_.Insert({2 * i * size, size, slab->data, slab, 1, false});
    }
  }
  bool Worthwhile(bool held_back = false) const {
    return planner_.Worthwhile(pending_, held_back, kArena, false);
  }

  Arena arena_{kArena};
  PendingMap pending_;
  FlushPlanner planner_;
};

TEST_F(FlushPlannerTest, ARunIsWorthARequestAndLessIsNot) {
  Queue(3, 300 * 1024);
  EXPECT_FALSE(Worthwhile());
  Queue(4, 300 * 1024);
  EXPECT_TRUE(Worthwhile());
}

TEST_F(FlushPlannerTest, ScatteredBytesWaitForMore) {
  Queue(300, 8 * 1024);  // over a MiB, in small pieces
  EXPECT_TRUE(FlushPlanner::Patient(pending_));
  EXPECT_FALSE(Worthwhile());
}

TEST_F(FlushPlannerTest, WhereManyFilesGatherEachGathersASieveful) {
  Queue(7, 10 * 1024);
  EXPECT_FALSE(FlushPlanner::ShouldStoreInline(pending_, kMib));
  EXPECT_TRUE(FlushPlanner::ShouldStoreInline(pending_, 40 * kMib));
  Queue(4, 10 * 1024);
  EXPECT_FALSE(FlushPlanner::ShouldStoreInline(pending_, kMib)) << "the same places again";
  Queue(60, 10 * 1024);
  EXPECT_TRUE(FlushPlanner::ShouldStoreInline(pending_, kMib));
}

TEST_F(FlushPlannerTest, WhoeverWaitsEndsEveryPatience) {
  Queue(1, 100);
  EXPECT_FALSE(Worthwhile(true));
  planner_.Hurry();
  EXPECT_TRUE(Worthwhile(true));
  planner_.NothingQueued();
  EXPECT_FALSE(Worthwhile(true));
}

TEST_F(FlushPlannerTest, WhatMustBeFirstDoesNotWait) {
  Queue(1, 100);
  EXPECT_TRUE(planner_.Worthwhile(pending_, true, kArena, true));
}

TEST_F(FlushPlannerTest, WhatHasLingeredIsASweepOfWhatWasQueuedThen) {
  Queue(2, 300 * 1024);
  const LingerTerms terms{.linger_us = 1000};
  EXPECT_TRUE(planner_.Linger(terms).has_value());
  EXPECT_FALSE(planner_.Linger(terms).has_value()) << "it lingers already";
  EXPECT_FALSE(planner_.Look(pending_, {.linger_us = 1000}, false).has_value());
  EXPECT_FALSE(Worthwhile()) << "not yet";
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_FALSE(planner_.Look(pending_, terms, false).has_value());
  EXPECT_TRUE(Worthwhile());
  planner_.Taken(1);
  EXPECT_TRUE(Worthwhile());
  planner_.Taken(1);
  EXPECT_FALSE(Worthwhile());
}

TEST_F(FlushPlannerTest, ScatteredBytesLingerLonger) {
  Queue(10, 100);
  const LingerTerms terms{.linger_us = 1000};
  ASSERT_TRUE(planner_.Linger(terms).has_value());
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const auto more = planner_.Look(pending_, terms, false);
  ASSERT_TRUE(more.has_value());
  EXPECT_GT(*more, std::chrono::milliseconds(50));
  EXPECT_FALSE(Worthwhile());
}

TEST_F(FlushPlannerTest, ADelayOfTheProgramsIsKeptAndCannotOverflow) {
  Queue(10, 100);
  EXPECT_GT(planner_.Linger({.linger_us = 1, .delay_us = UINT64_MAX}).value(),
            std::chrono::hours(24));
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(planner_.Look(pending_, {.linger_us = 1, .delay_us = UINT64_MAX}, false));
  EXPECT_FALSE(Worthwhile());
}

TEST_F(FlushPlannerTest, APauseEndsALinger) {
  Queue(1, 100);
  EXPECT_FALSE(planner_.Linger({.paused = true}).has_value());
  ASSERT_TRUE(planner_.Linger({}).has_value());
  EXPECT_FALSE(planner_.Look(pending_, {.paused = true}, true).has_value());
  EXPECT_FALSE(Worthwhile());
  EXPECT_TRUE(planner_.Linger({}).has_value()) << "it begins anew";
}

}  // namespace
}  // namespace tidelane
