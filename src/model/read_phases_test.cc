/// \file
/// Phases of reads: where they begin and end, what is learned of which, what is expected of them. No clock is read.
#include "model/read_phases.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/decisions.h"

namespace tidelane::model {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kMib = 1u << 20;
constexpr uint64_t kDevice = 1;

class ReadPhasesTest : public ::testing::Test {
 protected:
  ReadPhasesTest() { ResetDecisionsAfterFork(); }

  /// A phase of `reads` reads of 1 MiB, each `ms` of storage's time, which the program waits for.
  void Wait(unsigned reads, uint64_t ms) {
    for (unsigned i = 0; i < reads; ++i, now_ += ms * kMs) {
      phases_.Begin(now_);
      phases_.Answered(kDevice, ReadPhases::For::kProgram, {now_, now_ + ms * kMs, kMib});
      phases_.End(kDevice, {.end_ns = now_ + ms * kMs, .bytes = kMib});
    }
  }
  /// The same, brought by lanes before; each costs a copy of `us`.
  void Copy(unsigned reads, uint64_t us) {
    for (unsigned i = 0; i < reads; ++i, now_ += us * 1000) {
      phases_.Begin(now_);
      phases_.End(
          kDevice,
          {.end_ns = now_ + us * 1000, .bytes = kMib, .copied_bytes = kMib, .copy_ns = us * 1000});
    }
  }
  /// The program computes, while lanes read so much at once.
  void Compute(uint64_t ms, uint64_t lanes_bytes = 0, uint64_t lanes_ms = 0) {
    if (lanes_bytes != 0)
      phases_.Answered(kDevice, ReadPhases::For::kLater,
                       {now_, now_ + lanes_ms * kMs, lanes_bytes});
    now_ += ms * kMs;
  }
  LearnedReads Learned() {
    phases_.Finish(now_);
    const auto learnings = phases_.TakeLearnings(1);
    return learnings.empty() ? LearnedReads() : learnings.front().second;
  }

