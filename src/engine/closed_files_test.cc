/// \file
/// Files that were closed before they were stored: how many there may be, what they keep from others, and who gives them up.
///
/// Each test is a child process: limits, and an engine with nothing in it, are a process's.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "file/call_scope.h"

namespace tidelane {
namespace {

constexpr uint64_t kKiB = 1024;

// Keeps the lanes from storing anything, for a moment or as long as it lives.
class BusyLanes {
 public:
  explicit BusyLanes(Engine& engine) {
    for (unsigned lane = 0; lane < engine.config().lanes_for_all(); ++lane)
      engine.lanes().Schedule(std::make_shared<Busy>(over_));
  }
  ~BusyLanes() {
    *over_ = true;
    if (later_.joinable()) later_.join();
  }
  void EndSoon() {
    later_ = std::thread([over = over_] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      *over = true;
    });
  }

 private:
  struct Busy final : LaneTask {
    explicit Busy(std::shared_ptr<std::atomic<bool>> until) : over(std::move(until)) {}
    void RunOne() override {
      while (!*over) std::this_thread::yield();
    }
    std::shared_ptr<std::atomic<bool>> over;
  };
  std::shared_ptr<std::atomic<bool>> over_ = std::make_shared<std::atomic<bool>>(false);
  std::thread later_;
};

class ClosedFiles : public ::testing::Test {
 protected:
  ClosedFiles() {
    std::string folder = ::testing::TempDir() + "tidelane_closed_XXXXXX";
    folder_ = mkdtemp(folder.data());
    path_ = folder_ + "/file.h5";
  }
  ~ClosedFiles() override { std::filesystem::remove_all(folder_); }

