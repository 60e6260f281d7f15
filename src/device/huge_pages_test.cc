/// \file
/// What is written through windows is what the file has, where the system refuses huge pages, too.
#include "device/huge_pages.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

constexpr uint64_t kPage = HugePages::kPage;
constexpr uint64_t kMiB = uint64_t{1} << 20;

class HugePagesTest : public testing::Test {
 protected:
  HugePagesTest() { fd_ = NewFile("/dev/shm/"); }
  ~HugePagesTest() override { close(fd_); }

  static int NewFile(const std::string& folder) {
    std::string path = folder + "tidelane_huge_pages_XXXXXX";
    const int fd = mkostemp(path.data(), O_CLOEXEC);
    unlink(path.c_str());
    return fd;
  }
  // As a segment is written: through a window, if there is one.
  bool Write(uint64_t offset, const std::vector<std::byte>& bytes) {
    const FileWindow window = pages_.Open(fd_, offset, bytes.size());
    if (window.empty()) {
      EXPECT_EQ(pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
                static_cast<ssize_t>(bytes.size()));
    } else {
      std::memcpy(window.data(), bytes.data(), bytes.size());
    }
    return !window.empty();
  }
  std::vector<std::byte> All(uint64_t size) const {
    std::vector<std::byte> bytes(size);
    const ssize_t got = pread(fd_, bytes.data(), size, 0);
    EXPECT_GE(got, 0);
    return bytes;
  }
  uint64_t Size() const {
    struct stat found{};
    EXPECT_EQ(fstat(fd_, &found), 0);
    return static_cast<uint64_t>(found.st_size);
  }
  // Older kernels, and where an administrator has denied them.
  bool HasHugePages() {
    HugePages pages;
    const int fd = NewFile("/dev/shm/");
    HugePages::MakeAll(fd, 4 * kPage);
    const bool has = !pages.Open(fd, 0, 4 * kPage).empty();
    close(fd);
    return has;
  }

  int fd_ = -1;
  HugePages pages_;
};

// Large and small writes anywhere, through windows where there are some, and what there is afterwards. How many windows; -1: it differs.
int WriteAnywhere(int fd, uint64_t size, bool ready) {
  // Otherwise it depends on the machine how many there are: where one takes long, small ones are taken for a while.
  if (ready) HugePages::MakeAll(fd, size);
  HugePages pages;
  std::mt19937 random(7);
  std::vector<std::byte> expected(size);
  int windows = 0;
  for (int i = 0; i < 400; ++i) {
    const uint64_t most = i % 3 == 0 ? size / 5 : uint64_t{300} << 10;
    std::vector<std::byte> bytes(1 + random() % most);
    const uint64_t offset = random() % (size - bytes.size());
    std::memset(bytes.data(), 1 + i % 255, bytes.size());
    bytes.back() = std::byte{0};
    {
      const FileWindow window = pages.Open(fd, offset, bytes.size());
      if (!window.empty()) std::memcpy(window.data(), bytes.data(), bytes.size());
      if (window.empty() && pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)) !=
                                static_cast<ssize_t>(bytes.size()))
        return -1;
      windows += window.empty() ? 0 : 1;
    }
    std::ranges::copy(bytes, expected.begin() + static_cast<ptrdiff_t>(offset));
  }
  std::vector<std::byte> found(size);
  return pread(fd, found.data(), size, 0) >= 0 && found == expected ? windows : -1;
}

TEST_F(HugePagesTest, BytesThroughWindowsAndBesideThemAreTheFiles) {
  EXPECT_GE(WriteAnywhere(fd_, 40 * kMiB, false), 0);
  ASSERT_EQ(ftruncate(fd_, 0), 0);
  EXPECT_GE(WriteAnywhere(fd_, 40 * kMiB, true), HasHugePages() ? 100 : 0);
  EXPECT_LE(Size(), 40 * kMiB);
}

