/// \file
/// What the model hears of a file's reads: which ones were phases, whose requests they took, and that small ones are none.
#include <string>

#include <gtest/gtest.h>

#include "base/decisions.h"
#include "base/trace.h"
#include "file/file_fixture.h"

namespace tidelane {
namespace {

constexpr uint64_t kMib = 1u << 20;

class FilePhasesTest : public ::testing::Test {
 protected:
  FilePhasesTest() : bench_(0, 32 * kMib) {
    ResetDecisionsAfterFork();
    // Each read is a phase: nothing here waits for a clock.
    bench_.chooser_times_.shortest_pause_ns = 1;
    bench_.config_.read_ahead = Toggle::kOn;
    bench_.prefetch_budget_ = std::make_shared<PrefetchBudget>(bench_.arena_, 16 * kMib);
    bench_.record_ = false;
    bench_.Open(std::string(16 * kMib, 'x'));
    EXPECT_TRUE(bench_.file_->Lock(true).ok());
  }
  model::LearnedReads Learned() {
    bench_.cost_model_->End(NowNs());
    const auto learnings = bench_.cost_model_->reads().TakeLearnings(1);
    return learnings.empty() ? model::LearnedReads() : learnings.front().second;
  }

  FileBench bench_;
};

TEST_F(FilePhasesTest, AReadFromStorageIsThePrograms) {
  for (const uint64_t at : {9, 1, 5, 13}) bench_.Read(at * kMib, kMib);
  const model::LearnedReads learned = Learned();
  EXPECT_EQ(learned.epochs, 4u);
  EXPECT_GT(learned.sync.weight(), 3);
  EXPECT_EQ(learned.lanes.weight(), 0);
  EXPECT_EQ(ReadDecisions().reads.async_epochs, 0u);
}

TEST_F(FilePhasesTest, WhatLanesFetchedIsTheirsAndACopy) {
  for (uint64_t at = 0; at < 12; ++at) {
    bench_.Read(at * kMib, kMib);
    bench_.RunLanes();
  }
  const model::LearnedReads learned = Learned();
  EXPECT_EQ(learned.epochs, 12u);
  EXPECT_GT(learned.sync.weight(), 0) << "the first ones";
  EXPECT_GT(learned.lanes.weight(), 0);
  EXPECT_TRUE(learned.copy.known());
  EXPECT_GT(ReadDecisions().reads.async_epochs, 6u);
}

TEST_F(FilePhasesTest, ADeferredReadIsTheLanesEvenIfTheProgramWaits) {
  std::string to(4 * kMib, '?');
  for (int i = 0; i < 4; ++i) {
    CallScope scope(CallScope::kNone);
    auto* const begin = reinterpret_cast<std::byte*>(to.data());
    scope.AcceptLater(begin, to.size());
    ASSERT_TRUE(bench_.file_->Read(0, to.size(), begin, true, InProgress()).ok());
    const auto completion = scope.TakeCompletion();
    ASSERT_NE(completion, nullptr);
    bench_.RunLanes();
    ASSERT_EQ(completion->Wait(UINT64_MAX), Completion::State::kDone);
  }
  EXPECT_EQ(to.find('?'), std::string::npos);
  const model::LearnedReads learned = Learned();
  EXPECT_EQ(learned.epochs, 4u);
  EXPECT_GT(learned.lanes.weight(), 0);
  EXPECT_EQ(learned.sync.weight(), 0);
  EXPECT_EQ(ReadDecisions().reads.async_epochs, 4u);
}

TEST_F(FilePhasesTest, MetadataAndSmallReadsAreNoPhases) {
  for (uint64_t at = 0; at < 16; ++at) {
    bench_.Read(at * 777'777, 12'000);
    bench_.Read(at * kMib / 2, 64 << 10, false);
  }
  EXPECT_EQ(Learned().epochs, 0u);
}

}  // namespace
}  // namespace tidelane
