#include "publish/published_device.h"

#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <gtest/gtest.h>

#include "publish/names.h"

namespace tidelane {
namespace {

namespace fs = std::filesystem;

// A file on storage whose writes may be refused.
class Refusing final : public Device {
 public:
  Refusing(int fd, const bool& refuses) : inner_(MakePosixDevice(fd)), refuses_(refuses) {}
  int Read(uint64_t address, void* buffer, size_t n) override {
    return inner_->Read(address, buffer, n);
  }
  int Write(uint64_t address, const struct iovec* parts, size_t count) override {
    return refuses_ ? ENOSPC : inner_->Write(address, parts, count);
  }
  int Truncate(uint64_t size) override { return inner_->Truncate(size); }
  int Reserve(uint64_t, uint64_t) override { return EOPNOTSUPP; }
  int Size(uint64_t& size) override { return inner_->Size(size); }
  int Lock(bool exclusive) override { return inner_->Lock(exclusive); }
  int Unlock() override { return inner_->Unlock(); }
  int Sync() override { return 0; }
  int Close() override { return inner_->Close(); }
  int* descriptor() override { return inner_->descriptor(); }

 private:
  const std::unique_ptr<Device> inner_;
  const bool& refuses_;
};

class PublishedDeviceTest : public ::testing::Test {
 public:
  void SetUp() override {
    char name[] = "/tmp/tidelane-publish-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    std::ofstream(path()) << "old";
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string path() const { return root_ + "/x"; }
  std::string hidden() const { return root_ + "/.x.unpublished"; }
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path()).rdbuf();
    return text.str();
  }
  std::unique_ptr<PublishedDevice> Make() {
    OpenedName opened;
    const Status status =
        OpenByName(path().c_str(), O_RDWR | O_CREAT | O_TRUNC, 0666, true, opened);
    EXPECT_TRUE(status.ok()) << status.Message();
    EXPECT_NE(opened.publication, nullptr);
    if (opened.publication == nullptr) return nullptr;
    return std::make_unique<PublishedDevice>(
        std::make_unique<Refusing>(opened.file.Release(), refuses_), opened.publication, path(),
        true);
  }
  static int Write(Device& device, uint64_t address, std::string bytes) {
    const iovec part{bytes.data(), bytes.size()};
    return device.Write(address, &part, 1);
  }

 protected:
  bool refuses_ = false;

