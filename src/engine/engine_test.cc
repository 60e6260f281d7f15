/// \file
/// The registry on real files: open, close, deferred close, adoption, creation over a draining file, barriers, fork.
#include "engine/engine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/counters.h"
#include "file/call_scope.h"
#include "file/file_fixture.h"

namespace tidelane {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// The engine is one per process and reads its settings once.
Engine& TheEngine() {
  static Engine* const engine = [] {
    setenv("TIDELANE_ARENA", "32M", 1);
    setenv("TIDELANE_LANES", "2", 1);
    setenv("TIDELANE_LINGER", "1000", 1);
    return &Engine::Get();
  }();
  return *engine;
}

std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool LockIsFree(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool free = flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return free;
}

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() : engine_(TheEngine()) {
    std::string folder = ::testing::TempDir() + "tidelane_engine_XXXXXX";
    folder_ = mkdtemp(folder.data());
    path_ = folder_ + "/file.h5";
  }
  ~EngineTest() override {
    EXPECT_TRUE(engine_.DrainAll(Wait::kOther).ok());
    for (const char* name : {"/file.h5", "/other.h5", "/link.h5"}) unlink((folder_ + name).c_str());
    rmdir(folder_.c_str());
  }

  std::shared_ptr<File> Open(int flags, const std::string& path) {
    std::shared_ptr<File> file;
    OpenOptions options;
    options.flags = flags;
    const Status status = engine_.Open(path.c_str(), options, file, InProgress());
    EXPECT_TRUE(status.ok()) << status.Message();
    return file;
  }
  std::shared_ptr<File> Create() { return Open(O_RDWR | O_CREAT | O_TRUNC, path_); }

  static void Put(File& file, uint64_t address, const std::string& text) {
    const Status status = file.Write(address, text.size(), text.data());
    EXPECT_TRUE(status.ok()) << status.Message();
  }
  static std::string Get(File& file, uint64_t address, uint64_t size) {
    std::string text(size, '?');
    EXPECT_TRUE(file.Read(address, size, text.data(), true).ok());
    return text;
  }
  void CloseDeferred(std::shared_ptr<File> file) {
    CallScope scope(CallScope::kCloseMayBeDeferred);
    EXPECT_TRUE(file->Unlock(InProgress()).ok());
    EXPECT_TRUE(engine_.Close(std::move(file), InProgress()).ok());
  }

  Engine& engine_;
  std::string folder_;
  std::string path_;
};

// Ranks take no lock: what is read of their file may change between two reads, whoever else has it open.
TEST_F(EngineTest, OfAFileThatRanksHaveOpenNothingIsKept) {
  for (const bool ranks_first : {true, false}) {
    auto created = Create();
    Put(*created, 0, std::string(4096, 'a'));
    EXPECT_TRUE(engine_.Close(std::move(created), InProgress()).ok());
    std::shared_ptr<File> ranks;
    const auto open_by_ranks = [&] {
      EXPECT_TRUE(engine_.OpenShared(path_.c_str(), path_.c_str(), ranks, InProgress()).ok());
    };
    if (ranks_first) open_by_ranks();
    auto reader = Open(O_RDONLY, path_);
    EXPECT_TRUE(reader->Lock(false).ok());
    if (!ranks_first) {
      EXPECT_FALSE(reader->writes_through());
      EXPECT_EQ(Get(*reader, 0, 4), "aaaa");  // and more with it, into a block
      open_by_ranks();
    }
    EXPECT_TRUE(reader->writes_through());
    EXPECT_FALSE(ranks->writes_through());
    EXPECT_EQ(Get(*reader, 0, 4), "aaaa");
    const int by_a_rank = open(path_.c_str(), O_WRONLY);
    EXPECT_EQ(pwrite(by_a_rank, "bbbb", 4, 0), 4);
    close(by_a_rank);
    EXPECT_EQ(Get(*reader, 0, 4), "bbbb");
    EXPECT_TRUE(engine_.Close(std::move(reader), InProgress()).ok());
    EXPECT_TRUE(engine_.Close(std::move(ranks), InProgress()).ok());
  }
}

