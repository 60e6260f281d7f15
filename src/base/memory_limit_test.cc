/// \file
/// Memory limits against made-up /proc and /sys trees; ranks from launcher variables.
#include "base/memory_limit.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

namespace fs = std::filesystem;

class MemoryLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/limitXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void Put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }

  std::string root_;
};

TEST_F(MemoryLimitTest, WithoutGroupsPhysicalMemoryCounts) {
  const uint64_t usable = UsableMemoryBytes(root_);
  EXPECT_GT(usable, 16u << 20);
  EXPECT_LE(usable, static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

TEST_F(MemoryLimitTest, Version2TakesTheSmallestOfAllAncestors) {
  Put("/proc/self/cgroup", "0::/job/step/task");
  Put("/sys/fs/cgroup/job/step/task/memory.max", "max");
  Put("/sys/fs/cgroup/job/step/memory.max", "33554432");
  Put("/sys/fs/cgroup/job/memory.max", "67108864");
  EXPECT_EQ(UsableMemoryBytes(root_), 33554432u);
}

TEST_F(MemoryLimitTest, Version2InsideAContainer) {
  Put("/proc/self/cgroup", "0::/../../elsewhere");
  Put("/sys/fs/cgroup/memory.max", "41943040");
  EXPECT_EQ(UsableMemoryBytes(root_), 41943040u);
}

TEST_F(MemoryLimitTest, AddressSpaceThatIsLimitedIsMostlyLeftToTheProgram) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes terabytes of it";
#endif
  constexpr uint64_t kMiB = 1 << 20;
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit limit{4096 * kMiB, 4096 * kMiB};
      if (setrlimit(resource, &limit) != 0) _exit(1);
      const uint64_t before = AddressSpaceLeft();
      if (before == 0 || before >= 4096 * kMiB) _exit(2);
      if (!MayTakeAddressSpace(before / 8) || MayTakeAddressSpace(before / 8 + 1)) _exit(3);
      constexpr uint64_t kTaken = 256 * kMiB;
      if (mmap(nullptr, kTaken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
          MAP_FAILED)
        _exit(4);
      _exit(AddressSpaceLeft() == before - kTaken ? 0 : 5);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << resource;
  }
}

TEST_F(MemoryLimitTest, Version1) {
  Put("/proc/self/cgroup", "9:cpu,cpuacct:/a\n4:memory:/slurm/job\n1:name=systemd:/b");
  Put("/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "50331648");
  Put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(UsableMemoryBytes(root_), 50331648u);
}

TEST_F(MemoryLimitTest, NonsenseIsNoLimit) {
  const uint64_t unlimited = UsableMemoryBytes(root_);
  Put("/proc/self/cgroup", "garbage\n0::/a");
  Put("/sys/fs/cgroup/a/memory.max", "lots");
  EXPECT_EQ(UsableMemoryBytes(root_), unlimited);
}

TEST_F(MemoryLimitTest, ResourceLimitsCount) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow memory is larger than the limit that is set here";
#endif
  const pid_t child = fork();
  if (child == 0) {
    const struct rlimit limit = {uint64_t{1} << 30, RLIM_INFINITY};
    const bool set = setrlimit(RLIMIT_DATA, &limit) == 0;
    _exit(set && UsableMemoryBytes(root_) == uint64_t{1} << 30 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(RanksTest, LaunchersAreAsked) {
  const char* const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE",
                               "MPI_LOCALNRANKS",
                               "MV2_COMM_WORLD_LOCAL_SIZE",
                               "PMI_LOCAL_SIZE",
                               "PALS_LOCAL_SIZE",
                               "JSM_NAMESPACE_LOCAL_SIZE",
                               "SLURM_STEP_TASKS_PER_NODE",
                               "SLURM_NTASKS_PER_NODE",
                               "SLURM_TASKS_PER_NODE"};
  for (const char* name : names) unsetenv(name);
  EXPECT_EQ(RanksOnThisNode(), 1u);
  for (const char* name : names) {
    setenv(name, "6", 1);
    EXPECT_EQ(RanksOnThisNode(), 6u) << name;
    unsetenv(name);
  }
  setenv("SLURM_TASKS_PER_NODE", "4(x2),3", 1);
  EXPECT_EQ(RanksOnThisNode(), 4u);
  setenv("PMI_LOCAL_SIZE", "nonsense", 1);
  EXPECT_EQ(RanksOnThisNode(), 4u);
  unsetenv("SLURM_TASKS_PER_NODE");
  unsetenv("PMI_LOCAL_SIZE");
}

}  // namespace
}  // namespace tidelane