 private:
  std::string root_;
};

TEST_F(PublishedDeviceTest, ItsNameChangesWithTheLastClose) {
  const auto device = Make();
  EXPECT_EQ(Write(*device, 0, "new"), 0);
  EXPECT_EQ(content(), "old");
  OpenedName again;
  ASSERT_TRUE(OpenByName(path().c_str(), O_RDONLY, 0, true, again).ok());
  ASSERT_NE(again.publication, nullptr);
  PublishedDevice reader(MakePosixDevice(again.file.Release()), again.publication, path(), false);
  EXPECT_TRUE(device->Publish(Publishing::kWithLastClose).ok());
  EXPECT_EQ(device->Close(), 0);
  EXPECT_EQ(content(), "old");
  EXPECT_TRUE(reader.Publish(Publishing::kWithLastClose).ok());
  EXPECT_EQ(content(), "new");
  EXPECT_EQ(reader.Close(), 0);
  EXPECT_FALSE(fs::exists(hidden()));
}

TEST_F(PublishedDeviceTest, WhoeverDoesNotSayThatAllIsStoredSpoilsIt) {
  {
    const auto device = Make();
    EXPECT_EQ(Write(*device, 0, "new"), 0);
  }
  EXPECT_EQ(content(), "old");
  EXPECT_TRUE(fs::exists(hidden())) << "until the next one";
  const auto again = Make();
  EXPECT_EQ(Write(*again, 0, "newer"), 0);
  EXPECT_TRUE(again->Publish(Publishing::kWithLastClose).ok());
  EXPECT_EQ(content(), "newer");
  EXPECT_FALSE(fs::exists(hidden()));
}

// Who has only looked has nothing to say.
TEST_F(PublishedDeviceTest, AnOpeningThatWroteNothingSpoilsNothing) {
  const auto device = Make();
  EXPECT_EQ(Write(*device, 0, "new"), 0);
  {
    OpenedName again;
    ASSERT_TRUE(OpenByName(path().c_str(), O_RDWR, 0, true, again).ok());
    const PublishedDevice looked(MakePosixDevice(again.file.Release()), again.publication, path(),
                                 false);
  }
  EXPECT_TRUE(device->Publish(Publishing::kWithLastClose).ok());
  EXPECT_EQ(content(), "new");
}

// HDF5 has made no file of it.
TEST_F(PublishedDeviceTest, AnEmptyFileReplacesNothing) {
  EXPECT_TRUE(Make()->Publish(Publishing::kWithLastClose).ok());
  EXPECT_EQ(content(), "old");
  EXPECT_FALSE(fs::exists(hidden()));
}

TEST_F(PublishedDeviceTest, WhatWasRefusedMustBeStoredLater) {
  auto device = Make();
  refuses_ = true;
  EXPECT_EQ(Write(*device, 10, "0123456789"), ENOSPC);
  EXPECT_EQ(Write(*device, 15, "0123456789"), ENOSPC);
  refuses_ = false;
  EXPECT_EQ(Write(*device, 12, "abc"), 0);  // 10 to 25, in three parts
  EXPECT_EQ(Write(*device, 8, "abcd"), 0);
  EXPECT_EQ(Write(*device, 15, "0123456789"), 0);
  EXPECT_TRUE(device->Publish(Publishing::kWithLastClose).ok());
  EXPECT_EQ(device->Close(), 0);

  device = Make();
  refuses_ = true;
  EXPECT_EQ(Write(*device, 10, "0123456789"), ENOSPC);
  refuses_ = false;
  EXPECT_EQ(Write(*device, 11, "012345678"), 0);
  EXPECT_EQ(device->Truncate(0), 0);
  EXPECT_EQ(device->Publish(Publishing::kWithLastClose).code(), EIO) << "one byte is not";
}

TEST_F(PublishedDeviceTest, WhatCouldNotBeMadeIsRemoved) {
  const auto device = Make();
  EXPECT_EQ(Write(*device, 0, "half"), 0);
  device->Withhold(Withholding::kNotCreated);
  EXPECT_TRUE(device->Publish(Publishing::kWithLastClose).ok());
  EXPECT_EQ(content(), "old");
  EXPECT_FALSE(fs::exists(hidden()));
}

// The lock that HDF5 took is given back before anybody can find the file by its name.
TEST_F(PublishedDeviceTest, NobodyMeetsTheWritersLock) {
  const auto device = Make();
  EXPECT_EQ(device->Lock(true), 0);
  EXPECT_TRUE(device->Publish(Publishing::kWithLastClose).ok());
  const int reader = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(flock(reader, LOCK_SH | LOCK_NB), 0);
  ::close(reader);
}

// A list of who may read that only the folder has for new files.
TEST_F(PublishedDeviceTest, AnAccessListThatTheOldFileHasNotIsNotGiven) {
  // u::rw-,u:1234:rw-,g::r--,m::rw-,o::--- as the kernel keeps it
  const unsigned char list[] = {2,    0,    0,    0,    1,    0,    6,    0,    0xff, 0xff, 0xff,
                                0xff, 2,    0,    6,    0,    0xd2, 0x04, 0,    0,    4,    0,
                                4,    0,    0xff, 0xff, 0xff, 0xff, 0x10, 0,    6,    0,    0xff,
                                0xff, 0xff, 0xff, 0x20, 0,    0,    0,    0xff, 0xff, 0xff, 0xff};
  const std::string folder = fs::path(path()).parent_path().string();
  if (setxattr(folder.c_str(), "system.posix_acl_default", list, sizeof list, 0) != 0)
    GTEST_SKIP() << "no access lists here";
  ASSERT_EQ(chmod(path().c_str(), 0640), 0);
  const auto device = Make();
  EXPECT_EQ(Write(*device, 0, "new"), 0);
  EXPECT_TRUE(device->Publish(Publishing::kWithLastClose).ok());
  EXPECT_EQ(getxattr(path().c_str(), "system.posix_acl_access", nullptr, 0), -1);
  struct stat found;
  ASSERT_EQ(stat(path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0640u);
}

// A child that lives on does not keep the name from the next one.
TEST_F(PublishedDeviceTest, AForkedChildKeepsNoClaim) {
  auto device = Make();
  EXPECT_EQ(Write(*device, 0, "new"), 0);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  device->Withhold(Withholding::kLeftOpen);
  EXPECT_EQ(device->Close(), 0);
  EXPECT_NE(Make(), nullptr);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// Its parent's files are not a child's to publish, as long as the parent lives.
TEST_F(PublishedDeviceTest, AForkedChildPublishesNothing) {
  const auto device = Make();
  EXPECT_EQ(Write(*device, 0, "new"), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool ok = device->Publish(Publishing::kWithLastClose).ok();
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content(), "old");
  EXPECT_TRUE(device->Publish(Publishing::kWithLastClose).ok());
  EXPECT_EQ(content(), "new");
}

TEST_F(PublishedDeviceTest, SweepingRemovesOnlyWhatNobodyWrites) {
  const auto device = Make();
  SweepHidden(path().c_str());
  EXPECT_TRUE(fs::exists(hidden()));
  EXPECT_TRUE(IsBeingWritten(hidden().c_str()));
  const std::string other = fs::path(path()).replace_filename("y").string();
  std::ofstream(fs::path(path()).replace_filename(".y.unpublished")) << "left";
  SweepHidden(other.c_str());
  EXPECT_FALSE(fs::exists(fs::path(path()).replace_filename(".y.unpublished")));
  fs::create_symlink(path(), fs::path(path()).replace_filename(".z.unpublished"));
  SweepHidden(fs::path(path()).replace_filename("z").c_str());
  EXPECT_TRUE(fs::is_symlink(fs::path(path()).replace_filename(".z.unpublished")));
  EXPECT_EQ(content(), "old");
}

}  // namespace
}  // namespace tidelane
