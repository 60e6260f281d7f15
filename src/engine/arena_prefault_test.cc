#include "engine/arena_prefault.h"

#include <gtest/gtest.h>

#include "base/trace.h"

namespace tidelane {
namespace {

constexpr uint64_t kMib = 1u << 20;

class PreparationTest : public ::testing::Test {
 protected:
  void Burst(uint64_t end_ns, uint64_t bytes = 8 * kMib, uint64_t file_bytes = 8 * kMib) {
    cost_model_.Begin(end_ns - 1, {.device = 1, .file = file_}, bytes);
    cost_model_.End(1, {.begin_ns = end_ns - 1, .end_ns = end_ns});
    arena_prefault_->WroteThrough(file_bytes);
  }
  uint64_t Grown() {
    uint64_t steps = 0;
    while (arena_.GrowAhead()) ++steps;
    return steps;
  }

  Arena arena_{64 * kMib};
  Lanes lanes_{0};
  const std::string file_ = "run.h5";
  model::CostModel cost_model_;
  std::shared_ptr<ArenaPrefault> arena_prefault_ =
      std::make_shared<ArenaPrefault>(arena_, lanes_, cost_model_);
};

TEST_F(PreparationTest, APauseAfterABurstGetsMemoryReady) {
  Burst(NowNs() - 5'000'000);
  EXPECT_EQ(Grown(), 0u);
  EXPECT_TRUE(lanes_.RunQueued());
  EXPECT_GT(Grown(), 0u);
  EXPECT_FALSE(lanes_.RunQueued()) << "until the next burst";
}

TEST_F(PreparationTest, AStateThatIsOverwrittenTakesNoMoreThanAFewOfItsFile) {
  Burst(NowNs() - 5'000'000, 60 * kMib, kMib);
  EXPECT_TRUE(lanes_.RunQueued());
  const uint64_t few = Grown();
  EXPECT_GT(few, 0u);
  Burst(NowNs() - 5'000'000, 60 * kMib, 60 * kMib);
  EXPECT_TRUE(lanes_.RunQueued());
  EXPECT_GE(Grown(), 2u) << "which were not got ready before";
}

TEST_F(PreparationTest, ALittleBurstIsNotWorthAThread) {
  Burst(NowNs() - 5'000'000, kMib);
  EXPECT_FALSE(lanes_.RunQueued());
}

TEST_F(PreparationTest, AProgramThatGoesOnWritingGetsNone) {
  Burst(NowNs() + 1'000'000'000);
  arena_prefault_->WroteThrough(8 * kMib);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(lanes_.RunQueued());
  EXPECT_EQ(Grown(), 0u);
}

// What a fork copies is the look as well as the word that there is one.
TEST_F(PreparationTest, AForkedChildLooksOnce) {
  Burst(NowNs() - 5'000'000);
  lanes_.LockForFork();
  lanes_.ForgetThreadsAfterFork();
  lanes_.UnlockAfterFork();
  Burst(NowNs() - 5'000'000);
  EXPECT_TRUE(lanes_.RunQueued());
  EXPECT_FALSE(lanes_.RunQueued());
}

}  // namespace
}  // namespace tidelane