  void InAChild(const std::function<void()>& test) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("TIDELANE_MODE", "async", 1);
      setenv("TIDELANE_ARENA", "32M", 1);
      setenv("TIDELANE_LANES", "2", 1);
      test();
      _exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  static Engine& engine() { return Engine::Get(); }
  static Status Open(const std::string& path, int flags, std::shared_ptr<File>& file,
                     OpenOptions options = {}) {
    options.flags = flags;
    return engine().Open(path.c_str(), options, file, CallContext::Current());
  }
  static std::shared_ptr<File> Opened(const std::string& path, int flags,
                                      OpenOptions options = {}) {
    std::shared_ptr<File> file;
    const Status status = Open(path, flags, file, options);
    EXPECT_TRUE(status.ok()) << status.Message();
    return file;
  }
  static std::shared_ptr<File> Written(const std::string& path, uint64_t bytes) {
    auto file = Opened(path, O_RDWR | O_CREAT | O_TRUNC);
    EXPECT_TRUE(file->Lock(true).ok());
    const std::string data(bytes, 'd');
    EXPECT_TRUE(file->Write(0, data.size(), data.data()).ok());
    return file;
  }
  static Status CloseDeferred(std::shared_ptr<File> file) {
    CallScope scope(CallScope::kCloseMayBeDeferred);
    EXPECT_TRUE(file->Unlock(CallContext::Current()).ok());
    return engine().Close(std::move(file), CallContext::Current());
  }
  static void LimitFiles(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  // Closed, and not to be stored before the limit is lifted.
  static std::shared_ptr<File> Failed(const std::string& path) {
    LimitFiles(kKiB);
    auto file = Written(path, 64 * kKiB);
    EXPECT_TRUE(CloseDeferred(file).ok());
    EXPECT_FALSE(file->closing().AwaitClosed(Wait::kOther));
    return file;
  }

  std::string folder_;
  std::string path_;
};

constexpr int kOpener = 1;
OpenOptions By(int opener) {
  OpenOptions options;
  options.opener = opener;
  return options;
}

TEST_F(ClosedFiles, WhoseCloseWasRefusedGiveWayToAFileOfTheirName) {
  InAChild([&] {
    LimitFiles(16 * kKiB);
    auto file = Written(path_, 64 * kKiB);
    EXPECT_FALSE(file->Flush().ok());
    engine().refused_closes().DropAt(path_.c_str(), kOpener);
    EXPECT_FALSE(file->abandoned()) << "nobody has tried to close it";
    engine().refused_closes().Add(file, kOpener);
    engine().refused_closes().DropAt(path_.c_str(), kOpener + 1);
    EXPECT_FALSE(file->abandoned());
    engine().refused_closes().Forget(file);
    engine().refused_closes().DropAt(path_.c_str(), kOpener);
    EXPECT_FALSE(file->abandoned()) << "it was opened again";
    engine().refused_closes().Add(file, kOpener);
    engine().refused_closes().DropAt(path_.c_str(), kOpener);
    EXPECT_TRUE(file->abandoned());
    char byte;
    EXPECT_EQ(file->Read(0, 1, &byte, true).code(), EBADF);
    EXPECT_NE(Opened(path_, O_RDWR | O_CREAT | O_TRUNC), nullptr);
  });
}

TEST_F(ClosedFiles, OpenedInsideACallAreStoredByAFlushOfAnother) {
  InAChild([&] {
    setenv("TIDELANE_LINGER", "10s",
           1);  // lanes are not quicker than this test on a busy machine either
    auto inside = Written(path_, kKiB);  // without a call that opens files
    EXPECT_FALSE(inside->drainer().drained());
    EXPECT_TRUE(engine().DrainInside(kOpener, Wait::kFlush).ok());
    EXPECT_FALSE(inside->drainer().drained()) << "another copy of HDF5 has opened it";
    EXPECT_TRUE(engine().DrainInside(OpenOptions().opener, Wait::kFlush).ok());
    EXPECT_TRUE(inside->drainer().drained());
    const CallScope opening(CallScope::kFlushMayBeSkipped);
    auto programs = Written(path_ + ".other", kKiB);
    EXPECT_TRUE(engine().DrainInside(OpenOptions().opener, Wait::kFlush).ok());
    EXPECT_FALSE(programs->drainer().drained()) << "the program can flush it";
  });
}

// Natively HDF5 goes on with the file that it has open; the program may close that, and a link's cache keep it.
TEST_F(ClosedFiles, OpenedInsideACallBesideTheProgram) {
  InAChild([&] {
    setenv("TIDELANE_LINGER", "10s", 1);
    std::shared_ptr<File> programs;
    {
      const CallScope opening(CallScope::kFlushMayBeSkipped);
      programs = Written(path_, kKiB);
      EXPECT_NE(Opened(path_, O_RDWR), nullptr);  // the program again
    }
    EXPECT_FALSE(engine().OpenedInside(*programs));
    OpenOptions of_another;
    of_another.opener = kOpener;
    EXPECT_NE(Opened(path_, O_RDWR, of_another), nullptr);
    EXPECT_FALSE(engine().OpenedInside(*programs)) << "by another copy of HDF5";
    EXPECT_NE(Opened(path_, O_RDWR), nullptr);
    EXPECT_TRUE(engine().OpenedInside(*programs));
    EXPECT_TRUE(engine().DrainInside(OpenOptions().opener, Wait::kFlush).ok());
    EXPECT_TRUE(programs->drainer().drained());
  });
}

TEST_F(ClosedFiles, InAForkedProcessAreWaitedForThoughNobodySawTheFork) {
  InAChild([&] {
    setenv("TIDELANE_CLOSE", "deferred", 1);
    auto file = Opened(path_, O_RDWR | O_CREAT | O_TRUNC);
    EXPECT_FALSE(file->settings().close_deferred);
  });
  InAChild([&] {
    setenv("TIDELANE_CLOSE", "deferred", 1);
    setenv("TIDELANE_FORKED", "deferred", 1);
    auto file = Opened(path_, O_RDWR | O_CREAT | O_TRUNC);
    EXPECT_TRUE(file->settings().close_deferred);
  });
}

TEST_F(ClosedFiles, HoldAShareOfTheDescriptorsOnly) {
  InAChild([&] {
    const rlimit limit{64, 64};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    BusyLanes busy(engine());
    busy.EndSoon();
    for (int i = 0; i < 80; ++i) {
      ASSERT_TRUE(CloseDeferred(Written(folder_ + "/" + std::to_string(i), kKiB)).ok());
      ASSERT_LE(engine().FilesAt(nullptr).size(), 16u) << i;
    }
  });
}

TEST_F(ClosedFiles, GiveTheirDescriptorsToWhoFindsNone) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizers look at memory through descriptors of their own";
#endif
  InAChild([&] {
    BusyLanes busy(engine());
    for (int i = 0; i < 8; ++i)
      ASSERT_TRUE(CloseDeferred(Written(folder_ + "/" + std::to_string(i), kKiB)).ok());
    const int next = open("/dev/null", O_RDONLY);
    close(next);
    const rlimit limit{static_cast<rlim_t>(next), 1024};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    busy.EndSoon();
    EXPECT_NE(Opened(path_, O_RDWR | O_CREAT | O_TRUNC), nullptr);
  });
}

TEST_F(ClosedFiles, WithoutANameAndThatCannotBeStoredAreGivenUp) {
  InAChild([&] {
    const auto file = Failed(path_);
    EXPECT_FALSE(engine().closed_files().DropNameless());
    ASSERT_EQ(unlink(path_.c_str()), 0);
    EXPECT_TRUE(engine().closed_files().DropNameless());
    EXPECT_TRUE(engine().FilesAt(nullptr).empty());
    EXPECT_TRUE(file->closing().WaitClosed(Wait::kClose).ok());
  });
}

TEST_F(ClosedFiles, ThatCouldNotBeStoredAndLostTheirNameHoldNoRoom) {
  InAChild([&] {
    LimitFiles(16 * kKiB);
    auto file = Written(path_, 64 * kKiB);
    EXPECT_FALSE(file->Flush().ok());
    engine().refused_closes().Add(file, kOpener);
    struct stat before;
    ASSERT_EQ(stat(path_.c_str(), &before), 0);
    const std::string kept = folder_ + "/kept";
    const int fd = open(path_.c_str(), O_RDONLY);
    auto other = Opened(kept, O_RDWR | O_CREAT, By(kOpener));
    EXPECT_TRUE(file->drainer().stuck());  // it has its name
    ASSERT_EQ(unlink(path_.c_str()), 0);
    auto anothers = Opened(kept, O_RDONLY, By(kOpener + 1));
    EXPECT_TRUE(file->drainer().stuck()) << "another copy of HDF5 opened something";
    auto another = Opened(kept, O_RDONLY, By(kOpener));
    EXPECT_FALSE(file->drainer().stuck());
    EXPECT_TRUE(file->abandoned()) << "its room is free when nobody else has it open";
    struct stat after;
    ASSERT_EQ(fstat(fd, &after), 0);
    EXPECT_EQ(after.st_size, before.st_size) << "others may be reading it";
  });
}

TEST_F(ClosedFiles, AnOpeningCallThatClosesThemAgainChangesNothing) {
  InAChild([&] {
    const auto failed = Failed(path_);
    {
      const CallScope creating(CallScope::kFlushMayBeSkipped);
      auto tentative = Opened(path_, O_RDWR);
      EXPECT_EQ(tentative, failed);
      const Status closed = engine().Close(std::move(tentative), CallContext::Current());
      EXPECT_TRUE(closed.ok()) << closed.Message();
      EXPECT_EQ(engine().FilesAt(nullptr).size(), 1u);
    }
    auto made = Opened(path_, O_RDWR | O_CREAT | O_TRUNC);
    ASSERT_NE(made, nullptr);
    EXPECT_TRUE(made->Lock(true).ok());
    EXPECT_EQ(made->eof(), 0u);
    EXPECT_TRUE(engine().Close(std::move(made)).ok());
  });
}

TEST_F(ClosedFiles, AFailedReopenLeavesThemClosed) {
  InAChild([&] {
    const auto failed = Failed(path_);
    std::shared_ptr<File> file;
    OpenOptions swmr;
    swmr.swmr = true;
    EXPECT_EQ(Open(path_, O_RDWR, file, swmr).code(), EFBIG);
    EXPECT_EQ(file, nullptr);
    LimitFiles(RLIM_INFINITY);
    file = Opened(path_, O_RDWR);
    ASSERT_NE(file, nullptr);
    EXPECT_TRUE(file->Lock(true).ok());
    EXPECT_TRUE(engine().Close(std::move(file)).ok());
    EXPECT_TRUE(engine().FilesAt(nullptr).empty());
  });
}

TEST_F(ClosedFiles, AreReopenedIfTheSystemWouldOpenThem) {
  InAChild([&] {
    if (getuid() == 0) {
      ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
      ASSERT_EQ(seteuid(65534), 0);
    }
    BusyLanes busy(engine());
    ASSERT_TRUE(CloseDeferred(Written(path_, kKiB)).ok());
    ASSERT_EQ(chmod(path_.c_str(), 0444), 0);
    std::shared_ptr<File> file;
    EXPECT_EQ(Open(path_, O_RDWR, file).code(), EACCES);
    EXPECT_EQ(Open(path_, O_RDWR | O_TRUNC, file).code(), EACCES);
    EXPECT_EQ(Open(path_, O_RDONLY, file).code(), 0);
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->eof(), kKiB);
  });
}