  ReadPhases phases_;
  uint64_t now_ = 5 * kMs;
};

TEST_F(ReadPhasesTest, WhatTheProgramWaitsForIsStoragesTimeAndTheRestComputation) {
  for (int i = 0; i < 4; ++i) Wait(8, 3), Compute(50);
  const LearnedReads learned = Learned();
  EXPECT_EQ(learned.epochs, 4u);
  EXPECT_NEAR(learned.sync.Predict(8 * kMib, 1)->seconds, 0.024, 1e-6);
  EXPECT_NEAR(learned.compute.mean(), 0.05, 1e-9);
  EXPECT_DOUBLE_EQ(learned.bytes.mean(), 8 * kMib);
  EXPECT_DOUBLE_EQ(learned.read_bytes.mean(), kMib);
  EXPECT_EQ(learned.compute.count(), 3u) << "nothing is known of what follows the last phase";
  EXPECT_EQ(learned.lanes.weight(), 0);
  EXPECT_FALSE(learned.copy.known());
}

TEST_F(ReadPhasesTest, WhatLanesBringIsTheirRateAndACopy) {
  Wait(8, 3);
  for (int i = 0; i < 5; ++i) Compute(50, 8 * kMib, 16), Copy(8, 200);
  const LearnedReads learned = Learned();
  EXPECT_EQ(learned.epochs, 6u);
  EXPECT_NEAR(learned.lanes.Predict(8 * kMib, 1)->seconds, 0.016, 1e-6);
  EXPECT_NEAR(learned.copy.Seconds(kMib, 8 * kMib), 8 * 200e-6, 1e-9);
  EXPECT_NEAR(learned.compute.mean(), 0.05, 1e-9) << "neither the copy nor what lanes do";
}

TEST_F(ReadPhasesTest, EpochsAreExpectedByTheEquations) {
  for (int i = 0; i < 3; ++i) Wait(8, 3), Compute(50);  // 74 ms
  Wait(8, 3);
  for (int i = 0; i < 6; ++i) Compute(50, 8 * kMib, 80), Compute(30), Copy(8, 250);  // 82 ms
  phases_.Finish(now_);
  const ReadEpochs reads = ReadDecisions().reads;
  EXPECT_EQ(reads.epochs, 10u);
  EXPECT_EQ(reads.async_epochs, 6u);
  EXPECT_EQ(reads.forecasts, 8u) << "neither the first nor the last";
  EXPECT_LT(reads.forecast_error, 0.1);
  const ModeledReads known = ReadDecisions().storages.at(0).reads;
  EXPECT_GT(known.sync.samples, 0);
  EXPECT_GT(known.lanes.samples, 0);
  EXPECT_NEAR(known.copy_bytes_per_second, kMib / 250e-6, 1e6);
}

TEST_F(ReadPhasesTest, AWaitForAReadThatWasDeferredIsNoComputation) {
  for (int i = 0; i < 4; ++i) {
    phases_.Begin(now_);
    phases_.End(kDevice, {.end_ns = now_, .bytes = 8 * kMib});
    Compute(20, 8 * kMib, 60);
    now_ += 40 * kMs;  // it asks for the bytes
    phases_.Waited(40 * kMs);
  }
  EXPECT_NEAR(Learned().compute.mean(), 0.02, 1e-9);
  EXPECT_EQ(ReadDecisions().reads.async_epochs, 4u);
}

// Decoding lies between the requests of one call: neither is it storage's time, nor does it end a phase.
TEST_F(ReadPhasesTest, ACallThatDecodesIsOnePhase) {
  for (int i = 0; i < 3; ++i) {
    phases_.Begin(now_);
    for (int chunk = 0; chunk < 4; ++chunk, now_ += 5 * kMs)
      phases_.Answered(kDevice, ReadPhases::For::kProgram, {now_, now_ + 2 * kMs, kMib});
    phases_.End(kDevice, {.end_ns = now_, .bytes = 4 * kMib});
    Compute(30);
  }
  const LearnedReads learned = Learned();
  EXPECT_EQ(learned.epochs, 3u);
  EXPECT_NEAR(learned.sync.Predict(4 * kMib, 1)->seconds, 0.008, 1e-6);
  EXPECT_NEAR(learned.compute.mean(), 0.042, 1e-9);
}

// Opening a dataset takes longer than the shortest pause where storage is slow: it is no pause.
TEST_F(ReadPhasesTest, WhatItTakesToOpenADatasetIsPartOfThePhase) {
  const auto open = [this] {
    for (int request = 0; request < 3; ++request, now_ += 2 * kMs)
      phases_.Small(now_, now_ + 2 * kMs);
  };
  for (int phase = 0; phase < 4; ++phase, Compute(50)) {
    for (int dataset = 0; dataset < 5; ++dataset) open(), Wait(1, 10);
  }
  const LearnedReads learned = Learned();
  EXPECT_EQ(learned.epochs, 4u);
  EXPECT_DOUBLE_EQ(learned.bytes.mean(), 5 * kMib);
  EXPECT_NEAR(learned.sync.Predict(5 * kMib, 1)->seconds, 5 * 0.016, 1e-6) << "of the first, too";
  EXPECT_NEAR(learned.compute.mean(), 0.05, 1e-9);
}

TEST_F(ReadPhasesTest, MetadataAloneIsNoPhaseAndNoComputation) {
  for (int phase = 0; phase < 4; ++phase) {
    Wait(8, 3);
    Compute(20);
    phases_.Small(now_, now_ + 5 * kMs);
    now_ += 5 * kMs;
    Compute(30);
  }
  const LearnedReads learned = Learned();
  EXPECT_EQ(learned.epochs, 4u);
  EXPECT_NEAR(learned.sync.Predict(8 * kMib, 1)->seconds, 0.024, 1e-6);
  EXPECT_NEAR(learned.compute.mean(), 0.055, 1e-9) << "who waits for a little may as well compute";
}

TEST_F(ReadPhasesTest, RequestsThatOverlapTakeTheirTimeOnce) {
  for (int i = 0; i < 2; ++i) {
    phases_.Begin(now_);
    for (int lane = 0; lane < 2; ++lane)
      phases_.Answered(kDevice, ReadPhases::For::kProgram, {now_, now_ + 10 * kMs, 2 * kMib});
    now_ += 10 * kMs;
    phases_.End(kDevice, {.end_ns = now_, .bytes = 4 * kMib});
    Compute(30);
  }
  EXPECT_NEAR(Learned().sync.Predict(4 * kMib, 1)->seconds, 0.010, 1e-6);
}

TEST_F(ReadPhasesTest, WhereBothReadNeitherHadStorageForItself) {
  for (int i = 0; i < 4; ++i) Wait(4, 6), Copy(4, 200), Compute(50, 4 * kMib, 30);
  const LearnedReads learned = Learned();
  EXPECT_EQ(learned.epochs, 4u);
  EXPECT_EQ(learned.sync.weight(), 0);
  EXPECT_EQ(learned.lanes.weight(), 0);
  EXPECT_EQ(learned.bytes.count(), 3u);
}

TEST_F(ReadPhasesTest, LittlePhasesSayNothing) {
  for (int i = 0; i < 4; ++i) {
    phases_.Begin(now_);
    phases_.Answered(kDevice, ReadPhases::For::kProgram, {now_, now_ + kMs, 64 << 10});
    phases_.End(kDevice, {.end_ns = now_ + kMs, .bytes = 64 << 10});
    now_ += 50 * kMs;
  }
  EXPECT_EQ(Learned().epochs, 0u);
  EXPECT_EQ(ReadDecisions().reads.epochs, 0u);
}

TEST_F(ReadPhasesTest, WhatWasTakenIsNotTakenAgain) {
  for (int i = 0; i < 3; ++i) Wait(8, 3), Compute(50);
  EXPECT_EQ(Learned().epochs, 3u);
  EXPECT_TRUE(phases_.TakeLearnings(1).empty());
  for (int i = 0; i < 3; ++i) Wait(8, 3), Compute(50);
  EXPECT_EQ(Learned().epochs, 3u);
}

TEST_F(ReadPhasesTest, AForkedChildBeginsAnew) {
  for (int i = 0; i < 3; ++i) Wait(8, 3), Compute(50);
  phases_.LockForFork();
  phases_.UnlockAfterFork(true);
  EXPECT_EQ(Learned().epochs, 0u);
}

}  // namespace
}  // namespace tidelane::model