// They take no lock, either: what they have read is kept until somebody is seen to have changed it, or may.
TEST_F(EngineTest, WhatRanksOnlyReadIsKeptUntilSomebodyWrites) {
  auto created = Create();
  Put(*created, 0, std::string(4096, 'a'));
  EXPECT_TRUE(engine_.Close(std::move(created), InProgress()).ok());
  usleep(50'000);  // longer than a tick of the file system's clock
  std::shared_ptr<File> ranks;
  const auto open_to_read = [&] {
    return engine_.OpenForRanksToRead(path_.c_str(), path_.c_str(), ranks, InProgress());
  };
  ASSERT_TRUE(open_to_read().ok());
  EXPECT_FALSE(ranks->locked());
  EXPECT_EQ(Get(*ranks, 0, 4), "aaaa");
  const uint64_t hits = Read(Counter::kReadAheadHits);
  EXPECT_EQ(Get(*ranks, 4, 4), "aaaa");
  EXPECT_EQ(Get(*ranks, 8, 4), "aaaa");
  EXPECT_GT(Read(Counter::kReadAheadHits), hits);
  const int past_us = open(path_.c_str(), O_WRONLY);
  EXPECT_EQ(pwrite(past_us, "bbbb", 4, 0), 4);
  close(past_us);
  ranks->reads().ForgetIfChangedNow();
  EXPECT_EQ(Get(*ranks, 0, 4), "bbbb");
  EXPECT_FALSE(ranks->writes_through());
  const auto writer = Open(O_RDWR, path_);
  EXPECT_TRUE(ranks->writes_through());
  std::shared_ptr<File> others = std::exchange(ranks, nullptr);
  EXPECT_EQ(open_to_read().code(), EBUSY);
  EXPECT_EQ(ranks, nullptr);
  EXPECT_TRUE(engine_.Close(writer, InProgress()).ok());
  EXPECT_TRUE(engine_.Close(others, InProgress()).ok());
}

TEST_F(EngineTest, ACloseWaitsForTheBytes) {
  auto file = Create();
  Put(*file, 0, "hello");
  ASSERT_TRUE(file->Truncate(8).ok());
  ASSERT_TRUE(engine_.Close(std::move(file)).ok());
  EXPECT_EQ(Contents(path_), std::string("hello\0\0\0", 8));
}

TEST_F(EngineTest, OpeningWhatIsNotThereFailsAsOpenDoes) {
  std::shared_ptr<File> file;
  OpenOptions options;
  options.flags = O_RDONLY;
  const Status status = engine_.Open((folder_ + "/none").c_str(), options, file);
  EXPECT_EQ(status.code(), ENOENT);
  EXPECT_EQ(file, nullptr);
  EXPECT_NE(status.Message().find("/none"), std::string::npos);
}

TEST_F(EngineTest, ADeferredCloseStoresEverythingAndThenLetsGoOfTheLock) {
  auto file = Create();
  ASSERT_TRUE(file->Lock(true).ok());
  const std::string data(16 * kMiB, 'd');
  Put(*file, 0, data);
  CloseDeferred(std::move(file));
  ASSERT_TRUE(engine_.DrainPath(path_.c_str()).ok());
  EXPECT_TRUE(LockIsFree(path_));
  EXPECT_EQ(Difference(Contents(path_), data), "");
}

TEST_F(EngineTest, ARequestForADeferredCloseIsDoneWhenTheLockIsFree) {
  auto file = Create();
  ASSERT_TRUE(file->Lock(true).ok());
  Put(*file, 0, std::string(4 * kMiB, 'd'));
  std::shared_ptr<Completion> request;
  {
    CallScope scope(CallScope::kCloseMayBeDeferred, true);
    ASSERT_TRUE(file->Unlock(InProgress()).ok());
    ASSERT_TRUE(engine_.Close(std::move(file), InProgress()).ok());
    request = scope.TakeCompletion();
  }
  if (request != nullptr) {
    EXPECT_EQ(request->Wait(UINT64_MAX), Completion::State::kDone);
  }
  EXPECT_TRUE(LockIsFree(path_));
}

TEST_F(EngineTest, ReopeningADrainingFileGoesOnWhereItWas) {
  auto file = Create();
  ASSERT_TRUE(file->Lock(true).ok());
  std::string data(12 * kMiB, 'a');
  Put(*file, 0, data);
  CloseDeferred(std::move(file));
  file = Open(O_RDWR, path_);
  ASSERT_NE(file, nullptr);
  ASSERT_TRUE(file->Lock(true).ok());
  EXPECT_EQ(file->eof(), data.size());
  EXPECT_EQ(Get(*file, 11 * kMiB, 10), std::string(10, 'a'));
  Put(*file, 5, "new");
  data.replace(5, 3, "new");
  ASSERT_TRUE(engine_.Close(std::move(file)).ok());
  EXPECT_EQ(Difference(Contents(path_), data), "");
}

// Between leaving the registry and closing its descriptor a file could be opened anew, and its lock was still there.
TEST_F(EngineTest, ReopeningAtAnyMomentOfADrainFindsNoLockOfOurOwn) {
  CloseDeferred(Create());
  std::string expected;
  for (int i = 0; i < 600; ++i) {
    auto file = Open(O_RDWR, path_);
    ASSERT_NE(file, nullptr);
    const Status locked = file->Lock(true);
    ASSERT_TRUE(locked.ok()) << i << ": " << locked.Message();
    ASSERT_EQ(file->eof(), expected.size()) << i;
    const std::string text(1 + static_cast<size_t>(i) % 700, static_cast<char>('a' + i % 26));
    Put(*file, expected.size(), text);
    expected += text;
    CloseDeferred(std::move(file));
    for (int spin = 0; spin < i % 20; ++spin) std::this_thread::yield();
  }
  ASSERT_TRUE(engine_.DrainAll(Wait::kOther).ok());
  EXPECT_EQ(Difference(Contents(path_), expected), "");
}

TEST_F(EngineTest, ReopeningByAnotherNameFindsTheSameFile) {
  auto file = Create();
  Put(*file, 0, std::string(8 * kMiB, 'a'));
  CloseDeferred(std::move(file));
  const std::string link = folder_ + "/link.h5";
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  file = Open(O_RDWR, link);
  EXPECT_EQ(file->eof(), 8 * kMiB);
  EXPECT_EQ(Get(*file, 8 * kMiB - 4, 4), "aaaa");
  ASSERT_TRUE(engine_.Close(std::move(file)).ok());
  EXPECT_EQ(Contents(path_).size(), 8 * kMiB);
}

TEST_F(EngineTest, CreatingOverADrainingFileKeepsNothingOfIt) {
  for (int i = 0; i < 20; ++i) {
    auto file = Create();
    Put(*file, 0, std::string(2 * kMiB, 'o'));
    CloseDeferred(std::move(file));
    file = Create();
    Put(*file, 0, "new");
    ASSERT_TRUE(engine_.Close(std::move(file)).ok());
    ASSERT_EQ(Contents(path_), "new");
  }
}

TEST_F(EngineTest, AFileRemovedAndCreatedAgainIsAnotherFile) {
  auto file = Create();
  Put(*file, 0, std::string(8 * kMiB, 'o'));
  CloseDeferred(std::move(file));
  ASSERT_EQ(unlink(path_.c_str()), 0);
  file = Open(O_RDWR | O_CREAT | O_EXCL, path_);
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->eof(), 0u);
  Put(*file, 0, "new");
  ASSERT_TRUE(engine_.Close(std::move(file)).ok());
  EXPECT_EQ(Contents(path_), "new");
}

