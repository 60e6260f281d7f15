/// \file
/// Failing storage: every call in turn fails once. Nobody is told success for bytes that are not
/// stored, a retry succeeds, and the file is then what the program wrote.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "file/file_fixture.h"

namespace tidelane {
namespace {

using State = Completion::State;

class FileFailureTest : public ::testing::Test, protected FileBench {};

// A small session on an existing file: mark, overlapping and scattered data, a cut, growth, the
// last superblock.
struct Session {
  FileBench& bench;
  std::string model;
  unsigned told = 0;  // how many calls reported a failure

  void Put(uint64_t address, const std::string& text) {
    if (!bench.Write(address, text).ok()) {
      ++told;
      return;
    }
    if (model.size() < address + text.size()) model.resize(address + text.size(), '\0');
    model.replace(address, text.size(), text);
  }
  void Cut(uint64_t size) {
    if (!bench.file_->Truncate(size).ok()) {
      ++told;
      EXPECT_TRUE(bench.file_->Truncate(size).ok()) << "a second attempt";
    }
    model.resize(size, '\0');
  }
  void Flush() {
    if (bench.file_->Flush().ok()) {
      EXPECT_EQ(Difference(bench.Stored(), model), "") << "flush reported success";
    } else {
      ++told;
    }
  }
  // In the background a run may fail that the next flush stores at its second attempt: nothing is
  // lost, nothing is told.
  void Run(bool in_background) {
    Put(0, Superblock('m'));
    for (uint64_t i = 0; i < 8; ++i)
      Put(100 + i * 50, std::string(20 + i * 5, static_cast<char>('a' + i)));
    if (in_background) bench.RunLanes();
    Flush();
    Put(120, std::string(300, 'z'));
    if (in_background) bench.RunLanes();
    Put(130, "overwritten");
    Cut(400);
    Put(600, std::string(70'000, 'l'));
    Cut(80'000);
    Flush();
    Put(0, Superblock('c'));
    Put(390, "tail");
    Flush();
  }
};

// Returns how many calls storage saw before the session outran the failing one.
unsigned FailEachCallInTurn(Fault fault, bool in_background) {
  for (unsigned failing = 1;; ++failing) {
    SCOPED_TRACE("call " + std::to_string(failing) + " fails after " +
                 std::to_string(fault.written_first));
    FileBench bench;
    bench.Open(Superblock('o') + std::string(500, 'o'));
    unsigned call = 0;
    bench.plan_ = [&](FaultPoint point, uint64_t, uint64_t) {
      return point != FaultPoint::kRead && ++call == failing ? fault : Fault{};
    };
    Session session{bench, bench.Stored()};
    session.Run(in_background);
    const bool failed = call >= failing;
    if (in_background) {
      EXPECT_TRUE(failed || session.told == 0);
    } else {
      EXPECT_EQ(session.told, failed ? 1u : 0u) << "a failure is told once, and nothing else is";
    }
    EXPECT_TRUE(bench.file_->Flush().ok());
    EXPECT_EQ(Difference(bench.Stored(), session.model), "");
    EXPECT_EQ(bench.file_->eof(), session.model.size());
    if (!failed || ::testing::Test::HasFailure()) return failing - 1;
  }
}

TEST_F(FileFailureTest, EveryWriteAndTruncationMayFailOnce) {
  for (const Fault fault :
       {Fault{ENOSPC, 0}, Fault{EIO, 0}, Fault{ENOSPC, 7}, Fault{EDQUOT, 1u << 30}}) {
    for (const bool in_background : {false, true}) {
      EXPECT_GE(FailEachCallInTurn(fault, in_background), 8u)
          << "the session must make calls for this to mean anything";
    }
  }
}

TEST_F(FileFailureTest, StorageThatStaysFullFailsEveryFlushAndForgetsNothing) {
  Open();
  FailingWrites faults(*this, ENOSPC, 3);
  ASSERT_TRUE(Write(0, "first").ok());
  EXPECT_EQ(file_->Flush().code(), ENOSPC);
  EXPECT_EQ(file_->Flush().code(), ENOSPC)
      << "a second flush must not report success over lost bytes";
  ASSERT_TRUE(Write(100, "second").ok());
  EXPECT_EQ(file_->Flush().code(), ENOSPC);
  EXPECT_EQ(Read(0, 5), "first");
  EXPECT_FALSE(file_->drainer().drained());
  faults.failing = false;
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Stored().substr(0, 5), "first");
  EXPECT_EQ(Stored().substr(100), "second");
}

// The wait for room took what lingered for work under way: each write waited for as long as the file had patience.
TEST_F(FileFailureTest, AnArenaFullOfFailedBytesDoesNotWaitForWhatLingers) {
  FileBench bench(1, 64 << 10);
  bench.config_.linger_us = 10'000'000;
  bench.Open();
  FailingWrites faults(bench);
  const auto begin = std::chrono::steady_clock::now();
  unsigned refused = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    refused += bench.Write(i * 10'000, std::string(1000, 'x')).code() == ENOSPC ? 1 : 0;
  }
  EXPECT_GT(refused, 0u) << "there was room for everything";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(9));
  faults.failing = false;
  EXPECT_TRUE(bench.file_->Flush().ok());
}

TEST_F(FileFailureTest, AFailureBelongsToTheRequestsWhoseBytesFailed) {
  Open();
  plan_ = [](FaultPoint point, uint64_t address, uint64_t) {
    return point == FaultPoint::kWrite && address == 0 ? Fault{EIO, 0} : Fault{};
  };
  std::vector<std::shared_ptr<Completion>> requests;
  for (uint64_t i = 0; i < 3; ++i) {
    CallScope scope(CallScope::kNone, true);
    ASSERT_TRUE(Write(i << 21, "data").ok());
    requests.push_back(scope.TakeCompletion());
  }
  EXPECT_EQ(requests[2]->Wait(UINT64_MAX), State::kDone);
  EXPECT_EQ(requests[1]->Wait(UINT64_MAX), State::kDone);
  EXPECT_EQ(requests[0]->Wait(UINT64_MAX), State::kFailed);
  EXPECT_EQ(requests[0]->error().code(), EIO);
  EXPECT_NE(requests[0]->error().Message().find("memory.h5"), std::string::npos);
  plan_ = nullptr;
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(requests[0]->Poll(), State::kFailed) << "what was reported stays reported";
  EXPECT_EQ(Stored().substr(0, 4), "data");
}

TEST_F(FileFailureTest, AFailureReachesTheRequestWhoseBytesWereReplaced) {
  Open();
  FailingWrites faults(*this);
  std::shared_ptr<Completion> older;
  {
    CallScope scope(CallScope::kNone, true);
    ASSERT_TRUE(Write(0, "aaaa").ok());
    older = scope.TakeCompletion();
  }
  ASSERT_TRUE(Write(0, "bbbb").ok());
  EXPECT_EQ(older->Wait(UINT64_MAX), State::kFailed) << "neither version of its bytes is stored";
}

// Its overwriter belonged to an epoch that had failed elsewhere already: the request waited for
// ever.
TEST_F(FileFailureTest, ARequestReplacedByACallThatAlreadyFailedDoesNotHang) {
  Open();
  plan_ = [](FaultPoint point, uint64_t address, uint64_t) {
    return point == FaultPoint::kWrite && address == 1000 ? Fault{EIO, 0} : Fault{};
  };
  CallScope first(CallScope::kNone, true);
  ASSERT_TRUE(Write(0, "aaaa").ok());
  const auto older = first.TakeCompletion();
  CallScope second(CallScope::kNone, true);
  ASSERT_TRUE(Write(1000, "fails").ok());
  for (int i = 0; i < 2; ++i) lanes_.RunQueued();  // 0 and 1000
  ASSERT_TRUE(Write(0, "bbbb").ok());
  CallScope third(CallScope::kNone, true);
  ASSERT_TRUE(Write(0, "cccc").ok());
  const auto replaced = second.TakeCompletion();
  EXPECT_EQ(older->Wait(2'000'000'000), State::kDone);
  EXPECT_EQ(replaced->Wait(2'000'000'000), State::kFailed);
}

TEST_F(FileFailureTest, ADeferredFlushThatFailsFailsItsBarrierAndTheNextFlushRetries) {
  Open();
  FailingWrites faults(*this);
  ASSERT_TRUE(Write(0, "data").ok());
  CallScope scope(CallScope::kFlushMayReturnEarly, true);
  ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
  const auto first = scope.TakeCompletion();
  EXPECT_EQ(first->Wait(UINT64_MAX), State::kFailed);
  faults.failing = false;
  CallScope again(CallScope::kFlushMayReturnEarly, true);
  ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
  const auto second = again.TakeCompletion();
  EXPECT_EQ(second->Wait(UINT64_MAX), State::kDone);
  EXPECT_EQ(Stored(), "data");
}

TEST_F(FileFailureTest, ExtendingTheFileMayFailAndIsRetried) {
  Open();
  bool failing = true;
  plan_ = [&](FaultPoint point, uint64_t, uint64_t) {
    return failing && point == FaultPoint::kTruncate ? Fault{EFBIG, 0} : Fault{};
  };
  ASSERT_TRUE(Write(0, "data").ok());
  ASSERT_TRUE(file_->Truncate(1000).ok());
  {
    CallScope scope(CallScope::kFlushMayReturnEarly, true);
    ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
    EXPECT_EQ(scope.TakeCompletion()->Wait(UINT64_MAX), State::kFailed);
  }
  EXPECT_EQ(file_->Flush().code(), EFBIG);
  failing = false;
  EXPECT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Stored().size(), 1000u);
}

// It was made longer by a write, or cut again: the failure is over, and fails no request any more.
TEST_F(FileFailureTest, AnExtensionThatIsNoLongerNeededFailsNoClose) {
  for (const bool cut : {true, false}) {
    Open();
    plan_ = [](FaultPoint point, uint64_t, uint64_t size) {
      return point == FaultPoint::kTruncate && size == 1000 ? Fault{EFBIG, 0} : Fault{};
    };
    ASSERT_TRUE(Write(0, "data").ok());
    ASSERT_TRUE(file_->Truncate(1000).ok());
    EXPECT_EQ(file_->Flush().code(), EFBIG);
    if (cut) {
      ASSERT_TRUE(file_->Truncate(4).ok());
    } else {
      ASSERT_TRUE(Write(996, "tail").ok());
      file_->Start();
      RunLanes();
      ASSERT_TRUE(file_->drainer().drained());
    }
    CallScope scope(CallScope::kCloseMayBeDeferred, true);
    file_->closing().Begin(
        [](const std::shared_ptr<File>& file) { EXPECT_TRUE(file->closing().CloseDevice().ok()); },
        InProgress());
    const auto request = scope.TakeCompletion();
    ASSERT_NE(request, nullptr);
    EXPECT_EQ(request->Wait(UINT64_MAX), State::kDone);
    EXPECT_TRUE(file_->closing().WaitClosed(Wait::kOpen).ok());
    EXPECT_EQ(Stored().size(), cut ? 4u : 1000u);
    storage_->bytes.clear();
  }
}

// Bytes written after the flush failed; its own were stored, but the file could not be extended any more: it waited for ever.
TEST_F(FileFailureTest, ABarrierWhoseTruncationIsHeldBackByALaterFailureFails) {
  Open();
  plan_ = [](FaultPoint point, uint64_t address, uint64_t) {
    return point == FaultPoint::kWrite && address == 500 ? Fault{EIO, 0} : Fault{};
  };
  ASSERT_TRUE(file_->Truncate(1000).ok());
  std::shared_ptr<Completion> barrier;
  {
    CallScope scope(CallScope::kFlushMayReturnEarly, true);
    ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
    barrier = scope.TakeCompletion();
  }
  ASSERT_TRUE(Write(500, "fails").ok());
  EXPECT_EQ(barrier->Wait(2'000'000'000), State::kFailed);
  plan_ = nullptr;
  EXPECT_TRUE(file_->Flush().ok());
}

TEST_F(FileFailureTest, CuttingTheFileMayFailAndIsTriedAgain) {
  Open(std::string(100, 'o'));
  bool failing = true;
  plan_ = [&](FaultPoint point, uint64_t, uint64_t) {
    return failing && point == FaultPoint::kTruncate ? Fault{EIO, 0} : Fault{};
  };
  EXPECT_EQ(file_->Truncate(50).code(), EIO);
  EXPECT_EQ(file_->eof(), 100u);
  failing = false;
  EXPECT_TRUE(file_->Truncate(50).ok());
  EXPECT_EQ(Stored().size(), 50u);
}

// What the failed write had put behind the end stayed there and came back as data when the file
// grew again.
TEST_F(FileFailureTest, TheTailOfAFailedWriteIsCutWithTheRest) {
  Open(std::string(100, 'o'));
  FailingWrites faults(*this, ENOSPC, 50);
  ASSERT_TRUE(Write(100, std::string(80, 'x')).ok());
  EXPECT_FALSE(file_->Flush().ok());
  EXPECT_EQ(Stored().size(), 150u);
  faults.failing = false;
  ASSERT_TRUE(file_->Truncate(100).ok());
  EXPECT_EQ(Stored().size(), 100u);
  ASSERT_TRUE(file_->Truncate(160).ok());
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Stored(), std::string(100, 'o') + std::string(60, '\0'));
}

// A write-through dropped what was queued under it before it knew that it would succeed.
TEST_F(FileFailureTest, AFailedWriteThroughLeavesTheOlderBytes) {
  Open(std::string(10, 'o'));
  FailingWrites faults(*this);
  ASSERT_TRUE(Write(2, "aaaa").ok());
  EXPECT_FALSE(file_->WriteThrough(Fallback::kModeSync).ok());
  EXPECT_FALSE(Write(3, "bb").ok());
  EXPECT_EQ(Read(0, 10), "ooaaaaoooo");
  faults.failing = false;
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Stored(), "ooaaaaoooo");
}

TEST_F(FileFailureTest, AFailedWriteThroughIsNotReadFromACachedBlock) {
  config_.read_ahead = Toggle::kOn;
  Open(std::string(100, 'o'));
  ASSERT_TRUE(file_->Lock(true).ok());
  EXPECT_EQ(Read(0, 4, false), "oooo");
  ASSERT_TRUE(file_->WriteThrough(Fallback::kModeSync).ok());
  FailingWrites faults(*this);
  EXPECT_FALSE(Write(0, "bbbb").ok());
  EXPECT_EQ(Read(0, 4, false), "oooo");
}

// It came back into the queue above the end while the truncation waited for it, and made the file
// longer again.
TEST_F(FileFailureTest, ARunThatFailsWhileItsAddressesAreCutStaysCut) {
  FileBench bench(1);
  bench.Open(std::string(100, 'o'));
  std::atomic<bool> writing{false};
  std::atomic<bool> go_on{false};
  bench.plan_ = [&](FaultPoint point, uint64_t, uint64_t) {
    if (point != FaultPoint::kWrite || writing.exchange(true)) return Fault{};
    while (!go_on) std::this_thread::yield();
    return Fault{EIO, 0};
  };
  ASSERT_TRUE(bench.Write(100, std::string(50, 'x')).ok());
  {
    CallScope scope(CallScope::kFlushMayReturnEarly, true);
    ASSERT_TRUE(bench.file_->Flush(false, InProgress()).ok());
  }
  while (!writing) std::this_thread::yield();
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    go_on = true;
  });
  EXPECT_TRUE(bench.file_->Truncate(80).ok());
  later.join();
  EXPECT_TRUE(bench.file_->Flush().ok());
  EXPECT_EQ(bench.Stored(), std::string(80, 'o'));
}

TEST_F(FileFailureTest, AReadThatFailsSaysSoAndLosesNoSlab) {
  Open(std::string(100, 'o'));
  ASSERT_TRUE(Write(10, "pending").ok());
  bool failing = true;
  plan_ = [&](FaultPoint point, uint64_t, uint64_t) {
    return failing && point == FaultPoint::kRead ? Fault{EIO, 0} : Fault{};
  };
  std::string buffer(100, '?');
  EXPECT_EQ(file_->Read(0, 100, buffer.data(), true).code(), EIO);
  EXPECT_EQ(file_->Read(10, 7, buffer.data(), true).code(), 0) << "nothing of it is on storage";
  failing = false;
  EXPECT_EQ(Read(8, 4), "oope");
  ASSERT_TRUE(file_->Flush().ok());
  file_.reset();
  RunLanes();
  EXPECT_EQ(arena_.in_use(), 0u);
}

TEST_F(FileFailureTest, AGapThatCannotBeReadFailsTheRunAndTheRetrySucceeds) {
  Open(std::string(1000, 'o'));
  ASSERT_TRUE(file_->Lock(true).ok());
  bool failing = true;
  plan_ = [&](FaultPoint point, uint64_t, uint64_t) {
    return failing && point == FaultPoint::kRead ? Fault{EIO, 0} : Fault{};
  };
  const OneDataset dataset;
  for (const uint64_t at : {100, 200, 300}) ASSERT_TRUE(Write(at, "n").ok());
  EXPECT_EQ(file_->Flush().code(), EIO);
  failing = false;
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Stored()[200], 'n');
}

TEST_F(FileFailureTest, ACloseThatFailsIsReportedToWhoeverWaits) {
  Open();
  plan_ = [](FaultPoint point, uint64_t, uint64_t) {
    return point == FaultPoint::kClose ? Fault{EDQUOT, 0} : Fault{};
  };
  ASSERT_TRUE(Write(0, "data").ok());
  CallScope scope(CallScope::kCloseMayBeDeferred, true);
  file_->closing().Begin(
      [](const std::shared_ptr<File>& file) { EXPECT_FALSE(file->closing().CloseDevice().ok()); },
      InProgress());
  const auto request = scope.TakeCompletion();
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->Wait(UINT64_MAX), State::kFailed);
  EXPECT_EQ(request->error().code(), EDQUOT);
  EXPECT_EQ(file_->closing().WaitClosed(Wait::kOpen).code(), EDQUOT);
}

TEST_F(FileFailureTest, ADeferredCloseThatCannotBeStoredKeepsTheFileUntilARetry) {
  Open();
  FailingWrites faults(*this);
  ASSERT_TRUE(Write(0, "data").ok());
  unsigned finished = 0;
  file_->closing().Begin([&](const std::shared_ptr<File>& file) {
    ++finished;
    EXPECT_TRUE(file->closing().CloseDevice().ok());
  });
  EXPECT_EQ(file_->closing().WaitClosed(Wait::kOpen).code(), ENOSPC);
  EXPECT_EQ(finished, 0u);
  faults.failing = false;
  EXPECT_TRUE(file_->closing().WaitClosed(Wait::kOpen).ok());
  EXPECT_EQ(finished, 1u);
  EXPECT_EQ(Stored(), "data");
}

TEST_F(FileFailureTest, ARefusalSaysNothingAboutSpeed) {
  Open();
  FailingWrites faults(*this);
  ASSERT_TRUE(Write(0, std::string(3u << 20, 'a')).ok());
  RunLanes();  // refused at once, which is not how storage stores
  EXPECT_TRUE(Write(4u << 20, std::string(100'000, 'b')).ok()) << "captured";
  faults.failing = false;
  EXPECT_TRUE(file_->Flush().ok());
}

}  // namespace
}  // namespace tidelane
