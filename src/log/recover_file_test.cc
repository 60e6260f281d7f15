// What recovering a file by its name does to storage.
#include "log/recover_file.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "log/superblocks.h"

namespace {
int sync_error = 0;
unsigned syncs = 0;
}  // namespace

// In the place of libc's.
extern "C" int fdatasync(int fd) {
  ++syncs;
  if (sync_error == 0) return static_cast<int>(syscall(SYS_fdatasync, fd));
  errno = sync_error;
  return -1;
}

namespace tidelane::log {
namespace {

namespace fs = std::filesystem;

class RecoverFileTest : public testing::Test {
 protected:
  RecoverFileTest() {
    std::string folder = fs::temp_directory_path() / "recover_file.XXXXXX";
    folder_ = mkdtemp(folder.data());
    std::ofstream file(path());
    for (const std::byte byte : SuperblockOfVersion(2)) file.put(static_cast<char>(byte));
    std::ofstream made(segment());
  }
  ~RecoverFileTest() override {
    sync_error = 0;
    fs::remove_all(folder_);
  }
  std::string path() const { return folder_ / "file.h5"; }
  std::string segment() const { return folder_ / "file.h5-wal.0"; }
  Status FindSpentLog(bool removes) {
    FileByName file;
    if (Status status = file.Open(path(), Purpose::kChange); !status.ok()) return status;
    spent_.clear();
    return file.FindSpentLog(spent_, removes);
  }

  fs::path folder_;
  std::vector<std::string> spent_;
};

// The mark that a killed program took back may be on storage yet: with it, and without the log, the file would be lost.
TEST_F(RecoverFileTest, ASpentLogIsRemovedWhenTheSuperblockIsOnStorage) {
  sync_error = EIO;
  EXPECT_FALSE(FindSpentLog(true).ok());
  EXPECT_TRUE(fs::exists(segment()));
  sync_error = 0;
  syncs = 0;
  EXPECT_TRUE(FindSpentLog(true).ok());
  EXPECT_EQ(syncs, 1u);
  EXPECT_EQ(spent_, std::vector<std::string>{"file.h5-wal.0"});
  EXPECT_FALSE(fs::exists(segment()));
}

TEST_F(RecoverFileTest, WhoOnlyLooksChangesNothing) {
  syncs = 0;
  EXPECT_TRUE(FindSpentLog(false).ok());
  EXPECT_EQ(syncs, 0u);
  EXPECT_EQ(spent_.size(), 1u);
  EXPECT_TRUE(fs::exists(segment()));
}

}  // namespace
}  // namespace tidelane::log
