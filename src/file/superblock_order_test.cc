/// \file
/// The one structure whose write has an order of its own: what storage saw first and what it saw
/// last.
#include <cerrno>
#include <string>

#include "file/file_fixture.h"
#include "store/superblock.h"

namespace tidelane {
namespace {

using State = Completion::State;

constexpr FaultPoint kWrite = FaultPoint::kWrite;
constexpr FaultPoint kTruncate = FaultPoint::kTruncate;

class SuperblockOrderTest : public ::testing::Test, protected FileBench {};

TEST(SuperblockTest, IsRecognisedBySignatureAndMeasuredByVersion) {
  const std::string v3 = Superblock('x');
  EXPECT_EQ(SuperblockSize(v3.data(), v3.size()), 48u);
  EXPECT_EQ(SuperblockSize(v3.data(), 15), 0u) << "too short to tell";
  std::string v0("\x89HDF\r\n\x1a\n\0\0\0\0\0\10\10\0", 16);
  EXPECT_EQ(SuperblockSize(v0.data(), v0.size()), 96u);
  v0[8] = 1;
  EXPECT_EQ(SuperblockSize(v0.data(), v0.size()), 100u);
  v0[13] = 4;
  EXPECT_EQ(SuperblockSize(v0.data(), v0.size()), 76u);
  v0[1] = 'h';
  EXPECT_EQ(SuperblockSize(v0.data(), v0.size()), 0u);
}

TEST_F(SuperblockOrderTest, ANewFilesSuperblockComesAfterExtentsAndTruncation) {
  Open();
  ASSERT_TRUE(file_->Lock(true).ok());
  ASSERT_TRUE(Write(0, Superblock('a')).ok());
  ASSERT_TRUE(Write(48, std::string(100, 'm')).ok());
  ASSERT_TRUE(Write(1000, "data").ok());
  ASSERT_TRUE(file_->Truncate(2048).ok());
  RunLanes();
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 48, 100}, {kWrite, 1000, 4}}))
      << "lingering ends, but nobody asked for a drain";
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kTruncate, 0, 2048}, {kWrite, 0, 48}}));
}

// Where files are not locked the mark is all that keeps a second writer out: it came with the first flush, and who opened
// the file before lost everything.
// The specification's layouts, with addresses of 8 and 4 bytes.
TEST(SuperblockTest, TheEndOfTheFileIsFoundInEachVersion) {
  const auto with = [](unsigned version, size_t size_at, unsigned size, size_t end_at) {
    std::string bytes(128, '\xff');
    bytes.replace(0, sizeof kSignature, reinterpret_cast<const char*>(kSignature),
                  sizeof kSignature);
    bytes[8] = static_cast<char>(version);
    bytes[size_at] = static_cast<char>(size);
    for (unsigned i = 0; i < size; ++i)
      bytes[end_at + i] = static_cast<char>(uint64_t{0x04030201} >> 8 * i);
    return bytes;
  };
  EXPECT_EQ(EndInSuperblock(with(0, 13, 8, 40).data()), 0x04030201u);
  EXPECT_EQ(EndInSuperblock(with(1, 13, 8, 44).data()), 0x04030201u);
  EXPECT_EQ(EndInSuperblock(with(2, 9, 8, 28).data()), 0x04030201u);
  EXPECT_EQ(EndInSuperblock(with(3, 9, 4, 20).data()), 0x04030201u);
}

TEST_F(SuperblockOrderTest, TheMarkIsStoredWhenTheOpenReturns) {
  for (const bool existing : {true, false}) {
    storage_->bytes.clear();
    Open(existing ? Superblock('o') + std::string(200, 'o') : "");
    const CallScope open(CallScope::kFlushMayBeSkipped);
    ASSERT_TRUE(Write(0, Superblock('m')).ok());
    ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
    EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 0, 48}}));
    ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
    EXPECT_EQ(TakeChanges(), std::vector<Call>()) << "one request an open";
  }
}

