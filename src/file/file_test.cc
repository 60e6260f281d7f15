/// \file
/// One file's pipeline as the program sees it: what is captured, read, cut, flushed and waited for.
#include "file/file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "base/counters.h"
#include "base/fresh_file.h"
#include "file/file_fixture.h"
#include "ranks/dirty_range_table.h"

namespace tidelane {
namespace {

using State = Completion::State;

constexpr uint64_t kForEver = UINT64_MAX;

class FileTest : public ::testing::Test, protected FileBench {};

TEST_F(FileTest, AWriteReturnsBeforeStorageHasItAndAReadSeesIt) {
  Open("0123456789");
  std::string buffer = "abc";
  ASSERT_TRUE(file_->Write(2, 3, buffer.data()).ok());
  buffer = "xxx";  // the program may reuse its bytes at once
  EXPECT_EQ(Stored(), "0123456789");
  EXPECT_EQ(Read(0, 10), "01abc56789");
  EXPECT_EQ(Read(3, 1), "b");
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Stored(), "01abc56789");
  EXPECT_TRUE(file_->drainer().drained());
}

TEST_F(FileTest, TheEndOfTheFileIsAtOnceWhereItWillBe) {
  Open();
  EXPECT_EQ(file_->eof(), 0u);
  ASSERT_TRUE(Write(5, "abc").ok());
  EXPECT_EQ(file_->eof(), 8u);
  ASSERT_TRUE(file_->Truncate(20).ok());
  EXPECT_EQ(file_->eof(), 20u);
  EXPECT_EQ(Stored(), "");
  EXPECT_EQ(Read(0, 20), std::string("\0\0\0\0\0abc\0\0\0\0\0\0\0\0\0\0\0\0", 20));
  ASSERT_TRUE(file_->Truncate(6).ok());
  EXPECT_EQ(file_->eof(), 6u);
  EXPECT_EQ(Read(4, 3), std::string("\0a\0", 3));
  ASSERT_TRUE(file_->Truncate(9).ok());
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Stored(), std::string("\0\0\0\0\0a\0\0\0", 9));
}

TEST_F(FileTest, NeighboursGoOutAsOneRequest) {
  Open();
  for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(Write(i * 10, "0123456789").ok());
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{FaultPoint::kWrite, 0, 1000}}));
}

TEST_F(FileTest, CuttingIsAtOnceAndGrowingComesLast) {
  Open(std::string(100, 'o'));
  ASSERT_TRUE(Write(80, std::string(40, 'n')).ok());
  ASSERT_TRUE(file_->Truncate(50).ok());
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{FaultPoint::kTruncate, 0, 50}}));
  ASSERT_TRUE(Write(60, "nn").ok());
  ASSERT_TRUE(file_->Truncate(90).ok());
  EXPECT_TRUE(TakeChanges().empty());
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(TakeChanges(),
            (std::vector<Call>{{FaultPoint::kWrite, 60, 2}, {FaultPoint::kTruncate, 0, 90}}));
  EXPECT_EQ(Stored(), std::string(50, 'o') + std::string(10, '\0') + "nn" + std::string(28, '\0'));
}

TEST_F(FileTest, FlushReturnsEarlyOnlyWithPermission) {
  Open();
  ASSERT_TRUE(Write(0, "abc").ok());
  {
    CallScope scope(CallScope::kFlushMayReturnEarly);
    ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
    EXPECT_EQ(Stored(), "");
  }
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Stored(), "abc");
}

TEST_F(FileTest, ARequestWaitsForItsOwnBytesAndABarrierForAllOlder) {
  Open();
  ASSERT_TRUE(Write(0, "older").ok());
  std::shared_ptr<Completion> own;
  std::shared_ptr<Completion> barrier;
  {
    CallScope scope(CallScope::kNone, true);
    ASSERT_TRUE(Write(1u << 21, "mine").ok());
    own = scope.TakeCompletion();
  }
  {
    CallScope scope(CallScope::kFlushMayReturnEarly, true);
    ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
    barrier = scope.TakeCompletion();
  }
  ASSERT_NE(own, nullptr);
  ASSERT_NE(barrier, nullptr);
  EXPECT_EQ(own->Poll(), State::kPending);
  EXPECT_EQ(barrier->Poll(), State::kPending);
  EXPECT_EQ(own->Wait(kForEver), State::kDone);
  EXPECT_EQ(Stored().substr(1u << 21), "mine");
  EXPECT_EQ(barrier->Wait(kForEver), State::kDone);
  EXPECT_EQ(Stored().substr(0, 5), "older");
  EXPECT_EQ(own->Poll(), State::kDone);
  EXPECT_TRUE(own->error().ok());
}

