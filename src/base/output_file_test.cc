/// \file
/// Reports appear whole or not at all, and never replace what is not a plain file.
#include "base/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/outputXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string Contents(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  size_t FilesInFolder() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++count;
    return count;
  }

  std::string folder_;
};

TEST_F(OutputFileTest, PidIsExpanded) {
  const std::string pid = std::to_string(getpid());
  EXPECT_EQ(ExpandPid("a-%p-%p.json"), "a-" + pid + "-" + pid + ".json");
  EXPECT_EQ(ExpandPid("100%"), "100%");
  EXPECT_EQ(ExpandPid("%d%"), "%d%");
}

// Names made of a process id and a counter can be foreseen, and links put there.
TEST_F(OutputFileTest, ALinkUnderATemporaryNameIsNotFollowed) {
  const std::string path = folder_ + "/report", precious = folder_ + "/precious";
  std::ofstream(precious) << "keep me";
  for (int i = 0; i < 100; ++i) {
    const std::string guess = ".tmp." + std::to_string(getpid()) + "." + std::to_string(i);
    fs::create_symlink(precious, path + guess);
  }
  for (int i = 0; i < 3; ++i) {
    OutputFile file;
    ASSERT_TRUE(file.Open(path).ok());
    std::fputs("new", file.stream());
    EXPECT_TRUE(file.Commit().ok());
  }
  EXPECT_EQ(Contents(precious), "keep me");
  EXPECT_EQ(Contents(path), "new");
  EXPECT_FALSE(fs::is_symlink(path));
}

TEST_F(OutputFileTest, TheOldContentsStayUntilCommit) {
  const std::string path = folder_ + "/report";
  std::ofstream(path) << "old";
  OutputFile file;
  ASSERT_TRUE(file.Open(path).ok());
  std::fputs("new", file.stream());
  std::fflush(file.stream());
  EXPECT_EQ(Contents(path), "old");
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_EQ(Contents(path), "new");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(OutputFileTest, WithoutCommitNothingRemains) {
  {
    OutputFile file;
    ASSERT_TRUE(file.Open(folder_ + "/report").ok());
    std::fputs("half", file.stream());
  }
  EXPECT_EQ(FilesInFolder(), 0u);
}

TEST_F(OutputFileTest, ALinkStaysALink) {
  std::ofstream(folder_ + "/real") << "old";
  fs::create_symlink("real", folder_ + "/link");
  OutputFile file;
  ASSERT_TRUE(file.Open(folder_ + "/link").ok());
  std::fputs("new", file.stream());
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_TRUE(fs::is_symlink(folder_ + "/link"));
  EXPECT_EQ(Contents(folder_ + "/real"), "new");
}

TEST_F(OutputFileTest, APipeIsWrittenToNotReplaced) {
  const std::string path = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::FILE* reader = std::fopen(path.c_str(), "r+");  // does not block
  ASSERT_NE(reader, nullptr);
  OutputFile file;
  ASSERT_TRUE(file.Open(path).ok());
  std::fputs("line\n", file.stream());
  ASSERT_TRUE(file.Commit().ok());
  char line[16] = "";
  ASSERT_NE(std::fgets(line, sizeof line, reader), nullptr);
  EXPECT_STREQ(line, "line\n");
  std::fclose(reader);
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST_F(OutputFileTest, FailuresNameTheFile) {
  OutputFile file;
  const Status status = file.Open(folder_ + "/missing/report");
  EXPECT_EQ(status.code(), ENOENT);
  EXPECT_NE(status.Message().find("/missing/report'"), std::string::npos);
}

// A device by its name's beginning only: what is written again replaces what was there.
TEST_F(OutputFileTest, MemoryUnderDevHoldsFilesAsAnyOther) {
  const std::string path = "/dev/shm/tidelane-output-file-test-" + std::to_string(getpid());
  if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm here";
  for (const char* text : {"first, and long", "second"}) {
    OutputFile file;
    ASSERT_TRUE(file.Open(path).ok());
    std::fputs(text, file.stream());
    ASSERT_TRUE(file.Commit().ok());
    EXPECT_EQ(Contents(path), text);
  }
  std::remove(path.c_str());
}

TEST_F(OutputFileTest, AFullDiskIsReportedByCommit) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  OutputFile file;
  ASSERT_TRUE(file.Open("/dev/full").ok());
  std::fputs("lost", file.stream());
  EXPECT_EQ(file.Commit().code(), ENOSPC);
}

}  // namespace
}  // namespace tidelane
