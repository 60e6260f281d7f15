/// \file
/// Each rule: speaks where enough is at stake, and only there.
#include "base/advice.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// A run of 10 s that wrote 1 GiB asynchronously: nobody has anything to say about it.
Summary Quiet() {
  Summary summary;
  summary.run_ns = 10 * kSecond;
  summary[Counter::kFilesOpened] = 1;
  summary[Counter::kBytesDeferred] = 1u << 30;
  summary[Counter::kWritesDeferred] = 1024;
  summary[Counter::kArenaCapBytes] = 64u << 20;
  summary.overlap = {5 * kSecond, 5 * kSecond};
  summary.free_after_close_ns = summary.free_after_flush_ns = 5 * kSecond;
  return summary;
}

// The text of a rule; empty when it did not speak.
std::string Told(const Summary& summary, const std::string& rule) {
  for (const Advice& advice : AdviceFor(summary)) {
    if (advice.rule == rule) return advice.text;
  }
  return "";
}

TEST(AdviceTest, AQuietRunGetsNone) { EXPECT_TRUE(AdviceFor(Quiet()).empty()); }

TEST(AdviceTest, CloseThatWaited) {
  Summary summary = Quiet();
  summary[Counter::kWaitCloseNs] = 4'100'000'000;
  summary[Counter::kWaitsClose] = 5;
  EXPECT_EQ(Told(summary, "close_waits"),
            "close waited 4.1 s in 5 files: TIDELANE_CLOSE=deferred hides it");
  summary.config.close_deferred = true;
  EXPECT_EQ(Told(summary, "close_waits"), "") << "it is so already";
}

TEST(AdviceTest, AWaitMustBeATwentiethOfTheRunAndATenthOfASecond) {
  Summary summary = Quiet();
  summary[Counter::kWaitsClose] = 1;
  summary[Counter::kWaitCloseNs] = kSecond / 2;
  EXPECT_NE(Told(summary, "close_waits"), "");
  summary[Counter::kWaitCloseNs] = kSecond / 2 - 1;
  EXPECT_EQ(Told(summary, "close_waits"), "");
  summary.run_ns = kSecond / 10;
  summary[Counter::kWaitCloseNs] = kSecond / 10 - 1;
  EXPECT_EQ(Told(summary, "close_waits"), "");
  summary[Counter::kWaitCloseNs] = kSecond / 10;
  EXPECT_NE(Told(summary, "close_waits"), "");
}

// A file that is closed as the last thing: a deferred close would only make the exit wait.
TEST(AdviceTest, WhatComesAfterwardsIsWhatHidesADeferredClose) {
  Summary summary = Quiet();
  summary[Counter::kWaitCloseNs] = 4 * kSecond;
  summary[Counter::kWaitsClose] = 1;
  summary.free_after_close_ns = kSecond / 100;
  EXPECT_EQ(Told(summary, "close_waits"), "");
  summary.free_after_close_ns = 3 * kSecond;
  EXPECT_EQ(Told(summary, "close_waits"),
            "close waited 4.0 s in 1 file: TIDELANE_CLOSE=deferred would hide 3.0 s of it");
}

TEST(AdviceTest, FlushThatWaited) {
  Summary summary = Quiet();
  summary[Counter::kWaitFlushNs] = 2 * kSecond;
  summary[Counter::kWaitsFlush] = 1;
  EXPECT_EQ(Told(summary, "flush_waits"),
            "flush waited 2.0 s in 1 call: TIDELANE_FLUSH=deferred hides it");
  summary.config.flush_deferred = true;
  EXPECT_EQ(Told(summary, "flush_waits"), "");
}

TEST(AdviceTest, AnArenaThatWasFullShouldBeTwiceAsLarge) {
  Summary summary = Quiet();
  summary[Counter::kWaitArenaNs] = 3 * kSecond;
  summary[Counter::kWaitsArena] = 40;
  EXPECT_EQ(Told(summary, "arena_full"),
            "the arena was full for 3.0 s in 40 writes: TIDELANE_ARENA=128M gives twice as much "
            "room");
  summary[Counter::kWaitArenaNs] = kSecond / 100;
  EXPECT_EQ(Told(summary, "arena_full"), "");
}

