/// \file
/// Limits of control groups against made-up /proc and /sys trees: all levels, both versions, and what is left below them.
#include "base/control_groups.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1 << 20;

class ControlGroupsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/groupsXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void Put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  void Put(const std::string& path, uint64_t number) const { Put(path, std::to_string(number)); }

  std::string root_;
};

TEST_F(ControlGroupsTest, WithoutLimitsEverythingIsLeft) {
  EXPECT_EQ(MemoryGroupLimit(root_), UINT64_MAX);
  EXPECT_EQ(MemoryGroupLeft(root_), UINT64_MAX);
  Put("/proc/self/cgroup", "4:memory:/job\n0::/job");
  Put("/sys/fs/cgroup/job/memory.max", "max");
  Put("/sys/fs/cgroup/job/memory.high", "max");
  Put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(MemoryGroupLeft(root_), UINT64_MAX);
}

TEST_F(ControlGroupsTest, WhereTheProcessIsSlowedDownIsALimit) {
  Put("/proc/self/cgroup", "0::/job");
  Put("/sys/fs/cgroup/job/memory.max", 512 * kMiB);
  Put("/sys/fs/cgroup/job/memory.high", 256 * kMiB);
  EXPECT_EQ(MemoryGroupLimit(root_), 256 * kMiB);
}

TEST_F(ControlGroupsTest, AnEighthIsLeftToTheProgram) {
  Put("/proc/self/cgroup", "0::/job/step");
  Put("/sys/fs/cgroup/job/memory.max", 256 * kMiB);
  Put("/sys/fs/cgroup/job/memory.current", 100 * kMiB);
  EXPECT_EQ(MemoryGroupLeft(root_), 124 * kMiB);
  Put("/sys/fs/cgroup/job/memory.current", 250 * kMiB);
  EXPECT_EQ(MemoryGroupLeft(root_), 0u);
}

TEST_F(ControlGroupsTest, PagesOfFilesAreNotTaken) {
  Put("/proc/self/cgroup", "0::/job");
  Put("/sys/fs/cgroup/job/memory.max", 256 * kMiB);
  Put("/sys/fs/cgroup/job/memory.current", 256 * kMiB);
  Put("/sys/fs/cgroup/job/memory.stat", "anon 5\nworkingset_inactive_file 7\ninactive_file " +
                                            std::to_string(150 * kMiB) + "\nactive_file " +
                                            std::to_string(50 * kMiB));
  EXPECT_EQ(MemoryGroupLeft(root_), 168 * kMiB);
}

TEST_F(ControlGroupsTest, AQuotaOfProcessorsIsRoundedUp) {
  EXPECT_EQ(ProcessorGroupLimit(root_), UINT64_MAX);
  Put("/proc/self/cgroup", "0::/job/step");
  Put("/sys/fs/cgroup/job/step/cpu.max", "max 100000");
  EXPECT_EQ(ProcessorGroupLimit(root_), UINT64_MAX);
  Put("/sys/fs/cgroup/job/cpu.max", "250000 100000");
  EXPECT_EQ(ProcessorGroupLimit(root_), 3u);
  Put("/sys/fs/cgroup/job/step/cpu.max", "1000 100000");
  EXPECT_EQ(ProcessorGroupLimit(root_), 1u);
}

TEST_F(ControlGroupsTest, AQuotaOfTheFirstVersionIsInTwoFiles) {
  Put("/proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job");
  Put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1");
  Put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(ProcessorGroupLimit(root_), UINT64_MAX);
  Put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "400000");
  EXPECT_EQ(ProcessorGroupLimit(root_), 4u);
}

TEST_F(ControlGroupsTest, TheTightestLevelOfBothVersionsBinds) {
  Put("/proc/self/cgroup", "4:memory:/slurm/job\n0::/a");
  Put("/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", 800 * kMiB);
  Put("/sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", 650 * kMiB);
  Put("/sys/fs/cgroup/memory/slurm/job/memory.stat",
      "inactive_file 1\ntotal_inactive_file " + std::to_string(10 * kMiB));
  Put("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", 8000 * kMiB);
  Put("/sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", 650 * kMiB);
  Put("/sys/fs/cgroup/a/memory.max", 8000 * kMiB);
  EXPECT_EQ(MemoryGroupLimit(root_), 800 * kMiB);
  EXPECT_EQ(MemoryGroupLeft(root_), 60 * kMiB);
  Put("/sys/fs/cgroup/a/memory.current", 6990 * kMiB);
  EXPECT_EQ(MemoryGroupLeft(root_), 10 * kMiB);
}

}  // namespace
}  // namespace tidelane
