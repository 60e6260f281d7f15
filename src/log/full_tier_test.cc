/// \file
/// A log on a faster place that has no room: it goes on beside the file.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/counters.h"
#include "log/logged_store_fixture.h"

namespace tidelane {
namespace {

// Where all goes to the log, which lies on a faster place with little room.
class FullTierTest : public LoggedStoreTest {
 protected:
  static constexpr uint64_t kRoom = log::kDataBegin + 6000;
  const std::string tier_ = "tier";

  LoggedFile Parts(Lanes* lanes) {
    return {.file = disk_->Open(kName),
            .writable = true,
            .journal = journal_,
            .log = {.place = {.folder = disk_->MakeFolder(kRoom), .name = tier_, .all = true},
                    .next = log::LogPlace{.folder = disk_->MakeFolder(), .name = kName},
                    .path = "/there/" + kName,
                    .lanes = lanes},
            .left = [this](const std::string&, int) { left_ = true; }};
  }
  void OpenInTier(Lanes* lanes) {
    store_ = std::make_unique<LoggedStore>(Parts(lanes));
    ASSERT_TRUE(store_->Settle().ok());
  }
  bool InTier() const { return disk_->Has(log::SegmentName(tier_, 1)); }
  bool Beside() const { return disk_->Has(kFirst) || disk_->Has(kSecond); }

  bool left_ = false;
};

TEST_F(FullTierTest, WhatACommitHasIsWrittenAgainBesideTheFile) {
  OpenInTier(&unthreaded_);
  const uint64_t full = Read(Fallback::kTierFull);
  ASSERT_EQ(Write(1000, 2500, 'a'), 0);
  ASSERT_EQ(WriteSuperblock(), 0);
  ASSERT_EQ(Commit(), 0);
  ASSERT_EQ(Write(1500, 500, 'b'), 0);
  ASSERT_EQ(Write(3900, 300, 'c'), 0);
  EXPECT_TRUE(InTier() && !Beside());
  const Bytes before = committed_;
  ASSERT_EQ(Write(200, 3000, 'd'), 0);
  EXPECT_TRUE(!InTier() && Beside());
  EXPECT_EQ(Read(Fallback::kTierFull), full + 1);
  EXPECT_EQ(Contents(*store_)[3950], std::byte{'c'});
  Bytes found;
  ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
  found.resize(before.size());  // what no commit has may lie behind
  EXPECT_EQ(found, before);
  ASSERT_EQ(WriteSuperblock(), 0);
  ASSERT_EQ(Commit(), 0);
  ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
  EXPECT_EQ(found, committed_);
  ASSERT_EQ(store_->Finish(), 0);
  ASSERT_EQ(store_->Close(), 0);
  EXPECT_FALSE(left_);
  EXPECT_EQ(disk_->Names(), std::vector{kName});
  EXPECT_EQ(disk_->Contents(kName), committed_);
}

// Storage has no room either for what is to be written once more: it is read where it was, and the next call tries again.
TEST_F(FullTierTest, WhatIsLeftBehindIsNotLostWhereStorageRefusesIt) {
  OpenInTier(&unthreaded_);
  ASSERT_EQ(Write(1000, 2500, 'a'), 0);
  ASSERT_EQ(WriteSuperblock(), 0);
  ASSERT_EQ(Commit(), 0);
  ASSERT_EQ(Write(1500, 500, 'b'), 0);
  ASSERT_EQ(Write(2500, 1500, 'c'), 0);
  const Bytes written = Contents(*store_);
  bool room = false;
  disk_->plan = [&](FaultPoint point, uint64_t address, uint64_t) {
    // Of what comes after the header of a segment beside the file.
    return Fault{.code =
                     !room && point == FaultPoint::kWrite && Beside() && address != 0 ? ENOSPC : 0};
  };
  EXPECT_EQ(Write(200, 3000, 'd'), ENOSPC);
  EXPECT_FALSE(InTier());
  EXPECT_EQ(Contents(*store_), written);
  EXPECT_EQ(Write(5000, 10, 'e'), ENOSPC);
  EXPECT_EQ(store_->SetSize(100), ENOSPC);
  EXPECT_EQ(store_->Commit(Committing::kNow), ENOSPC);
  EXPECT_EQ(Contents(*store_), written);
  Bytes found;
  ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
  EXPECT_EQ(found, committed_);
  room = true;
  ASSERT_EQ(Write(5000, 10, 'e'), 0);
  ASSERT_EQ(WriteSuperblock(), 0);
  ASSERT_EQ(Commit(), 0);
  disk_->plan = nullptr;
  EXPECT_EQ(committed_[1600], std::byte{'b'});
  EXPECT_EQ(committed_[3000], std::byte{'c'});
  ASSERT_EQ(store_->Finish(), 0);
  EXPECT_EQ(disk_->Contents(kName), committed_);
}

// It closes what it has of its parent, in whose log there is more than in the file.
TEST_F(FullTierTest, AChildOfForkClosesItsParentsFile) {
  OpenInTier(&unthreaded_);
  ASSERT_EQ(Write(kEnd, 2000, 'a'), 0);
  ASSERT_EQ(WriteSuperblock(), 0);
  ASSERT_EQ(Commit(), 0);
  const pid_t child = fork();
  if (child == 0) {
    uint64_t found = store_->size();
    const bool right = store_->Finish() == 0 &&
                       (store_->EndReservations(found), found == kEnd + 2000) &&
                       store_->Close() == 0;
    _exit(right ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(InTier());
  EXPECT_EQ(Contents(*store_), committed_);
}

TEST_F(FullTierTest, WritersAndReadersGoOnWhileThePlaceChanges) {
  constexpr uint64_t kEach = 700;
  for (int round = 0; round < 20; ++round) {
    Lanes lanes(1);
    const uint64_t full = Read(Fallback::kTierFull);
    OpenInTier(&lanes);
    ASSERT_EQ(WriteSuperblock(), 0);
    ASSERT_EQ(Commit(), 0);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (uint64_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const uint64_t begin = 200 + i * kEach;
        for (char letter = 'a'; letter <= 'z'; ++letter) {
          // In other pieces than before, which take room of their own.
          const uint64_t size = kEach - static_cast<uint64_t>(letter - 'a');
          if (Write(begin, size, letter) != 0) ++wrong;
          std::string read(size, ' ');
          if (store_->Read(begin, read.data(), size) != 0 || read != std::string(size, letter))
            ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(Read(Fallback::kTierFull), full + 1);
    ASSERT_EQ(WriteSuperblock(), 0);
    ASSERT_EQ(Commit(), 0);
    ASSERT_EQ(store_->Finish(), 0);
    ASSERT_EQ(store_->Close(), 0);
    EXPECT_EQ(disk_->Contents(kName), committed_);
    store_.reset();
  }
}

}  // namespace
}  // namespace tidelane