TEST(AdviceTest, ModeSync) {
  Summary summary = Quiet();
  summary[Fallback::kModeSync] = 1;
  EXPECT_EQ(Told(summary, "mode_sync"), "") << "nothing was written so";
  summary.bytes(Fallback::kModeSync) = 3u << 20;
  summary[Counter::kWaitWriteNs] = 2 * kSecond;
  EXPECT_EQ(
      Told(summary, "mode_sync"),
      "TIDELANE_MODE=sync wrote 3.0 MiB in 2.0 s while the program waited: with async it goes on");
}

TEST(AdviceTest, NothingCapturedForTheDriver) {
  Summary summary = Quiet();
  summary[Fallback::kDriver] = 2;
  EXPECT_EQ(Told(summary, "not_captured"), "") << "other files were";
  summary[Counter::kBytesDeferred] = 0;
  EXPECT_NE(Told(summary, "not_captured"), "");
  EXPECT_EQ(Told(summary, "nothing_written"), "") << "we cannot know";
}

TEST(AdviceTest, NothingWritten) {
  Summary summary = Quiet();
  summary[Counter::kBytesDeferred] = 0;
  EXPECT_NE(Told(summary, "nothing_written"), "");
  summary[Counter::kFilesOpened] = 0;
  EXPECT_TRUE(AdviceFor(summary).empty()) << "a program that used no file needs none";
}

TEST(AdviceTest, QuickStorage) {
  Summary summary = Quiet();
  summary[Counter::kWaitWriteNs] = 2 * kSecond;
  summary.bytes(Fallback::kQuickStorage) = summary[Counter::kBytesSync] = 1u << 29;
  EXPECT_EQ(Told(summary, "quick_storage"), "") << "a third of the bytes";
  summary.bytes(Fallback::kQuickStorage) = summary[Counter::kBytesSync] = 1u << 31;
  EXPECT_NE(Told(summary, "quick_storage"), "");
  summary[Counter::kWaitWriteNs] = kSecond / 100;
  EXPECT_EQ(Told(summary, "quick_storage"), "");
}

TEST(AdviceTest, Swmr) {
  Summary summary = Quiet();
  summary[Counter::kWaitWriteNs] = 2 * kSecond;
  EXPECT_EQ(Told(summary, "swmr"), "");
  summary.bytes(Fallback::kSwmrWrite) = summary[Counter::kBytesSync] = 1u << 31;
  EXPECT_NE(Told(summary, "swmr"), "");
}

TEST(AdviceTest, ReadsThatAreNotAhead) {
  Summary summary = Quiet();
  summary[Counter::kWaitReadNs] = 2 * kSecond;
  summary[Counter::kWaitsRead] = 2000;
  EXPECT_TRUE(AdviceFor(summary).empty());
  summary[Fallback::kLocking] = 1;
  EXPECT_EQ(Told(summary, "not_locked"),
            "2000 reads took 2.0 s, none read ahead because files are not locked: "
            "HDF5_USE_FILE_LOCKING=BEST_EFFORT allows it where the file system can lock");
  summary.config.read_ahead = Toggle::kOff;
  EXPECT_EQ(Told(summary, "read_ahead_off"),
            "2000 reads took 2.0 s with TIDELANE_READAHEAD=off: auto reads metadata ahead");
  summary[Counter::kWaitReadNs] = kSecond / 100;
  EXPECT_TRUE(AdviceFor(summary).empty());
}

TEST(AdviceTest, OneCore) {
  Summary summary = Quiet();
  summary[Fallback::kOneCore] = 1;
  EXPECT_NE(Told(summary, "one_core"), "");
  summary.overlap = {kSecond / 100, 0};
  EXPECT_EQ(Told(summary, "one_core"), "") << "lanes had hardly anything to do";
}

TEST(AdviceTest, TheTwoWithMostAtStakeAreTold) {
  Summary summary = Quiet();
  summary[Counter::kWaitCloseNs] = 2 * kSecond;
  summary[Counter::kWaitFlushNs] = 3 * kSecond;
  summary[Counter::kWaitArenaNs] = kSecond;
  const std::vector<Advice> advice = AdviceFor(summary);
  ASSERT_EQ(advice.size(), 2u);
  EXPECT_STREQ(advice[0].rule, "flush_waits");
  EXPECT_STREQ(advice[1].rule, "close_waits");
}

TEST(AdviceTest, RulesHaveKeysOfTheirOwn) {
  std::vector<std::string> keys = AdviceRules();
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

}  // namespace
}  // namespace tidelane