TEST_F(EngineTest, ExclusiveCreationOverADrainingFileFails) {
  auto file = Create();
  Put(*file, 0, std::string(8 * kMiB, 'o'));
  CloseDeferred(std::move(file));
  OpenOptions options;
  options.flags = O_RDWR | O_CREAT | O_EXCL;
  EXPECT_EQ(engine_.Open(path_.c_str(), options, file).code(), EEXIST);
}

TEST_F(EngineTest, TwoHandlesOfAnOpenFileConflictAsTheyWouldNatively) {
  auto one = Create();
  ASSERT_TRUE(one->Lock(true).ok());
  auto two = Open(O_RDWR, path_);
  EXPECT_EQ(two->Lock(true).code(), EWOULDBLOCK);
  ASSERT_TRUE(engine_.Close(std::move(two)).ok());
  ASSERT_TRUE(engine_.Close(std::move(one)).ok());
}

TEST_F(EngineTest, DrainingAPathStoresAnOpenFile) {
  auto file = Create();
  Put(*file, 0, "open");
  ASSERT_TRUE(engine_.DrainPath(path_.c_str()).ok());
  EXPECT_EQ(Contents(path_), "open");
  EXPECT_TRUE(engine_.DrainPath("/nowhere/none").ok());
  EXPECT_TRUE(engine_.DrainPath(nullptr).ok());
  ASSERT_TRUE(engine_.Close(std::move(file)).ok());
}

TEST_F(EngineTest, ManyFilesShareAFullArena) {
  constexpr int kFiles = 8;
  std::vector<std::shared_ptr<File>> files;
  for (int i = 0; i < kFiles; ++i) {
    files.push_back(Open(O_RDWR | O_CREAT | O_TRUNC, folder_ + "/many" + std::to_string(i)));
  }
  const std::string block(kMiB, 'm');
  for (uint64_t i = 0; i < 12; ++i) {
    for (auto& file : files) Put(*file, i * kMiB, block);
  }
  EXPECT_LE(engine_.arena().in_use(), engine_.arena().cap());
  for (int i = 0; i < kFiles; ++i) {
    const std::string path = files[static_cast<size_t>(i)]->path();
    ASSERT_TRUE(engine_.Close(std::move(files[static_cast<size_t>(i)])).ok());
    EXPECT_EQ(Contents(path).size(), 12 * kMiB);
    unlink(path.c_str());
  }
}

