/// \file
/// What is told of a file that cannot be brought home: whole, of now, one line; and how a mover's pace is kept.
#include "tier/trouble.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tier/entry.h"
#include "tier/pace.h"
#include "tier/place.h"

namespace tidelane::tier {
namespace {

namespace fs = std::filesystem;
constexpr char kEntry[] = "0123456789abcdef";

class TroubleTest : public testing::Test {
 protected:
  TroubleTest() {
    std::string folder = testing::TempDir() + "tidelane_trouble_XXXXXX";
    folder_ = mkdtemp(folder.data());
    EXPECT_TRUE(Place::Open(folder_, true, place_).ok());
  }
  ~TroubleTest() override { fs::remove_all(folder_); }

  std::string NoteOf(const std::string& entry) const { return place_.path + '/' + entry + ".why"; }
  void Write(const std::string& text) const {
    std::ofstream(NoteOf(kEntry), std::ios::binary) << text;
  }

  std::string folder_;
  Place place_;
};

TEST_F(TroubleTest, ItSaysSinceWhenAndKeepsThatWhileTheReasonIsTheSame) {
  Trouble trouble;
  EXPECT_FALSE(Trouble::Read(place_, kEntry, trouble));
  Write("tidelane tier 1\nsince 100\nbytes 7\nreason No space\n");
  Trouble::Tell(place_, kEntry, "No space", 9);
  ASSERT_TRUE(Trouble::Read(place_, kEntry, trouble));
  EXPECT_EQ(trouble.since, 100);
  EXPECT_EQ(trouble.bytes, 7u);
  Trouble::Tell(place_, kEntry, "read-only", 9);
  ASSERT_TRUE(Trouble::Read(place_, kEntry, trouble));
  EXPECT_EQ(trouble.reason, "read-only");
  EXPECT_EQ(trouble.bytes, 9u);
  EXPECT_NEAR(static_cast<double>(trouble.since), static_cast<double>(std::time(nullptr)), 100);
  struct stat found{};
  ASSERT_EQ(stat(NoteOf(kEntry).c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777u, 0600u);
}

TEST_F(TroubleTest, WhateverSomebodyWroteThereIsOneLineOfPrintableCharacters) {
  Trouble trouble;
  Write("tidelane tier 1\nsince 99999999999\nbytes 0\nreason \x1b[2J\xff two\nlines\n");
  ASSERT_TRUE(Trouble::Read(place_, kEntry, trouble));
  EXPECT_EQ(trouble.reason, "\\x1b[2J\\xff two\\x0alines");
  EXPECT_LE(trouble.since, std::time(nullptr));
  EXPECT_GE(trouble.age(), 0);
  Write("tidelane tier 1\nsince 1\nbytes 0\nreason " + std::string(5000, '\n') + '\n');
  ASSERT_TRUE(Trouble::Read(place_, kEntry, trouble));
  EXPECT_LE(trouble.reason.size(), 2000u);
  for (const std::string& text :
       {std::string(), std::string("tidelane tier 1\nsince -1\nbytes 0\nreason x\n"),
        std::string("tidelane tier 1\nbytes 0\nreason x\n"), std::string(100000, 'x')}) {
    Write(text);
    EXPECT_FALSE(Trouble::Read(place_, kEntry, trouble)) << text;
  }
}

TEST_F(TroubleTest, ItGoesWithItsEntryAndAStrayOneIsCollected) {
  const Entry entry = Entry::For("/a", {1, 2});
  ASSERT_EQ(entry.Write(place_), 0);
  Trouble::Tell(place_, entry.name, "x", 0);
  Trouble::Tell(place_, kEntry, "x", 0);
  Trouble::RemoveStray(place_, Entry::AllIn(place_));
  EXPECT_FALSE(fs::exists(NoteOf(kEntry)));
  EXPECT_TRUE(fs::exists(NoteOf(entry.name)));
  EXPECT_EQ(Entry::Remove(place_, entry.name), 0);
  std::ofstream(place_.path + "/fedcba9876543210.why~") << "begun";
  Trouble::RemoveDrafts(place_);
  EXPECT_TRUE(fs::is_empty(place_.path));
}

TEST_F(TroubleTest, AFailureIsToldWithoutTheFilesNameUnlessItSaysMore) {
  EXPECT_EQ(Trouble::ReasonOf(Status::Failed(ENOSPC, "recover").At("/a", 0, 0)),
            "No space left on device");
  EXPECT_NE(
      Trouble::ReasonOf(Status::Failed(EIO, "use E, a damaged log, to recover").At("/a", 0, 0))
          .find("a damaged log"),
      std::string::npos);
}

TEST(PaceTest, ARateIsKeptAndWhoWantsTheFileEndsTheWait) {
  using Clock = std::chrono::steady_clock;
  const auto free = [] { return 0; };
  Rate rate(1'000'000);
  Pace pace(rate);
  const auto began = Clock::now();
  pace.Wrote(50'000);
  EXPECT_EQ(pace.Await(free), 0);
  EXPECT_GE(Clock::now() - began, std::chrono::milliseconds(50));
  pace.Wrote(3'600'000'000);  // an hour
  int looks = 0;
  EXPECT_EQ(pace.Await([&] { return ++looks < 3 ? 0 : EWOULDBLOCK; }), EWOULDBLOCK);
  Rate no_rate(0);
  Pace fast(no_rate);
  fast.Wrote(UINT64_MAX / 2);
  EXPECT_EQ(fast.Await(free), 0);
}

TEST(PaceTest, ItTellsOnceThatItWentBeyondAPlace) {
  Rate rate(0);
  Pace pace(rate);
  int told = 0;
  pace.Begin(100, [&] { ++told; });
  pace.Wrote(100);
  EXPECT_EQ(told, 0);
  pace.Wrote(1);
  pace.Wrote(1);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(pace.bytes(), 102u);
  pace.Begin(0, nullptr);
  EXPECT_EQ(pace.bytes(), 0u);
}

}  // namespace
}  // namespace tidelane::tier
