/// \file
/// Epochs: who is done when, who waits for whom, whose failure it is.
#include "extent/epochs.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

using State = Epochs::State;

Status NoSpace() { return Status::Failed(ENOSPC, "write").At("x.h5", 0, 1); }

State StateOf(const Epochs& epochs, uint64_t epoch) {
  Status error;
  const State state = epochs.StateOf(epoch, error);
  EXPECT_EQ(state == State::kFailed, !error.ok());
  return state;
}

State UpTo(const Epochs& epochs, uint64_t epoch) {
  Status error;
  const State state = epochs.StateUpTo(epoch, error);
  EXPECT_EQ(state == State::kFailed, !error.ok());
  return state;
}

TEST(EpochsTest, AnEpochIsDoneWhenItsLastExtentIsStored) {
  Epochs epochs;
  EXPECT_EQ(StateOf(epochs, 1), State::kDone);
  epochs.Add(1);
  epochs.Add(1);
  epochs.Remove(1);
  EXPECT_EQ(StateOf(epochs, 1), State::kPending);
  epochs.Remove(1);
  EXPECT_EQ(StateOf(epochs, 1), State::kDone);
  EXPECT_TRUE(epochs.empty());
  epochs.Remove(1);
  EXPECT_TRUE(epochs.empty()) << "removing what is not there must not create it";
}

TEST(EpochsTest, ABarrierWaitsForEverythingOlderAndNothingNewer) {
  Epochs epochs;
  epochs.Add(2);
  epochs.Add(5);
  EXPECT_EQ(UpTo(epochs, 1), State::kDone);
  EXPECT_EQ(UpTo(epochs, 2), State::kPending);
  EXPECT_EQ(UpTo(epochs, 4), State::kPending);
  epochs.Remove(2);
  EXPECT_EQ(UpTo(epochs, 4), State::kDone);
  EXPECT_EQ(UpTo(epochs, 5), State::kPending);
}

TEST(EpochsTest, AnOverwrittenEpochWaitsForItsOverwriter) {
  Epochs epochs;
  epochs.Add(1);
  epochs.Add(2);
  epochs.Supersede(1, 2);
  epochs.Supersede(1, 2);
  epochs.Remove(1);
  EXPECT_EQ(StateOf(epochs, 1), State::kPending);
  epochs.Add(3);
  epochs.Supersede(2, 3);
  epochs.Remove(2);
  EXPECT_EQ(StateOf(epochs, 1), State::kPending);
  EXPECT_EQ(StateOf(epochs, 2), State::kPending);
  epochs.Remove(3);
  EXPECT_TRUE(epochs.empty()) << "the whole chain ends with its last link";
}

TEST(EpochsTest, WaitsForAllOverwriters) {
  Epochs epochs;
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) epochs.Add(epoch);
  epochs.Supersede(1, 2);
  epochs.Supersede(1, 3);
  epochs.Remove(1);
  epochs.Remove(3);
  EXPECT_EQ(StateOf(epochs, 1), State::kPending);
  epochs.Remove(2);
  EXPECT_TRUE(epochs.empty());
}

TEST(EpochsTest, AnEpochThatOverwritesItselfWaitsForNobody) {
  Epochs epochs;
  epochs.Add(1);
  epochs.Add(1);
  epochs.Supersede(1, 1);
  epochs.Remove(1);
  epochs.Remove(1);
  EXPECT_TRUE(epochs.empty());
}

TEST(EpochsTest, FailureReachesThoseWhoseBytesItReplacedAndNobodyElse) {
  Epochs epochs;
  for (uint64_t epoch = 1; epoch <= 4; ++epoch) epochs.Add(epoch);
  epochs.Supersede(1, 2);
  epochs.Supersede(2, 3);
  epochs.Remove(1);
  epochs.Remove(2);
  epochs.Fail(3, NoSpace());
  EXPECT_EQ(StateOf(epochs, 1), State::kFailed);
  EXPECT_EQ(StateOf(epochs, 2), State::kFailed);
  EXPECT_EQ(StateOf(epochs, 3), State::kFailed);
  EXPECT_EQ(StateOf(epochs, 4), State::kPending);
  EXPECT_EQ(UpTo(epochs, 1), State::kFailed);
  epochs.ForgetFailures();
  EXPECT_EQ(StateOf(epochs, 1), State::kPending);
  epochs.Remove(3);
  EXPECT_EQ(StateOf(epochs, 1), State::kDone);
  EXPECT_EQ(StateOf(epochs, 4), State::kPending);
}

// Each walk through all of them would make this take minutes.
TEST(EpochsTest, ManyFailuresAreToldInTimeThatGrowsAsTheyDo) {
  Epochs epochs;
  constexpr uint64_t kPairs = 200'000;
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    epochs.Add(2 * pair + 1);
    epochs.Add(2 * pair + 2);
    epochs.Supersede(2 * pair + 1, 2 * pair + 2);
    epochs.Remove(2 * pair + 1);
  }
  for (uint64_t pair = 0; pair < kPairs; ++pair) epochs.Fail(2 * pair + 2, NoSpace());
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    ASSERT_EQ(StateOf(epochs, 2 * pair + 1), State::kFailed);
  }
}

TEST(EpochsTest, ABarrierReportsAFailureBehindPendingEpochs) {
  Epochs epochs;
  epochs.Add(1);
  epochs.Add(2);
  epochs.Fail(2, NoSpace());
  EXPECT_EQ(UpTo(epochs, 1), State::kPending);
  EXPECT_EQ(UpTo(epochs, 2), State::kFailed);
}

TEST(EpochsTest, AChainOfAHundredThousandOverwritesNeedsNoDeepStack) {
  Epochs epochs;
  constexpr uint64_t kLinks = 100'000;
  epochs.Add(1);
  for (uint64_t epoch = 2; epoch <= kLinks; ++epoch) {
    epochs.Add(epoch);
    epochs.Supersede(epoch - 1, epoch);
    epochs.Remove(epoch - 1);
  }
  EXPECT_EQ(StateOf(epochs, 1), State::kPending);
  epochs.Remove(kLinks);
  EXPECT_TRUE(epochs.empty());
}

}  // namespace
}  // namespace tidelane