// netCDF reads a file's first bytes by itself, and took one for unknown that its own process had just flushed, deferred.
TEST_F(SuperblockOrderTest, ANewFilesSignatureIsThereWhereFlushesAreDeferred) {
  const std::string front =
      Superblock('a').substr(0, 9);  // with the version: netCDF-C wants more than 8 bytes
  config_.flush_deferred = true;
  Open();
  file_->SetSettings(config_);
  ASSERT_TRUE(file_->Lock(true).ok());
  {
    const CallScope create(CallScope::kFlushMayBeSkipped);
    ASSERT_TRUE(Write(0, Superblock('a')).ok());
    ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
  }
  EXPECT_EQ(Stored(), front);
  ASSERT_TRUE(Write(100, "data").ok());
  {
    const CallScope flush(CallScope::kFlushAsSet);
    ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
  }
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 0, 9}}));
  RunLanes();
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 100, 4}, {kWrite, 0, 48}}));

  Open(Superblock('o') + std::string(200, 'o'));
  file_->SetSettings(config_);
  const CallScope open(CallScope::kFlushMayBeSkipped);
  ASSERT_TRUE(Write(0, Superblock('b')).ok());
  ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 0, 48}})) << "an existing file has it";
}

TEST_F(SuperblockOrderTest, ASignatureComesWithTheSettingThatDefers) {
  Open();
  ASSERT_TRUE(file_->Lock(true).ok());
  ASSERT_TRUE(Write(0, Superblock('a')).ok());
  EXPECT_EQ(TakeChanges(), std::vector<Call>());
  config_.close_deferred = true;
  file_->SetSettings(config_);
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 0, 9}}));
}

TEST_F(SuperblockOrderTest, ASignatureThatIsRefusedFailsWithItsSuperblock) {
  Open();
  ASSERT_TRUE(file_->Lock(true).ok());
  FailingWrites faults(*this);
  ASSERT_TRUE(Write(0, Superblock('a')).ok());
  config_.close_deferred = true;
  file_->SetSettings(config_);
  EXPECT_EQ(file_->drainer().Drain(Wait::kClose).code(), ENOSPC);
  faults.failing = false;
  EXPECT_TRUE(file_->drainer().Drain(Wait::kClose).ok());
  EXPECT_EQ(Stored(), Superblock('a'));
}

// The open that failed instead left half a mark on storage, and nobody who would complete it.
TEST_F(SuperblockOrderTest, AMarkThatIsRefusedIsKeptAndStoredFirst) {
  Open(Superblock('o') + std::string(200, 'o'));
  FailingWrites faults(*this);
  {
    const CallScope open(CallScope::kFlushMayBeSkipped);
    ASSERT_TRUE(Write(0, Superblock('m')).ok());
    EXPECT_TRUE(file_->Flush(false, InProgress()).ok());
  }
  EXPECT_EQ(file_->drainer().RetryAndReport().code(), ENOSPC)
      << "the next call that changes the file";
  faults.failing = false;
  TakeChanges();
  EXPECT_TRUE(file_->drainer().Drain(Wait::kClose).ok());
  EXPECT_EQ(TakeChanges().front(), (Call{kWrite, 0, 48}));
  EXPECT_EQ(Stored(), Superblock('m') + std::string(200, 'o'));
}

TEST_F(SuperblockOrderTest, AnExistingFileIsMarkedBeforeItsContentsChange) {
  Open(Superblock('o') + std::string(200, 'o'));
  ASSERT_TRUE(Write(0, Superblock('m')).ok());
  ASSERT_TRUE(Write(100, "data").ok());
  RunLanes();
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 0, 48}, {kWrite, 100, 4}}));
  ASSERT_TRUE(Write(0, Superblock('c')).ok());
  ASSERT_TRUE(Write(110, "data").ok());
  ASSERT_TRUE(file_->Truncate(500).ok());
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(TakeChanges(),
            (std::vector<Call>{{kWrite, 110, 4}, {kTruncate, 0, 500}, {kWrite, 0, 48}}));
}

