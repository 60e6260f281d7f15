#include "base/fresh_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

TEST(FreshFile, BitsAreNotGivenTwice) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t bits = RandomBits();
    EXPECT_NE(bits, 0u);
    EXPECT_TRUE(seen.insert(bits).second);
  }
}

TEST(FreshFile, EachIsANewOne) {
  std::string folder = testing::TempDir() + "/freshXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string beside = folder + "/report.json";
  std::string first, second;
  for (std::string* name : {&first, &second}) {
    const int descriptor = CreateFresh(beside, 0640, *name);
    ASSERT_GE(descriptor, 0);
    EXPECT_NE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
    struct stat found;
    ASSERT_EQ(fstat(descriptor, &found), 0);
    EXPECT_EQ(found.st_mode & 0137, 0u);
    close(descriptor);
    EXPECT_TRUE(name->starts_with(beside));
    EXPECT_TRUE(std::filesystem::exists(*name));
  }
  EXPECT_NE(first, second);
  std::filesystem::remove_all(folder);
}

TEST(FreshFile, AFolderThatIsNotThereIsAnError) {
  std::string name;
  EXPECT_EQ(CreateFresh("/nonexistent/file", 0600, name), -1);
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace tidelane