TEST_F(FileTest, ACallThatCapturedNothingHasNothingToWaitFor) {
  Open("abc");
  CallScope scope(CallScope::kFlushMayReturnEarly, true);
  EXPECT_EQ(Read(0, 3), "abc");
  ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
  EXPECT_EQ(scope.TakeCompletion(), nullptr);
}

TEST_F(FileTest, ABarrierWaitsForTheTruncationToo) {
  Open();
  ASSERT_TRUE(file_->Truncate(100).ok());
  CallScope scope(CallScope::kFlushMayReturnEarly, true);
  ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
  const auto barrier = scope.TakeCompletion();
  ASSERT_NE(barrier, nullptr);
  EXPECT_EQ(barrier->Poll(), State::kPending);
  EXPECT_EQ(barrier->Wait(kForEver), State::kDone);
  EXPECT_EQ(Stored().size(), 100u);
}

TEST_F(FileTest, ARequestWhoseBytesWereReplacedWaitsForTheNewerOnes) {
  Open();
  std::shared_ptr<Completion> first;
  {
    CallScope scope(CallScope::kNone, true);
    ASSERT_TRUE(Write(0, "aaaa").ok());
    first = scope.TakeCompletion();
  }
  ASSERT_TRUE(Write(0, "bbbb").ok());
  EXPECT_EQ(first->Poll(), State::kPending);
  EXPECT_EQ(first->Wait(kForEver), State::kDone);
  EXPECT_EQ(Stored(), "bbbb");
}

TEST_F(FileTest, AnIdleFileStoresSmallWritesAfterLingering) {
  FileBench bench(1);
  bench.Open();
  ASSERT_TRUE(bench.Write(0, "abc").ok());
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!bench.file_->drainer().drained() && std::chrono::steady_clock::now() < late)
    std::this_thread::yield();
  EXPECT_TRUE(bench.file_->drainer().drained());
  EXPECT_EQ(bench.Stored(), "abc");
}

TEST_F(FileTest, WriteThroughWritesInOrderAndKeepsNothingBack) {
  Open();
  ASSERT_TRUE(Write(0, "aaaa").ok());
  ASSERT_TRUE(file_->WriteThrough(Fallback::kSwmrWrite).ok());
  EXPECT_EQ(Stored(), "aaaa");
  ASSERT_TRUE(Write(2, "bbbb").ok());
  EXPECT_EQ(Stored(), "aabbbb");
  EXPECT_EQ(file_->eof(), 6u);
  ASSERT_TRUE(Write(1, "c").ok());
  EXPECT_EQ(Stored(), "acbbbb");
  EXPECT_EQ(TakeChanges().size(), 3u);
}

TEST_F(FileTest, AHandedOutDescriptorFindsEverythingStored) {
  Open();
  ASSERT_TRUE(Write(0, "aaaa").ok());
  int* descriptor = nullptr;
  ASSERT_TRUE(file_->Descriptor(descriptor, InProgress()).ok());
  EXPECT_EQ(Stored(), "") << "HDF5's own question changes nothing";
  CallScope scope(CallScope::kHandOutDescriptor);
  ASSERT_TRUE(file_->Descriptor(descriptor, InProgress()).ok());
  EXPECT_EQ(Stored(), "aaaa");
  ASSERT_TRUE(Write(0, "b").ok());
  EXPECT_EQ(Stored(), "baaa");
}