// The accumulator merged the superblock with its neighbours; as one extent they went out together.
TEST_F(SuperblockOrderTest, ASuperblockMergedWithItsNeighboursIsCapturedApart) {
  Open();
  ASSERT_TRUE(file_->Lock(true).ok());
  file_->writes().superblock().SetBase(512);
  const std::string merged = std::string(12, 'u') + Superblock('s') + std::string(40, 'm');
  ASSERT_TRUE(Write(500, merged).ok());
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(TakeChanges(),
            (std::vector<Call>{{kWrite, 500, 12}, {kWrite, 560, 40}, {kWrite, 512, 48}}));
  EXPECT_EQ(Stored().substr(500), merged);
}

TEST_F(SuperblockOrderTest, TheSecondSuperblockWaitsForTheFirstMark) {
  Open(Superblock('o') + std::string(200, 'o'));
  ASSERT_TRUE(Write(0, Superblock('1')).ok());
  ASSERT_TRUE(Write(0, Superblock('2')).ok());
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 0, 48}}))
      << "the mark, stored by whoever would replace it";
  EXPECT_EQ(Stored()[20], '1');
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(Stored()[20], '2');
}

TEST_F(SuperblockOrderTest, NothingIsStoredWhileTheMarkCannotBe) {
  Open(Superblock('o') + std::string(200, 'o'));
  FailingWrites faults(*this);
  ASSERT_TRUE(Write(0, Superblock('m')).ok());
  ASSERT_TRUE(Write(100, "data").ok());
  EXPECT_EQ(file_->Flush().code(), ENOSPC);
  EXPECT_EQ(Stored(), Superblock('o') + std::string(200, 'o'));
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 0, 48}})) << "nothing else was even tried";
  faults.failing = false;
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 0, 48}, {kWrite, 100, 4}}));
}

