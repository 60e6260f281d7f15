/// \file
/// Where bytes go, what a commit makes of them, and what a log that is not right is taken for.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/counters.h"
#include "log/logged_store_fixture.h"

namespace tidelane {
namespace {

TEST_F(LoggedStoreTest, NewBytesGoStraightAndCommittedOnesToTheLog) {
  Open(&unthreaded_);
  const uint64_t logged = Read(Counter::kBytesLogged);
  ASSERT_EQ(Write(kEnd, 1000, 'n'), 0);
  EXPECT_EQ(Read(Counter::kBytesLogged), logged);
  EXPECT_FALSE(disk_->Has(kFirst));
  EXPECT_EQ(disk_->Contents(kName).size(), kEnd + 1000);
  ASSERT_EQ(Write(kEnd - 100, 300, 'm'), 0);
  EXPECT_EQ(Read(Counter::kBytesLogged), logged + 100);
  EXPECT_TRUE(disk_->Has(kFirst));
  const Bytes file = disk_->Contents(kName);
  EXPECT_EQ(file[kEnd - 1], std::byte{'o'});
  EXPECT_EQ(file[kEnd], std::byte{'m'});
  EXPECT_TRUE(Superblock(0, file).marked());
  EXPECT_EQ(Contents(*store_)[kEnd - 1], std::byte{'m'});
}

TEST_F(LoggedStoreTest, WithNothingLoggedACommitIsTheSuperblock) {
  Open(&unthreaded_);
  ASSERT_EQ(Write(kEnd, 1000, 'n'), 0);
  ASSERT_EQ(WriteSuperblock(), 0);
  EXPECT_EQ(Superblock(0, disk_->Contents(kName)).end_of_file(), kEnd);
  ASSERT_EQ(Commit(), 0);
  EXPECT_EQ(disk_->Contents(kName), committed_);
  EXPECT_EQ(Superblock(0, committed_).end_of_file(), kEnd + 1000);
  EXPECT_FALSE(disk_->Has(kFirst));
  // From now on these bytes are protected, too.
  ASSERT_EQ(Write(kEnd + 10, 10, 'x'), 0);
  EXPECT_EQ(disk_->Contents(kName)[kEnd + 10], std::byte{'n'});
}

TEST_F(LoggedStoreTest, WhatNoCommitHasIsWrittenAgainInItsPlace) {
  Open(&unthreaded_);
  ASSERT_EQ(Write(1000, 500, 'a'), 0);
  const size_t bytes = disk_->Contents(kFirst).size();
  for (const char what : {'b', 'c', 'd'}) ASSERT_EQ(Write(1000, 500, what), 0);
  EXPECT_EQ(disk_->Contents(kFirst).size(), bytes);
  ASSERT_EQ(Commit(), 0);
  const size_t after = disk_->Contents(kFirst).size();
  ASSERT_EQ(Write(1000, 500, 'e'), 0);
  EXPECT_GT(disk_->Contents(kFirst).size(), after);
  Bytes found;
  ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
  EXPECT_EQ(found, committed_);
  EXPECT_EQ(found[1000], std::byte{'d'});
}

TEST_F(LoggedStoreTest, WhatWasCutOffReadsAsZerosWhenItGrowsAgain) {
  for (const bool moved : {false, true}) {
    SCOPED_TRACE(moved);
    Open(moved ? nullptr : &unthreaded_);
    ASSERT_EQ(store_->SetSize(2000), 0);
    EXPECT_EQ(disk_->Contents(kName).size(), kEnd);
    if (moved) {
      ASSERT_EQ(WriteSuperblock(), 0);
      ASSERT_EQ(Commit(), 0);
      EXPECT_FALSE(disk_->Has(kFirst));
    }
    ASSERT_EQ(store_->SetSize(3000), 0);
    ASSERT_EQ(Write(3500, 10, 'x'), 0);
    EXPECT_EQ(store_->size(), 3510u);
    const Bytes bytes = Contents(*store_);
    EXPECT_EQ(bytes[1999], std::byte{'o'});
    EXPECT_EQ(std::count(bytes.begin() + 2000, bytes.begin() + 3500, std::byte{}), 1500);
    EXPECT_EQ(bytes[3500], std::byte{'x'});
    store_.reset();
    Bytes found;
    ASSERT_TRUE(Recovered(disk_, found, *this).ok());
    const uint64_t end = Superblock(0, found).end_of_file();
    found.resize(end);
    EXPECT_EQ(found, committed_);
  }
}

TEST_F(LoggedStoreTest, OnlyFlushesThatAreDueCommit) {
  commits_.flushes = 3;
  Open(&unthreaded_);
  ASSERT_EQ(Write(1000, 10, 'a'), 0);
  EXPECT_EQ(store_->Commit(Committing::kIfDue), 0);
  EXPECT_EQ(store_->Commit(Committing::kIfDue), 0);
  Bytes found;
  ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
  EXPECT_EQ(found[1000], std::byte{'o'});
  EXPECT_EQ(store_->Commit(Committing::kIfDue), 0);
  ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
  EXPECT_EQ(found[1000], std::byte{'a'});
}

TEST_F(LoggedStoreTest, FinishLeavesAPlainFile) {
  Open(&unthreaded_);
  ASSERT_EQ(Write(1000, 10, 'a'), 0);
  ASSERT_EQ(Commit(), 0);
  ASSERT_EQ(store_->SetSize(2000), 0);
  ASSERT_EQ(WriteSuperblock(), 0);
  ASSERT_EQ(store_->Finish(), 0);
  EXPECT_EQ(Write(1000, 10, 'b'), EBADF);
  ASSERT_EQ(store_->Close(), 0);
  EXPECT_EQ(disk_->Names(), std::vector<std::string>{kName});
  const Bytes file = disk_->Contents(kName);
  EXPECT_EQ(file.size(), 2000u);
  EXPECT_EQ(file[1000], std::byte{'a'});
  EXPECT_FALSE(Superblock(0, file).marked());
}

TEST_F(LoggedStoreTest, AfterEndCommitsItIsWrittenAsNatively) {
  Open(&unthreaded_);
  ASSERT_EQ(Write(1000, 10, 'a'), 0);
  ASSERT_EQ(store_->EndCommits(), 0);
  EXPECT_FALSE(store_->commits());
  EXPECT_EQ(disk_->Names(), std::vector<std::string>{kName});
  ASSERT_EQ(Write(1005, 10, 'b'), 0);
  ASSERT_EQ(store_->SetSize(1500), 0);
  const Bytes file = disk_->Contents(kName);
  EXPECT_EQ(file.size(), 1500u);
  EXPECT_EQ(file[1004], std::byte{'a'});
  EXPECT_EQ(file[1014], std::byte{'b'});
}

TEST_F(LoggedStoreTest, ACreatedFileIsEmptyBeforeItsFirstCommit) {
  ASSERT_EQ(disk_->Open(kName)->Truncate(0), 0);
  Open(&unthreaded_);
  ASSERT_EQ(Write(96, 1000, 'a'), 0);
  ASSERT_EQ(WriteSuperblock(), 0);
  const Superblock there(0, disk_->Contents(kName));
  EXPECT_EQ(there.mark(), kNeverCommitted);
  EXPECT_TRUE(there.marked());
  EXPECT_EQ(disk_->Names(), std::vector<std::string>{kName});
  const auto only_read = StoreOn(disk_->AfterEnd(), false);
  ASSERT_TRUE(only_read->Settle().ok());
  EXPECT_EQ(only_read->size(), 0u);
  Bytes found(1);
  ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
  EXPECT_TRUE(found.empty());
  ASSERT_EQ(Commit(), 0);
  ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
  EXPECT_EQ(found, committed_);
}

TEST_F(LoggedStoreTest, LanesMoveWhatHasBecomeLarge) {
  segment_bytes_ = 8192;
  Lanes lanes(2);
  Open(&lanes);
  const uint64_t moves = Read(Counter::kCheckpoints);
  for (unsigned i = 0; i < 30; ++i) {
    ASSERT_EQ(Write(500 + 100 * (i % 7), 2000, static_cast<char>('a' + i % 26)), 0);
    if (i % 5 == 0) {
      ASSERT_EQ(Write(store_->size(), 100, 's'), 0);
    }
    ASSERT_EQ(WriteSuperblock(), 0);
    ASSERT_EQ(Commit(), 0);
    Bytes found;
    ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
    ASSERT_EQ(found, committed_) << i;
  }
  EXPECT_GT(Read(Counter::kCheckpoints), moves);
  ASSERT_EQ(store_->Finish(), 0);
  ASSERT_EQ(store_->Close(), 0);
  EXPECT_EQ(disk_->Names(), std::vector<std::string>{kName});
  EXPECT_EQ(disk_->Contents(kName), committed_);
}

TEST_F(LoggedStoreTest, AStateThatIsWrittenAgainTakesTwiceItsSpace) {
  reuse_bytes_ = 1500;
  Open(&unthreaded_);
  ASSERT_EQ(Write(100, 700, 'k'), 0);  // what nobody writes again
  for (unsigned i = 0; i < 60; ++i) {
    Bytes found;
    const char what = static_cast<char>('a' + i % 26);
    ASSERT_EQ(Write(1000, 2000, what), 0);
    if (i % 4 == 0) {
      ASSERT_EQ(Write(1500, 10, 'x'), 0);
    }
    // What is written over now is nothing that the last commit needs.
    ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
    ASSERT_EQ(found, committed_) << i;
    if (i % 3 != 0) {  // a commit that has no new superblock needs the last one
      ASSERT_EQ(WriteSuperblock(), 0);
    }
    ASSERT_EQ(Commit(), 0);
    ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
    ASSERT_EQ(found, committed_) << i;
    ASSERT_EQ(found[100], std::byte{'k'});
  }
  EXPECT_LT(disk_->Contents(kFirst).size(), log::kDataBegin + 700 + 3 * 2000 + 2000);
  EXPECT_FALSE(disk_->Has(kSecond));
  ASSERT_EQ(store_->Finish(), 0);
  ASSERT_EQ(store_->Close(), 0);
  EXPECT_EQ(disk_->Contents(kName), committed_);
}

// What lies between small pieces cannot be used again, and is no reason to say all of them in each commit.
TEST_F(LoggedStoreTest, ManySmallPiecesAreNotSaidInEachCommit) {
  reuse_bytes_ = 1500;
  Open(&unthreaded_);
  for (unsigned i = 0; i < 60; ++i) {  // each in a sector of its own, among what is hidden soon
    ASSERT_EQ(Write(200 + 8 * i, 5, 'k'), 0);
    ASSERT_EQ(Write(1000, 1000 + i, 'x'), 0);
  }
  ASSERT_EQ(Commit(), 0);
  unsigned whole = 0;
  for (unsigned i = 0; i < 40; ++i) {
    uint64_t written = 0;
    disk_->plan = [&](FaultPoint point, uint64_t, uint64_t size) {
      if (point == FaultPoint::kWrite) written += size;
      return Fault{};
    };
    ASSERT_EQ(Write(700, 1, static_cast<char>('a' + i % 26)), 0);
    ASSERT_EQ(Commit(), 0);
    disk_->plan = nullptr;
    if (written > 60 * log::CommitRecord::kEntry) ++whole;
    Bytes found;
    ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
    ASSERT_EQ(found, committed_) << i;
  }
  EXPECT_LE(whole, 4u);  // records of commits before are hidden in time
}

// A kill came between the mark and the log's removal: who opens it next leaves it alone, whether he writes or not.
TEST_F(LoggedStoreTest, ALogThatIsDoneWithGoesWithTheNextOpen) {
  Open(&unthreaded_);
  ASSERT_EQ(Write(1000, 500, 'a'), 0);
  ASSERT_EQ(WriteSuperblock(), 0);
  ASSERT_EQ(Commit(), 0);
  const Bytes log = disk_->Contents(kFirst);
  ASSERT_EQ(store_->Finish(), 0);
  ASSERT_EQ(store_->Close(), 0);
  for (const bool done : {true, false}) {
    const auto disk = Changed({}, {});
    Bytes left = log;
    if (!done) left[40] = std::byte{1};  // another's, or a damaged one
    disk->Add(kFirst, left);
    disk->Add(kSecond, {});
    const auto store = StoreOn(disk, true);
    ASSERT_TRUE(store->Settle().ok());
    EXPECT_NE(disk->Has(kFirst), done);
    EXPECT_FALSE(disk->Has(kSecond));
    ASSERT_EQ(store->Finish(), 0);
    EXPECT_EQ(disk->Contents(kName), committed_);
  }
}

// What found no room must not take the room of what would.
TEST_F(LoggedStoreTest, AfterAWriteThatFoundNoRoomACommitDoes) {
  Open(&unthreaded_);
  ASSERT_EQ(Write(1000, 500, 'a'), 0);
  ASSERT_EQ(WriteSuperblock(), 0);
  ASSERT_EQ(Commit(), 0);
  const uint64_t room = disk_->Contents(kFirst).size() + 1000;
  disk_->plan = [&](FaultPoint point, uint64_t address, uint64_t size) {
    return Fault{.code = point == FaultPoint::kWrite && address + size > room ? ENOSPC : 0};
  };
  ASSERT_EQ(Write(500, 2000, 'b'), ENOSPC);
  ASSERT_EQ(Write(700, 10, 'c'), 0);
  ASSERT_EQ(WriteSuperblock(), 0);
  ASSERT_EQ(Commit(), 0);
  EXPECT_EQ(committed_[700], std::byte{'c'});
  EXPECT_EQ(committed_[1000], std::byte{'a'});
  Bytes found;
  ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
  EXPECT_EQ(found, committed_);
  disk_->plan = nullptr;
}

TEST_F(LoggedStoreTest, AChildOfForkWritesNothing) {
  Open(&unthreaded_);
  ASSERT_EQ(Write(1000, 10, 'a'), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool right = Write(1000, 10, 'b') == EROFS && Write(10, 10, 'b') == 0 &&
                       store_->SetSize(100) == EROFS && store_->Commit(Committing::kNow) == 0 &&
                       store_->Finish() == 0 && disk_->Contents(kFirst).size() == 4096 + 10;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(LoggedStoreTest, AStrangersLogIsSetAside) {
  Open(&unthreaded_);
  ASSERT_EQ(Write(1000, 10, 'a'), 0);
  ASSERT_EQ(Commit(), 0);
  const Bytes log = disk_->Contents(kFirst);
  log::Sector sector;
  std::copy_n(log.begin(), sector.size(), sector.begin());
  const auto header = log::SegmentHeader::Parse(sector);
  ASSERT_TRUE(header);
  ASSERT_EQ(Write(1000, 10, 'c'), 0);
  ASSERT_EQ(store_->Finish(), 0);
  ASSERT_EQ(store_->Close(), 0);
  disk_->Add(kFirst, log);  // not all of it is in the file
  testing::internal::CaptureStderr();
  Open(&unthreaded_);
  ASSERT_EQ(Write(1000, 10, 'b'), 0);
  ASSERT_EQ(Commit(), 0);
  const std::string said = testing::internal::GetCapturedStderr();
  const std::string aside = log::AsideName(kFirst, header->id);
  EXPECT_NE(said.find(aside), std::string::npos) << said;
  EXPECT_EQ(disk_->Contents(aside), log);
  Bytes found;
  ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
  EXPECT_EQ(found[1000], std::byte{'b'});
}

// The next program sees a commit whose sync has failed. Once it has committed that, it is on storage.
TEST_F(LoggedStoreTest, WhatAFailedSyncHasLostIsWrittenAgain) {
  journal_ = Journal::kPower;
  unsigned lost = 0;
  for (unsigned i = 0; i < 20; ++i) {
    const auto disk = Changed({}, {});
    disk->Add("other", {});
    // What a failed sync stores is drawn: each time something else.
    disk->plan = [](FaultPoint point, uint64_t, uint64_t) {
      return Fault{.code = point == FaultPoint::kSync ? EIO : 0};
    };
    for (unsigned drawn = 0; drawn < i; ++drawn) {
      const std::unique_ptr<Device> other = disk->Open("other");
      ASSERT_EQ(other->Truncate(drawn), 0);
      ASSERT_EQ(other->Sync(), EIO);
    }
    disk->plan = nullptr;
    store_ = StoreOn(disk, true, &unthreaded_);
    ASSERT_TRUE(store_->Settle().ok());
    ASSERT_EQ(Write(kEnd, 1000, 'n'), 0);
    ASSERT_EQ(WriteSuperblock(), 0);
    unsigned syncs = 0;
    disk->plan = [&](FaultPoint point, uint64_t, uint64_t) {
      return Fault{.code = point == FaultPoint::kSync && ++syncs == 2 ? EIO : 0};
    };
    ASSERT_EQ(store_->Commit(Committing::kNow), EIO);
    store_.reset();
    PowerDisk::Rng random(i);
    lost += disk->AfterCut(random)->Contents(kName) != disk->Contents(kName) ? 1 : 0;
    disk->plan = nullptr;
    store_ = StoreOn(disk, true, &unthreaded_);
    ASSERT_TRUE(store_->Settle().ok());
    const Bytes seen = Contents(*store_);
    ASSERT_EQ(seen.size(), kEnd + 1000);
    ASSERT_EQ(store_->Commit(Committing::kNow), 0);
    Bytes found;
    ASSERT_TRUE(Recovered(disk->AfterCut(random), found, *this).ok());
    ASSERT_EQ(found, seen) << i;
  }
  EXPECT_GT(lost, 0u);
}

// ---- recovery

class RecoveryTest : public LoggedStoreTest {
 protected:
  // Three commits in one segment, of which the file has nothing.
  void ThreeCommits() {
    Open(&unthreaded_);
    for (const char what : {'a', 'b', 'c'}) {
      states_.push_back(committed_);
      ASSERT_EQ(Write(1000, 100, what), 0);
      ASSERT_EQ(Write(store_->size(), 50, what), 0);
      ASSERT_EQ(WriteSuperblock(), 0);
      begins_.push_back(disk_->Contents(kFirst).size());
      ASSERT_EQ(Commit(), 0);
    }
    states_.push_back(committed_);
    store_.reset();
  }

  std::vector<Bytes> states_;
  std::vector<size_t> begins_;  // of what a commit itself writes in the segment
};

TEST_F(RecoveryTest, TheLastCommitIsFoundByWhoWritesAndByWhoReads) {
  ThreeCommits();
  const auto only_read = StoreOn(disk_, false);
  const uint64_t changes = disk_->changes();
  ASSERT_TRUE(only_read->Settle().ok());
  EXPECT_EQ(Contents(*only_read), states_[3]);
  EXPECT_EQ(disk_->changes(), changes);
  tidelane::Run run;
  run.end = 1;
  EXPECT_EQ(only_read->WriteBytes(run, "x"), EBADF);
  EXPECT_EQ(only_read->SetSize(0), EBADF);
  Bytes found;
  ASSERT_TRUE(Recovered(disk_, found, *this).ok());
  EXPECT_EQ(found, states_[3]);
  EXPECT_EQ(disk_->Contents(kName), states_[3]);
  EXPECT_EQ(disk_->Names(), std::vector<std::string>{kName});
}

// Of every byte of the log that is changed, it is one commit or the other, or refused: never anything else.
TEST_F(RecoveryTest, AByteThatIsWrongMakesItATornTailOrDamage) {
  ThreeCommits();
  const Bytes log = disk_->Contents(kFirst);
  unsigned torn = 0, damaged = 0, whole = 0, unknown = 0;
  for (size_t i = 0; i < log.size(); ++i) {
    if (i >= 1600 && i < 4096) continue;  // nothing lies there
    Bytes wrong = log;
    wrong[i] ^= std::byte{4};
    const auto disk = Changed(kFirst, std::move(wrong));
    const uint64_t changes = disk->changes();
    Bytes found;
    const Status status = Recovered(disk, found, *this);
    if (status.ok()) {
      const bool last = found == states_[3];
      ASSERT_TRUE(last || found == states_[2]) << i;
      ++(last ? whole : torn);
    } else {
      ASSERT_EQ(disk->changes(), changes) << i;
      ASSERT_TRUE(status.code() == EIO || (i < 512 && status.code() == ENOENT))
          << i << status.Message();
      ++(i < 512 ? unknown : damaged);
    }
  }
  EXPECT_GT(torn, 300u);     // the last commit, and its slot
  EXPECT_GT(damaged, 300u);  // the commits before
  EXPECT_GT(whole, 512u);    // the slot of the commit before
  EXPECT_EQ(unknown, 512u);  // the header
}

TEST_F(RecoveryTest, WithoutItsLogItIsRefused) {
  ThreeCommits();
  ExpectRefused(Without(kFirst), log::kNoLog);
}

TEST_F(RecoveryTest, WithAnotherLogItIsRefused) {
  ThreeCommits();
  Bytes log = disk_->Contents(kFirst);
  log::Sector sector;
  std::copy_n(log.begin(), sector.size(), sector.begin());
  auto header = *log::SegmentHeader::Parse(sector);
  header.id += 1;
  std::ranges::copy(header.Encode(), log.begin());
  ExpectRefused(Changed(kFirst, log), log::kNoLog);
  // Of another superblock's file.
  header.id -= 1;
  header.superblock = Superblock(512, log::SuperblockOfVersion(0));
  std::ranges::copy(header.Encode(), log.begin());
  ExpectRefused(Changed(kFirst, log), log::kNoLog);
}

TEST_F(RecoveryTest, ANewerLogIsRefusedByName) {
  ThreeCommits();
  Bytes log = disk_->Contents(kFirst);
  log::Sector sector;
  std::copy_n(log.begin(), sector.size(), sector.begin());
  auto header = *log::SegmentHeader::Parse(sector);
  header.version = 2;
  std::ranges::copy(header.Encode(), log.begin());
  const auto disk = Changed(kFirst, log);
  ExpectRefused(disk, ENOTSUP);
  const auto store = StoreOn(disk, true);
  const std::string said = store->Settle().Message();
  EXPECT_NE(said.find("format 2"), std::string::npos) << said;
  EXPECT_NE(said.find("newer Tidelane"), std::string::npos) << said;
}

TEST_F(RecoveryTest, ALogThatSomebodyHoldsIsNotRecovered) {
  ThreeCommits();
  std::unique_ptr<Device> held;
  ASSERT_EQ(disk_->MakeFolder()->Open(kFirst, true, held), 0);
  const auto store = StoreOn(disk_, true);
  const uint64_t changes = disk_->changes();
  EXPECT_EQ(store->Settle().code(), EWOULDBLOCK);
  EXPECT_EQ(disk_->changes(), changes);
  held.reset();
  EXPECT_TRUE(store->Settle().ok());
  EXPECT_EQ(Contents(*store), states_[3]);
}

// While one segment waits to be moved, the other one has the commits.
class ChainTest : public RecoveryTest {
 protected:
  void TwoSegments() {
    segment_bytes_ = 4096 + 900;
    lanes_.Pause();
    Open(&lanes_);
    states_.push_back(committed_);
    ASSERT_EQ(Write(1000, 1000, 'a'), 0);
    ASSERT_EQ(WriteSuperblock(), 0);
    ASSERT_EQ(Commit(), 0);
    states_.push_back(committed_);
    EXPECT_FALSE(disk_->Has(kSecond));
    ASSERT_EQ(Write(1100, 100, 'b'), 0);
    ASSERT_EQ(Commit(), 0);
    states_.push_back(committed_);
    ASSERT_TRUE(disk_->Has(kSecond));
  }
  ~ChainTest() override {
    if (store_ != nullptr) static_cast<void>(store_->Close());
    while (lanes_.RunQueued()) {
    }
    lanes_.Resume();
  }

  Lanes lanes_{1};
};

TEST_F(ChainTest, BothAreAppliedInTheirOrder) {
  TwoSegments();
  Bytes found;
  ASSERT_TRUE(Recovered(disk_->AfterEnd(), found, *this).ok());
  EXPECT_EQ(found, states_[2]);
  const auto only_read = StoreOn(disk_, false);
  ASSERT_TRUE(only_read->Settle().ok());
  EXPECT_EQ(Contents(*only_read), states_[2]);
  // Who copies a file without all of its log has no older state of it.
  ExpectRefused(Without(kSecond), log::kNoLog);
  ExpectRefused(Without(kFirst), log::kNoLog);
}

// A segment that has a commit was named before: whatever has become of the note, it goes on.
TEST_F(ChainTest, ANoteThatIsLostHidesNoCommit) {
  TwoSegments();
  const Bytes first = disk_->Contents(kFirst);
  for (const std::byte byte : {std::byte{}, std::byte{0xa5}}) {
    Bytes rotten = first;
    std::fill_n(rotten.begin() + log::SegmentNote::kPlace, log::kSector, byte);
    const auto disk = Changed(kFirst, rotten);
    const auto only_read = StoreOn(disk, false);
    ASSERT_TRUE(only_read->Settle().ok());
    EXPECT_EQ(Contents(*only_read), states_[2]);
    Bytes found;
    ASSERT_TRUE(Recovered(disk, found, *this).ok());
    EXPECT_EQ(found, states_[2]);
    EXPECT_EQ(disk->Names(), std::vector<std::string>{kName});
  }
}

// Made, and killed or cut before the note names it: slots of the segment's life before may be there yet, and mean nothing.
TEST_F(ChainTest, ASegmentThatIsHalfMadeIsNone) {
  TwoSegments();
  Bytes first = disk_->Contents(kFirst);
  std::fill_n(first.begin() + log::SegmentNote::kPlace, log::kSector, std::byte{});
  for (const std::byte byte : {std::byte{}, std::byte{0xa5}}) {
    const auto disk = Changed(kFirst, first);
    const auto second = disk->Open(kSecond);
    const Bytes slots(2 * log::kSector, byte);
    const iovec part{const_cast<std::byte*>(slots.data()), slots.size()};
    ASSERT_EQ(second->Write(log::kSector, &part, 1), 0);
    Bytes found;
    ASSERT_TRUE(Recovered(disk, found, *this).ok());
    EXPECT_EQ(found, states_[1]);
    EXPECT_EQ(disk->Names(), std::vector<std::string>{kName});
  }
}

TEST_F(ChainTest, ASegmentThatWasMovedIsNotNeededAndIsRemoved) {
  TwoSegments();
  while (disk_->Has(kFirst) && lanes_.RunQueued()) {
    Superblock superblock;
    ASSERT_EQ(Superblock::Find(*disk_->Open(kName), superblock), 0);
    ASSERT_TRUE(superblock.marked());
    log::Sector sector;
    const Bytes second = disk_->Contents(kSecond);
    std::copy_n(second.begin(), sector.size(), sector.begin());
    if (superblock.MarkedWith(log::SegmentHeader::Parse(sector)->id)) break;
  }
  ASSERT_TRUE(disk_->Has(kFirst));
  Bytes found;
  ASSERT_TRUE(Recovered(Without(kFirst), found, *this).ok());
  EXPECT_EQ(found, states_[2]);
  const auto disk = disk_->AfterEnd();
  ASSERT_TRUE(Recovered(disk, found, *this).ok());
  EXPECT_EQ(found, states_[2]);
  EXPECT_EQ(disk->Names(), std::vector<std::string>{kName});
}

}  // namespace
}  // namespace tidelane
