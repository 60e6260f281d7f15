#include "engine/backlog.h"

#include <gtest/gtest.h>

namespace tidelane {
namespace {

constexpr uint64_t kMib = 1u << 20;
constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kMost = 64 * kMib;

class BacklogTest : public ::testing::Test {
 protected:
  BacklogTest() { Settle(kMs / 4); }
  void Settle(uint64_t ns_per_mib) {
    for (int i = 0; i < 50; ++i) backlog_.Stored(kDevice, kMib, ns_per_mib);
  }
  uint64_t WriteMib() {
    const uint64_t allowed = backlog_.Begin(now_, kMib, kMost);
    now_ += kMs / 4;
    backlog_.End(now_);
    return allowed / kMib;
  }
  // A step of 16 MiB; returns what its last MiB was allowed.
  uint64_t Burst() {
    for (int i = 0; i < 15; ++i) WriteMib();
    return WriteMib();
  }
  void Pause(uint64_t ms) { now_ += ms * kMs; }

  static constexpr uint64_t kDevice = 7;
  Backlog backlog_;
  uint64_t now_ = kMs;
};

TEST_F(BacklogTest, AProgramThatOnlyWritesDefersNothing) {
  EXPECT_EQ(WriteMib(), 0u);
  EXPECT_EQ(Burst(), 0u);
}

TEST_F(BacklogTest, AfterAPauseAsMuchAsCouldHaveBeenStoredInIt) {
  Burst();
  Pause(10);
  EXPECT_NEAR(static_cast<double>(Burst()), 40, 3);
  Pause(1000);
  EXPECT_EQ(Burst(), kMost / kMib);
}

TEST_F(BacklogTest, AProgramThatWaitsForEachBurstDefersNothing) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Burst(), 0u) << "it will do so again";
    backlog_.Asked(now_ + kMs);  // the file is closed; 16 MiB would have taken 4 ms
    Pause(50);
  }
}

TEST_F(BacklogTest, AskingLateIsNoWaiting) {
  Burst();
  Pause(50);
  backlog_.Asked(now_);  // an event set, waited for when the computation is over
  EXPECT_EQ(Burst(), kMost / kMib);
}

TEST_F(BacklogTest, InAPauseTheNextBurstIsExpectedToBeAsTheLast) {
  Burst();
  EXPECT_EQ(backlog_.Expected(now_), 0u);
  Pause(10);
  EXPECT_EQ(backlog_.Expected(now_), 16 * kMib);
  Burst();
  backlog_.Asked(now_);
  Pause(10);
  EXPECT_EQ(backlog_.Expected(now_), 0u) << "it waits for its bursts: nothing will be deferred";
}

TEST_F(BacklogTest, SlowerStorageNeedsALongerPause) {
  Settle(kMs);
  Burst();
  Pause(10);
  EXPECT_NEAR(static_cast<double>(Burst()), 10, 2);
}

TEST_F(BacklogTest, UntilAFirstRequestTheKindOfFileSystemTells) {
  EXPECT_TRUE(backlog_.Opened(kDevice + 1, true));
  EXPECT_FALSE(backlog_.Opened(kDevice + 2, false));
  EXPECT_FALSE(backlog_.Stored(kDevice + 1, kMib, 20 * kMs));
  EXPECT_FALSE(backlog_.Opened(kDevice + 1, true)) << "its requests know better";
  EXPECT_TRUE(backlog_.QuickOn(kDevice)) << "others are as they were";
}

TEST_F(BacklogTest, ADeviceIsQuickUntilItIsNot) {
  EXPECT_TRUE(backlog_.QuickOn(kDevice));
  EXPECT_FALSE(backlog_.QuickOn(kDevice + 1));
  EXPECT_FALSE(backlog_.Stored(kDevice, kMib, 20 * kMs));
  EXPECT_FALSE(backlog_.QuickOn(kDevice));
}

}  // namespace
}  // namespace tidelane