TEST_F(EngineTest, AFileSizeLimitIsReportedByCloseAndNotBefore) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{kMiB, kMiB};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto file = Create();
    const std::string piece(8 << 10, 'x');  // small enough to be deferred wherever the file is
    for (uint64_t at = 0; at < 2 * kMiB; at += piece.size()) Put(*file, at, piece);
    const Status status = engine_.Close(std::move(file));
    _exit(status.code() == EFBIG ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(EngineTest, AForkFindsWholeFilesAndBothSidesGoOnWriting) {
  auto file = Create();
  ASSERT_TRUE(file->Lock(true).ok());
  Put(*file, 0, std::string(4 * kMiB, 'p'));
  auto closed = Open(O_RDWR | O_CREAT | O_TRUNC, folder_ + "/other.h5");
  Put(*closed, 0, std::string(4 * kMiB, 'q'));
  CloseDeferred(std::move(closed));
  const pid_t child = fork();
  if (child == 0) {
    // The parent goes on writing behind these bytes.
    bool good = Contents(path_).substr(0, 4 * kMiB) == std::string(4 * kMiB, 'p');
    good = good && Contents(folder_ + "/other.h5") == std::string(4 * kMiB, 'q');
    const std::string mine(kMiB, 'c');
    good = good && file->Write(4 * kMiB, mine.size(), mine.data()).ok() && file->Flush().ok();
    auto other = Open(O_RDWR, folder_ + "/other.h5");
    good = good && other != nullptr && other->Lock(true).ok() && other->Write(0, 5, "child").ok();
    good = good && engine_.Close(std::move(other)).ok();
    _exit(good && !::testing::Test::HasFailure() ? 0 : 1);
  }
  Put(*file, 6 * kMiB, std::string(kMiB, 'r'));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(engine_.Close(std::move(file)).ok());
  std::string expected(7 * kMiB, '\0');
  expected.replace(0, 4 * kMiB, 4 * kMiB, 'p');
  expected.replace(4 * kMiB, kMiB, kMiB, 'c');
  expected.replace(6 * kMiB, kMiB, kMiB, 'r');
  EXPECT_EQ(Difference(Contents(path_), expected), "");
  EXPECT_EQ(Contents(folder_ + "/other.h5").substr(0, 6), "childq");
}

TEST_F(EngineTest, AForkedChildSaysThatItsClosesWait) {
  FileSettings settings = engine_.config();
  settings.close_deferred = true;
  const pid_t child = fork();
  if (child == 0) {
    const auto forked = [] { return tidelane::Read(Fallback::kForked); };
    bool good = forked() == 0;
    auto plain = Create();
    good = good && engine_.Close(std::move(plain)).ok() && forked() == 0;
    CallScope scope(CallScope::kNone);
    scope.SetFileSettings(&settings);
    auto file = Create();
    Put(*file, 0, "child");
    good = good && forked() == 1 && !file->settings().close_deferred;
    good = good && engine_.Close(std::move(file), InProgress()).ok() && Contents(path_) == "child";
    _exit(good && !::testing::Test::HasFailure() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(EngineTest, ForksWhileLanesAreBusyLeaveChildrenThatWork) {
  auto file = Create();
  std::string expected;
  for (int i = 0; i < 15; ++i) {
    const std::string block(500'000 + static_cast<size_t>(i), static_cast<char>('a' + i));
    Put(*file, expected.size(), block);
    expected += block;
    const pid_t child = fork();
    if (child == 0) {
      auto other = Open(O_RDWR | O_CREAT | O_TRUNC, folder_ + "/other.h5");
      bool good = other->Write(0, expected.size(), expected.data()).ok();
      good = good && engine_.Close(std::move(other)).ok() &&
             Contents(folder_ + "/other.h5") == expected;
      _exit(good && Contents(path_) == expected ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "fork " << i;
  }
  ASSERT_TRUE(engine_.Close(std::move(file)).ok());
  EXPECT_EQ(Difference(Contents(path_), expected), "");
}

TEST_F(EngineTest, ThreadsWithFilesOfTheirOwnDoNotDisturbOneAnother) {
  std::vector<std::thread> programs;
  for (int p = 0; p < 4; ++p) {
    programs.emplace_back([this, p] {
      const std::string path = folder_ + "/thread" + std::to_string(p);
      std::string expected;
      for (int i = 0; i < 40; ++i) {
        auto file = Open(O_RDWR | O_CREAT, path);
        ASSERT_TRUE(file->Lock(true).ok());
        const std::string text(1000 * static_cast<size_t>(1 + i % 7),
                               static_cast<char>('a' + i % 26));
        Put(*file, expected.size(), text);
        expected += text;
        CloseDeferred(std::move(file));
      }
      EXPECT_TRUE(engine_.DrainPath(path.c_str()).ok());
      EXPECT_EQ(Difference(Contents(path), expected), "");
      unlink(path.c_str());
    });
  }
  for (std::thread& program : programs) program.join();
}

}  // namespace
}  // namespace tidelane