// A tmpfs whose mount has huge pages: there MADV_COLLAPSE finds one that nobody has touched, and what is stored into it was lost.
class HugeMountTest : public testing::TestWithParam<const char*> {
 protected:
  // In a namespace of its own, so in a child; without privileges in a user namespace.
  static bool Mount(const std::string& folder, const std::string& size) {
    const uid_t user = geteuid();
    const bool own = user == 0 ? unshare(CLONE_NEWNS) == 0
                               : unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && MapToRoot(user);
    return own && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("tmpfs", folder.c_str(), "tmpfs", 0,
                 ("size=" + size + ",mode=700,huge=" + GetParam()).c_str()) == 0;
  }
  // Where a page took long, small ones are taken for a while.
  static FileWindow OpenAfterPauses(HugePages& pages, int fd, uint64_t offset, uint64_t size) {
    for (int i = 0; i < 40; ++i) {
      if (FileWindow window = pages.Open(fd, offset, size); !window.empty()) return window;
      usleep(100'000);
    }
    return {};
  }
  static bool MapToRoot(uid_t user) {
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    return geteuid() == 0;
  }
};

TEST_P(HugeMountTest, WhatIsStoredIsTheFiles) {
  constexpr int kSkipped = 77;
  std::string folder = testing::TempDir() + "tidelane_huge_mount_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (!Mount(folder, "128m")) _exit(kSkipped);
    const int fd = open((folder + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    HugePages pages;
    const uint64_t size = 3 * kPage + 12345;
    const std::vector<std::byte> bytes(size, std::byte{7});
    const std::vector<std::byte> small(100, std::byte{9});
    {
      const FileWindow window = OpenAfterPauses(pages, fd, 5000, size);
      if (window.empty()) _exit(kSkipped);
      std::memcpy(window.data(), bytes.data(), size);
    }
    // That the system writes, too, is when it set them to zero.
    std::vector<std::byte> read(size);
    const bool same = pwrite(fd, small.data(), 100, 0) == 100 &&
                      pwrite(fd, small.data(), 100, 4 * kPage - 100) == 100 &&
                      pread(fd, read.data(), size, 5000) == static_cast<ssize_t>(size) &&
                      read == bytes;
    if (!same || ftruncate(fd, 0) != 0) _exit(1);
    const bool all = WriteAnywhere(fd, 20 * kMiB, false) >= 0 && ftruncate(fd, 0) == 0 &&
                     WriteAnywhere(fd, 20 * kMiB, true) >= 0;
    _exit(all ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  rmdir(folder.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSkipped)
    GTEST_SKIP() << "no mounts, or no huge pages, for this user";
  EXPECT_EQ(status, 0);
}

// What they have more than what is written into them is not what fills it.
TEST_P(HugeMountTest, ASmallFileSystemIsLeftAlone) {
  std::string folder = testing::TempDir() + "tidelane_huge_mount_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (!Mount(folder, "48m")) _exit(0);
    const int fd = open((folder + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    HugePages pages;
    struct stat found{};
    const bool none = pages.Open(fd, 0, 8 * kMiB).empty();
    _exit(none && fstat(fd, &found) == 0 && found.st_size == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  rmdir(folder.c_str());
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Huge, HugeMountTest,
                         testing::Values("never", "advise", "within_size", "always"));

TEST_F(HugePagesTest, AShortFileStaysAsItIs) {
  EXPECT_FALSE(Write(0, std::vector<std::byte>(HugePages::kFrom)));
  EXPECT_EQ(Size(), HugePages::kFrom);
}

TEST_F(HugePagesTest, AWindowBeginsAnywhere) {
  if (!HasHugePages()) GTEST_SKIP() << "no huge pages here";
  std::vector<std::byte> expected(4 * kPage);
  const std::vector<std::byte> bytes(kPage + 1234, std::byte{9});
  HugePages::MakeAll(fd_, 4 * kPage);
  EXPECT_TRUE(Write(2 * kPage - 77, bytes));
  std::ranges::copy(bytes, expected.begin() + static_cast<ptrdiff_t>(2 * kPage - 77));
  EXPECT_EQ(All(4 * kPage), expected);
  EXPECT_EQ(Size(), 4 * kPage);
}

// What others have written into the pages before stays.
TEST_F(HugePagesTest, WhatWasThereStays) {
  std::vector<std::byte> expected(4 * kPage, std::byte{5});
  EXPECT_EQ(pwrite(fd_, expected.data(), expected.size(), 0),
            static_cast<ssize_t>(expected.size()));
  const std::vector<std::byte> bytes(kMiB, std::byte{6});
  Write(3 * kPage + 4096, bytes);
  std::ranges::copy(bytes, expected.begin() + static_cast<ptrdiff_t>(3 * kPage + 4096));
  EXPECT_EQ(All(4 * kPage), expected);
}

// A store beyond would be a signal: without room there is no window.
TEST_F(HugePagesTest, WithoutRoomThereIsNoWindow) {
  const int file = memfd_create("tidelane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(3 * kPage)), 0);
  ASSERT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_GROW), 0);
  HugePages::MakeAll(file, 3 * kPage);
  EXPECT_TRUE(pages_.Open(file, 3 * kPage, kPage).empty());
  const bool inside = !pages_.Open(file, 0, 3 * kPage).empty();
  EXPECT_EQ(inside, HasHugePages());
  close(file);
}

TEST_F(HugePagesTest, AFullFileSystemGivesNoWindow) {
  const int file = memfd_create("tidelane", MFD_CLOEXEC);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 8 * kMiB, .rlim_max = before.rlim_max};
    const bool limited = setrlimit(RLIMIT_FSIZE, &limit) == 0;
    const bool refused = pages_.Open(file, 7 * kMiB, 2 * kMiB).empty();
    _exit(limited && refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(file);
}

// As an older kernel does, here because of the kind of file. It is not asked again for a while.
TEST_F(HugePagesTest, WhereTheSystemRefusesThemItWrites) {
  const int file = NewFile(testing::TempDir());
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = pages_.Open(file, 0, 6 * kMiB).empty();
    const bool pauses = !Write(0, std::vector<std::byte>(6 * kMiB, std::byte{3}));
    _exit(refused && pauses ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(All(6 * kMiB), std::vector<std::byte>(6 * kMiB, std::byte{3}));
  close(file);
}

// A child that had a part of it mapped would hold the locks of a parent that was killed.
TEST_F(HugePagesTest, AChildHasNoWindow) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "its madvise knows no MADV_DONTFORK";
#endif
  if (!HasHugePages()) GTEST_SKIP() << "no huge pages here";
  HugePages::MakeAll(fd_, 4 * kPage);
  FileWindow window = pages_.Open(fd_, 0, 4 * kPage);
  ASSERT_FALSE(window.empty());
  const pid_t child = fork();
  if (child == 0) {
    std::array<unsigned char, 1> there{};
    const long page = sysconf(_SC_PAGESIZE);
    void* const at = window.data();
    const bool gone = mincore(at, static_cast<size_t>(page), there.data()) != 0 && errno == ENOMEM;
    _exit(gone ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(HugePagesTest, ThreadsWriteAtOnce) {
  constexpr uint64_t kEach = 8 * kMiB + 4097;
  constexpr unsigned kThreads = 4;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (uint64_t done = 0; done < kEach;) {
        const uint64_t size = std::min(kEach - done, uint64_t{700} << 10);
        Write(i * kEach + done, std::vector<std::byte>(size, static_cast<std::byte>(i + 1)));
        done += size;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::byte> expected;
  for (unsigned i = 0; i < kThreads; ++i)
    expected.insert(expected.end(), kEach, static_cast<std::byte>(i + 1));
  EXPECT_EQ(All(expected.size()), expected);
}

}  // namespace
}  // namespace tidelane