// The waiting request was neither done nor failed, and nobody was going to try again: H5ESwait
// hung.
TEST_F(SuperblockOrderTest, ARequestBehindAMarkThatFailedFails) {
  Open(Superblock('o') + std::string(200, 'o'));
  FailingWrites faults(*this);
  ASSERT_TRUE(Write(0, Superblock('m')).ok());
  CallScope scope(CallScope::kNone, true);
  ASSERT_TRUE(Write(100, "data").ok());
  const auto request = scope.TakeCompletion();
  EXPECT_EQ(request->Wait(1'000'000'000), State::kFailed);
  EXPECT_EQ(request->error().code(), ENOSPC);
}

// A request of the call that happened to write the superblock (H5Fopen_async of an adopted file) waited for a drain that
// nobody had asked for.
TEST_F(SuperblockOrderTest, NoRequestWaitsForTheSuperblock) {
  Open();
  ASSERT_TRUE(file_->Lock(true).ok());
  CallScope scope(CallScope::kNone, true);
  ASSERT_TRUE(Write(0, Superblock('s')).ok());
  EXPECT_EQ(scope.TakeCompletion(), nullptr);
  ASSERT_TRUE(Write(1000, "data").ok());
  EXPECT_EQ(scope.TakeCompletion()->Wait(1'000'000'000), State::kDone);
  EXPECT_EQ(Stored().substr(1000), "data");
  EXPECT_NE(Stored().substr(0, 48), Superblock('s'));
}

TEST_F(SuperblockOrderTest, ABarrierWaitsForTheSuperblock) {
  Open();
  ASSERT_TRUE(Write(0, Superblock('s')).ok());
  CallScope scope(CallScope::kFlushMayReturnEarly, true);
  ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
  EXPECT_EQ(scope.TakeCompletion()->Wait(1'000'000'000), State::kDone);
  EXPECT_EQ(Stored(), Superblock('s'));
}

TEST_F(SuperblockOrderTest, ABarrierFailsWithWhatKeepsTheSuperblockBack) {
  Open();
  FailingWrites faults(*this);
  ASSERT_TRUE(Write(1000, "data").ok());
  ASSERT_TRUE(Write(0, Superblock('s')).ok());
  CallScope scope(CallScope::kFlushMayReturnEarly, true);
  ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
  EXPECT_EQ(scope.TakeCompletion()->Wait(1'000'000'000), State::kFailed);
  faults.failing = false;
  ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
  {
    const CallScope wait(CallScope::kNone);
    ASSERT_TRUE(file_->Flush(false, InProgress()).ok());
  }
  EXPECT_EQ(Stored().substr(0, 48), Superblock('s'));
}

TEST_F(SuperblockOrderTest, AMarkIsStoredBeforeTheFileIsCutShort) {
  Open(Superblock('o') + std::string(200, 'o'));
  ASSERT_TRUE(Write(0, Superblock('m')).ok());
  ASSERT_TRUE(file_->Truncate(100).ok());
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 0, 48}, {kTruncate, 0, 100}}));
}

// Adopted when its last superblock was stored already, the file looked closed while the next
// session changed it.
TEST_F(SuperblockOrderTest, AnAdoptedFileThatLooksClosedIsMarkedFirst) {
  Open();
  ASSERT_TRUE(Write(0, Superblock('c')).ok());
  ASSERT_TRUE(file_->Flush().ok());
  ASSERT_TRUE(Write(100, "data").ok());
  file_->closing().Begin([](const std::shared_ptr<File>&) { ADD_FAILURE() << "adopted"; });
  ASSERT_TRUE(file_->closing().Adopt());
  TakeChanges();
  ASSERT_TRUE(Write(0, Superblock('m')).ok());
  ASSERT_TRUE(Write(200, "data").ok());
  RunLanes();
  EXPECT_EQ(TakeChanges()[0], (Call{kWrite, 0, 48}));
  ASSERT_TRUE(Write(0, Superblock('c')).ok());
  ASSERT_TRUE(Write(300, "data").ok());
  ASSERT_TRUE(file_->Flush().ok());
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 300, 4}, {kWrite, 0, 48}}));
}

TEST_F(SuperblockOrderTest, AFileWhoseLastSuperblockIsOnItsWayIsNotAdopted) {
  Open();
  bool tried = false;
  plan_ = [&](FaultPoint point, uint64_t address, uint64_t) {
    if (point == kWrite && address == 0) {
      tried = true;
      EXPECT_FALSE(file_->closing().Adopt());
    }
    return Fault{};
  };
  ASSERT_TRUE(Write(0, Superblock('c')).ok());
  file_->closing().Begin(
      [](const std::shared_ptr<File>& file) { EXPECT_TRUE(file->closing().CloseDevice().ok()); });
  EXPECT_TRUE(file_->closing().WaitClosed(Wait::kOpen).ok());
  EXPECT_TRUE(tried);
}

TEST_F(SuperblockOrderTest, AFileWhoseLastSuperblockStillWaitsIsAdopted) {
  Open();
  ASSERT_TRUE(file_->Lock(true).ok());
  ASSERT_TRUE(Write(0, Superblock('c')).ok());
  ASSERT_TRUE(Write(100, "data").ok());
  file_->closing().Begin([](const std::shared_ptr<File>&) { ADD_FAILURE() << "adopted"; });
  ASSERT_TRUE(file_->closing().Adopt());
  ASSERT_TRUE(Write(0, Superblock('m')).ok());
  RunLanes();
  EXPECT_EQ(TakeChanges(), (std::vector<Call>{{kWrite, 100, 4}, {kWrite, 0, 48}}));
  EXPECT_EQ(Stored()[20], 'm');
}

}  // namespace
}  // namespace tidelane
