/// \file
/// Locks of a process that was killed are free while a child of it lives, and the child reads on.
#include "device/fork_locks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "device/claim.h"
#include "device/device.h"

namespace tidelane {
namespace {

class ForkLocksTest : public testing::Test {
 protected:
  ForkLocksTest() {
    std::string path = testing::TempDir() + "tidelane_fork_locks_XXXXXX";
    fd_ = mkostemp(path.data(), O_CLOEXEC);
    path_ = path;
    EXPECT_EQ(pwrite(fd_, "bytes", 5, 0), 5);
    EXPECT_EQ(flock(fd_, LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(Claim(fd_), 0);
  }
  ~ForkLocksTest() override { unlink(path_.c_str()); }

  // A child that fork's handlers have been in, which then waits until `wait` can be read, and ends with what `then` says.
  template <typename Then>
  pid_t Fork(const std::array<int, 2>& wait, Then then) {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    ForkLocks::Get().LockForFork();
    const pid_t child = fork();
    ForkLocks::Get().UnlockAfterFork(child == 0);
    char byte = '!';
    if (child == 0) {
      close(wait[1]);
      const bool told = write(ready[1], &byte, 1) == 1 && read(wait[0], &byte, 1) == 1;
      _exit(told && then() ? 0 : 1);
    }
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
  }
  bool IsFree() const {
    const int fd = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    const bool free = flock(fd, LOCK_EX | LOCK_NB) == 0 && Claim(fd) == 0;
    close(fd);
    return free;
  }
  bool MayRead() const {
    std::array<char, 5> there{};
    return pread(fd_, there.data(), there.size(), 0) == 5 && there[0] == 'b';
  }
  static void ExpectRight(pid_t child, const std::array<int, 2>& wait) {
    EXPECT_EQ(write(wait[1], "!", 1), 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    close(wait[0]);
    close(wait[1]);
  }

  int fd_ = -1;
  std::string path_;
};

TEST_F(ForkLocksTest, EndWithTheProcessAndNotWithItsChild) {
  ForkLocks::Get().Add(fd_);
  std::array<int, 2> wait{};
  ASSERT_EQ(pipe(wait.data()), 0);
  const pid_t child = Fork(
      wait, [this] { return MayRead() && pwrite(fd_, "x", 1, 0) < 0 && flock(fd_, LOCK_UN) == 0; });
  EXPECT_FALSE(IsFree());
  ForkLocks::Get().Remove(fd_);
  close(fd_);  // as the end of this process would
  EXPECT_TRUE(IsFree());
  ExpectRight(child, wait);
}

TEST_F(ForkLocksTest, AChildGivesUpNothingOfItsParents) {
  const std::unique_ptr<Device> device = MakePosixDevice(fd_);
  ForkLocks::Get().Add(fd_);
  std::array<int, 2> wait{};
  ASSERT_EQ(pipe(wait.data()), 0);
  const pid_t child = Fork(wait, [&] { return device->Unlock() == 0 && device->Close() == 0; });
  ExpectRight(child, wait);
  EXPECT_FALSE(IsFree());
}

// Its number may be another file's by then.
TEST_F(ForkLocksTest, AClosedDeviceHasNone) {
  const std::unique_ptr<Device> device = MakePosixDevice(fd_);
  ForkLocks::Get().Add(fd_);
  ASSERT_EQ(device->Close(), 0);
  const int other = open(path_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(other, fd_);
  std::array<int, 2> wait{};
  ASSERT_EQ(pipe(wait.data()), 0);
  const pid_t child = Fork(wait, [&] { return pwrite(other, "x", 1, 0) == 1; });
  ExpectRight(child, wait);
  close(other);
}

}  // namespace
}  // namespace tidelane