TEST_F(ClosedFiles, ReopenedByOneCopyOfHdf5AreReadByAnother) {
  InAChild([&] {
    BusyLanes busy(engine());
    ASSERT_TRUE(CloseDeferred(Written(path_, 64 * kKiB)).ok());
    const auto again = Opened(path_, O_RDONLY);
    ASSERT_TRUE(again->Lock(false).ok());
    busy.EndSoon();
    OpenOptions another;
    another.opener = 1;
    const auto file = Opened(path_, O_RDONLY, another);
    const Status locked = file->Lock(false);
    EXPECT_TRUE(locked.ok()) << locked.Message();
    EXPECT_EQ(file->eof(), 64 * kKiB);
  });
}

TEST_F(ClosedFiles, AreFoundByTheNameThatTheyWereOpenedBy) {
  InAChild([&] {
    ASSERT_EQ(chdir(folder_.c_str()), 0);
    const auto file = Written("file.h5", kKiB);
    ASSERT_EQ(chdir("/"), 0);
    EXPECT_EQ(engine().FilesAt("file.h5").size(), 1u);
    ASSERT_EQ(rename(path_.c_str(), (folder_ + "/other.h5").c_str()), 0);
    EXPECT_EQ(engine().FilesAt("file.h5").size(), 1u);
    EXPECT_EQ(engine().FilesAt((folder_ + "/other.h5").c_str()).size(), 1u);
    EXPECT_TRUE(engine().FilesAt("none.h5").empty());
  });
}

}  // namespace
}  // namespace tidelane
