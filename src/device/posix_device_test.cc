/// \file
/// The POSIX device on real files: long vectors, short writes, holes, locks, limits.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "device/device.h"

namespace tidelane {
namespace {

class PosixDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/deviceXXXXXX";
    const int fd = mkstemp(path_.data());
    ASSERT_GE(fd, 0);
    device_ = MakePosixDevice(fd);
  }
  void TearDown() override { unlink(path_.c_str()); }

  int Put(uint64_t address, const std::string& text) const {
    const struct iovec part = {const_cast<char*>(text.data()), text.size()};
    return device_->Write(address, &part, 1);
  }
  std::string Get(uint64_t address, size_t n) const {
    std::string text(n, '?');
    EXPECT_EQ(device_->Read(address, text.data(), n), 0);
    return text;
  }
  std::unique_ptr<Device> OpenAgain() const {
    return MakePosixDevice(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  }

  std::string path_;
  std::unique_ptr<Device> device_;
};

TEST_F(PosixDeviceTest, ReadsZeroesBeyondTheEnd) {
  ASSERT_EQ(Put(10, "hello"), 0);
  EXPECT_EQ(Get(10, 5), "hello");
  EXPECT_EQ(Get(12, 8), std::string("llo\0\0\0\0\0", 8));
  EXPECT_EQ(Get(1 << 20, 3), std::string(3, '\0'));
  EXPECT_EQ(Get(8, 3), std::string("\0\0h", 3));
}

TEST_F(PosixDeviceTest, TakesMorePartsThanTheKernelDoes) {
  const size_t count = 3 * IOV_MAX + 17;
  std::vector<std::string> texts;
  std::vector<struct iovec> parts;
  std::string expected;
  for (size_t i = 0; i < count; ++i) {
    texts.push_back(i % 5 == 0 ? "" : std::to_string(i));  // empty parts are allowed
    expected += texts.back();
  }
  for (std::string& text : texts) parts.push_back({text.data(), text.size()});
  ASSERT_EQ(device_->Write(100, parts.data(), count), 0);
  EXPECT_EQ(Get(100, expected.size()), expected);
  uint64_t size = 0;
  ASSERT_EQ(device_->Size(size), 0);
  EXPECT_EQ(size, 100 + expected.size());
}

TEST_F(PosixDeviceTest, WritesOfNothingEnd) {
  EXPECT_EQ(device_->Write(0, nullptr, 0), 0);
  const std::vector<struct iovec> empty(IOV_MAX + 1, {nullptr, 0});
  EXPECT_EQ(device_->Write(0, empty.data(), empty.size()), 0);
}

// A file size limit cuts a write short before it fails: what was possible is there, and the error
// is reported.
TEST_F(PosixDeviceTest, AShortWriteIsContinuedUntilTheLimitSaysWhy) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string a(300, 'a');
    std::string b(300, 'b');
    std::string c(600, 'c');
    const struct iovec parts[] = {{a.data(), 300}, {b.data(), 300}, {c.data(), 600}};
    _exit(device_->Write(0, parts, 3) == EFBIG ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(Get(0, 1000), std::string(300, 'a') + std::string(300, 'b') + std::string(400, 'c'));
}

TEST_F(PosixDeviceTest, TruncatesBothWays) {
  ASSERT_EQ(Put(0, "0123456789"), 0);
  ASSERT_EQ(device_->Truncate(4), 0);
  EXPECT_EQ(Get(0, 6), std::string("0123\0\0", 6));
  ASSERT_EQ(device_->Truncate(1 << 20), 0);
  uint64_t size = 0;
  ASSERT_EQ(device_->Size(size), 0);
  EXPECT_EQ(size, 1u << 20);
  EXPECT_NE(device_->Truncate(~uint64_t{0}), 0);
}

TEST_F(PosixDeviceTest, LocksExcludeOtherOpens) {
  const auto other = OpenAgain();
  ASSERT_EQ(device_->Lock(false), 0);
  EXPECT_EQ(other->Lock(false), 0) << "readers share";
  EXPECT_EQ(other->Lock(true), EWOULDBLOCK);
  EXPECT_EQ(other->Unlock(), 0);
  EXPECT_EQ(device_->Lock(true), 0) << "the only holder may upgrade";
  EXPECT_EQ(other->Lock(false), EWOULDBLOCK);
  EXPECT_EQ(device_->Unlock(), 0);
  EXPECT_EQ(other->Lock(true), 0);
}

TEST_F(PosixDeviceTest, ErrorsAreErrnos) {
  const auto reader = MakePosixDevice(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  char byte = 'x';
  const struct iovec part = {&byte, 1};
  EXPECT_EQ(reader->Write(0, &part, 1), EBADF);
  EXPECT_EQ(reader->Read(0, &byte, 1), 0);
  const auto writer = MakePosixDevice(open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(writer->Read(0, &byte, 1), EBADF);
  EXPECT_NE(device_->Write(~uint64_t{0}, &part, 1), 0);
}

TEST_F(PosixDeviceTest, CloseReleasesTheDescriptorAndTellsErrors) {
  EXPECT_EQ(device_->Sync(), 0);
  const int fd = *device_->descriptor();
  ASSERT_GE(fd, 0);
  EXPECT_EQ(device_->Close(), 0);
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
  EXPECT_EQ(*device_->descriptor(), -1);
  EXPECT_EQ(MakePosixDevice(fd)->Close(), EBADF);
}

TEST_F(PosixDeviceTest, DestructionClosesToo) {
  const int fd = *device_->descriptor();
  device_.reset();
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(PosixDeviceKindTest, TheFileSystemTellsWhetherWritesEndInMemory) {
  const std::unique_ptr<Device> memory = MakePosixDevice(memfd_create("test", 0));
  EXPECT_TRUE(memory->WritesToMemory());
  const std::unique_ptr<Device> other = MakePosixDevice(open("/proc/self/comm", O_RDWR));
  EXPECT_FALSE(other->WritesToMemory());
}

}  // namespace
}  // namespace tidelane