TEST_F(FileTest, AFullArenaPushesBackAndLosesNothing) {
  FileBench bench(2, 256 * 1024);
  bench.Open();
  std::string expected;
  for (unsigned i = 0; i < 64; ++i) {
    const std::string block(100'000 + i, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(bench.Write(expected.size(), block).ok());
    expected += block;
  }
  EXPECT_LE(bench.arena_.in_use(), bench.arena_.cap());
  EXPECT_EQ(Difference(bench.Read(0, expected.size()), expected), "");
  ASSERT_TRUE(bench.file_->Flush().ok());
  EXPECT_EQ(Difference(bench.Stored(), expected), "");
}

TEST_F(FileTest, AFullArenaThatNobodyCanEmptyIsWrittenAround) {
  FileBench bench(0, 256 * 1024);
  bench.Open();
  FailingWrites faults(bench);
  const std::string lost(200'000, 'l');
  ASSERT_TRUE(bench.Write(0, lost).ok());
  EXPECT_FALSE(bench.file_->Flush().ok());
  faults.failing = false;
  const uint64_t before = tidelane::Read(Fallback::kArenaFull);
  const std::string next(300'000, 'n');
  ASSERT_TRUE(bench.Write(200'000, next).ok());
  EXPECT_GT(tidelane::Read(Fallback::kArenaFull), before);
  EXPECT_EQ(Difference(bench.Read(0, 500'000), lost + next), "");
  ASSERT_TRUE(bench.file_->Flush().ok());
  EXPECT_EQ(Difference(bench.Stored(), lost + next), "");
}

TEST_F(FileTest, GapsAreFilledOnlyUnderAnExclusiveLock) {
  for (const bool exclusive : {false, true}) {
    FileBench bench;
    bench.Open(std::string(1000, 'o'));
    ASSERT_TRUE(bench.file_->Lock(exclusive).ok());
    const OneDataset dataset;
    for (uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(bench.Write(i * 100 + 50, "n").ok());
    ASSERT_TRUE(bench.file_->Flush().ok());
    EXPECT_EQ(bench.TakeChanges().size(), exclusive ? 1u : 10u);
    std::string expected(1000, 'o');
    for (size_t i = 0; i < 10; ++i) expected[i * 100 + 50] = 'n';
    EXPECT_EQ(Difference(bench.Stored(), expected), "");
  }
}

// A writer past our lock lost what it wrote there: natively only what lies between elements of one dataset is read and written
// again.
TEST_F(FileTest, GapsAreFilledOnlyInsideADatasetOrAChunk) {
  FileBench bench;
  bench.Open(std::string(1000, 'o'));
  ASSERT_TRUE(bench.file_->Lock(true).ok());
  const auto writes_of_ten = [&] {
    for (uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(bench.Write(i * 100 + 50, "n").ok());
    EXPECT_TRUE(bench.file_->Flush().ok());
    return bench.TakeChanges().size();
  };
  EXPECT_EQ(writes_of_ten(), 10u) << "nothing is known of it";
  ElementPlaces places;
  places.Add({500, 1000});
  places.Add({20, 500});
  places.Sort();
  const ElementsIn elements(&places);
  EXPECT_EQ(writes_of_ten(), 2u) << "two places of five";
  const ElementsIn metadata(nullptr);
  EXPECT_EQ(writes_of_ten(), 10u);
}

// Until a superblock on storage tells of it, no other program reaches what lies behind the end of the file as it was.
TEST_F(FileTest, GapsAreFilledWhereNoSuperblockTellsOfThem) {
  FileBench bench;
  bench.Open(Superblock('o', 1000) + std::string(1000, 'o'));
  ASSERT_TRUE(bench.file_->Lock(true).ok());
  const auto writes_behind = [&](uint64_t begin) {
    for (uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(bench.Write(begin + i * 100, "n").ok());
    EXPECT_TRUE(bench.file_->Flush().ok());
    return bench.TakeChanges().size();
  };
  EXPECT_EQ(writes_behind(3000), 1u);
  EXPECT_EQ(writes_behind(3000), 1u) << "again: storage has it, its superblock tells of less";
  ASSERT_TRUE(bench.Write(0, Superblock('n', 3500)).ok());
  ASSERT_TRUE(bench.file_->Flush().ok());
  bench.TakeChanges();
  EXPECT_EQ(writes_behind(3000), 6u) << "five before its end, and the rest";
}

// A gap was read while the program wrote through into it: the lane put the old bytes back.
TEST_F(FileTest, ADirectWriteIntoAGapThatIsBeingFilledIsNotUndone) {
  FileBench bench(1);
  bench.config_.linger_us = 60'000'000;  // on a busy machine, too, the three writes go out together
  bench.Open(std::string(1000, 'o'));
  ASSERT_TRUE(bench.file_->Lock(true).ok());
  std::atomic<bool> reading{false};
  std::atomic<bool> go_on{false};
  bench.plan_ = [&](FaultPoint point, uint64_t, uint64_t) {
    if (point == FaultPoint::kRead) {
      reading = true;
      while (!go_on) std::this_thread::yield();
    }
    return Fault{};
  };
  {
    const OneDataset dataset;
    for (const uint64_t at : {10, 100, 200}) ASSERT_TRUE(bench.Write(at, "n").ok());
  }
  {
    CallScope scope(CallScope::kFlushMayReturnEarly, true);
    ASSERT_TRUE(bench.file_->Flush(false, InProgress()).ok());
  }
  while (!reading) std::this_thread::yield();
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    go_on = true;
  });
  ASSERT_TRUE(bench.file_->WriteThrough(Fallback::kModeSync).ok());
  ASSERT_TRUE(bench.Write(50, "d").ok());
  later.join();
  EXPECT_EQ(bench.Stored()[50], 'd');
  EXPECT_EQ(bench.Stored()[100], 'n');
}

TEST_F(FileTest, ReadAheadFollowsEveryWriteAndCut) {
  config_.read_ahead = Toggle::kOn;
  Open(std::string(100'000, 'o'));
  ASSERT_TRUE(file_->Lock(true).ok());
  EXPECT_EQ(Read(10, 3, false), "ooo");
  const uint64_t reads = tidelane::Read(Counter::kStorageReads);
  ASSERT_TRUE(Write(11, "n").ok());
  EXPECT_EQ(Read(10, 3, false), "ono");
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Read(10, 3, false), "ono");
  EXPECT_EQ(tidelane::Read(Counter::kStorageReads), reads) << "all from the block";
  ASSERT_TRUE(file_->Truncate(12).ok());
  ASSERT_TRUE(file_->Truncate(100).ok());
  EXPECT_EQ(Read(10, 4, false), std::string("on\0\0", 4));
  ASSERT_TRUE(file_->Unlock().ok());
  storage_->bytes[10] = std::byte{'x'};  // another process, now that it may
  EXPECT_EQ(Read(10, 2, false), "xn");
}

TEST_F(FileTest, UnlockWaitsForTheBytes) {
  Open();
  ASSERT_TRUE(file_->Lock(true).ok());
  ASSERT_TRUE(Write(0, "abc").ok());
  EXPECT_TRUE(storage_->exclusive_lock);
  ASSERT_TRUE(file_->Unlock().ok());
  EXPECT_EQ(Stored(), "abc");
  EXPECT_FALSE(storage_->exclusive_lock);
}

TEST_F(FileTest, ADeferredCloseKeepsTheLockUntilTheBytesAreStored) {
  Open();
  ASSERT_TRUE(file_->Lock(true).ok());
  ASSERT_TRUE(Write(0, "abc").ok());
  unsigned finished = 0;
  {
    CallScope scope(CallScope::kCloseMayBeDeferred);
    ASSERT_TRUE(file_->Unlock(InProgress()).ok());
    file_->closing().Begin(
        [&](const std::shared_ptr<File>& file) {
          ++finished;
          EXPECT_TRUE(file->closing().CloseDevice().ok());
        },
        InProgress());
  }
  EXPECT_TRUE(storage_->exclusive_lock);
  EXPECT_EQ(finished, 0u);
  EXPECT_TRUE(file_->closing().WaitClosed(Wait::kOpen).ok());
  EXPECT_EQ(finished, 1u);
  EXPECT_EQ(Stored(), "abc");
  EXPECT_FALSE(storage_->exclusive_lock);
  EXPECT_FALSE(file_->closing().Adopt()) << "too late";
}

TEST_F(FileTest, AnAdoptedFileGoesOnWithItsBytesAndIsNotClosed) {
  Open();
  ASSERT_TRUE(Write(0, "abc").ok());
  unsigned finished = 0;
  file_->closing().Begin([&](const std::shared_ptr<File>&) { ++finished; });
  ASSERT_TRUE(file_->closing().Adopt());
  EXPECT_EQ(Read(0, 3), "abc");
  ASSERT_TRUE(Write(3, "def").ok());
  ASSERT_TRUE(file_->Flush().ok());
  RunLanes();
  EXPECT_EQ(Stored(), "abcdef");
  EXPECT_EQ(finished, 0u);
}

TEST_F(FileTest, AFileThatAnotherProcessCutShortIsReportedAtClose) {
  Open();
  ASSERT_TRUE(Write(0, "abcdef").ok());
  ASSERT_TRUE(file_->Flush().ok());
  storage_->bytes.resize(3);
  const Status status = file_->closing().CloseDevice();
  EXPECT_EQ(status.code(), EIO);
  EXPECT_NE(status.Message().find("cut the file short"), std::string::npos) << status.Message();
}

TEST_F(FileTest, AReadLockOnAnAdoptedFileComesWhenTheBytesAreStored) {
  Open();
  ASSERT_TRUE(file_->Lock(true).ok());
  ASSERT_TRUE(Write(0, "abc").ok());
  file_->closing().Begin([](const std::shared_ptr<File>&) {});
  ASSERT_TRUE(file_->closing().Adopt());
  ASSERT_TRUE(file_->Lock(false).ok());
  EXPECT_TRUE(storage_->exclusive_lock);
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_FALSE(storage_->exclusive_lock);
  EXPECT_EQ(storage_->shared_locks, 1u);
}

TEST_F(FileTest, WhatAProcessHeldThatHasEndedIsSaidToBeLost) {
  Open();
  const FileIdentity shared{RandomBits(), RandomBits()};
  file_->SetDirtyRanges(DirtyRangeTable::Join(shared, 0));
  const pid_t other = fork();
  if (other == 0) {
    const auto table = DirtyRangeTable::Join(shared, 1);
    if (table != nullptr) table->Extend(0, 10);
    _exit(table == nullptr ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  ASSERT_EQ(status, 0);
  const auto said = [&](uint64_t address) {
    testing::internal::CaptureStderr();
    file_->AwaitOthers(address, 5);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(10), "");
  EXPECT_EQ(said(5),
            "tidelane: memory.h5: a process ended before it had stored what it wrote there\n");
  EXPECT_EQ(said(0), "") << "it is said once";
}

}  // namespace
}  // namespace tidelane
