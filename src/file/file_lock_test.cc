/// \file
/// Who else may see a file: locks on one memory file, through two devices.
#include "file/file_lock.h"

#include <cerrno>
#include <utility>

#include <gtest/gtest.h>

#include "device/fault_device.h"

namespace tidelane {
namespace {

class FileLockTest : public testing::Test {
 protected:
  FileLock Another() { return FileLock(MakeMemoryDevice(file_)); }

  const std::shared_ptr<MemoryFile> file_ = std::make_shared<MemoryFile>();
  FileLock lock_ = Another();
};

TEST_F(FileLockTest, AnExclusiveOneKeepsOthersOutAndASharedOneWriters) {
  ASSERT_EQ(lock_.Take(true, true), 0);
  EXPECT_TRUE(lock_.held() && lock_.alone());
  EXPECT_NE(Another().Take(false, true), 0);
  ASSERT_EQ(lock_.Release(), 0);
  EXPECT_FALSE(lock_.held() || lock_.alone());
  ASSERT_EQ(lock_.Take(false, true), 0);
  EXPECT_FALSE(lock_.alone());
  FileLock other = Another();
  EXPECT_EQ(other.Take(false, true), 0);
  EXPECT_NE(Another().Take(true, true), 0);
}

TEST_F(FileLockTest, BecomesASharedOneOnlyWhenNothingIsPending) {
  ASSERT_EQ(lock_.Take(true, true), 0);
  ASSERT_EQ(lock_.Take(false, false), 0);
  EXPECT_TRUE(lock_.awaits_downgrade() && lock_.alone());
  EXPECT_NE(Another().Take(false, true), 0);
  lock_.Downgrade();
  EXPECT_FALSE(lock_.awaits_downgrade() || lock_.alone());
  EXPECT_TRUE(lock_.held());
  FileLock other = Another();
  EXPECT_EQ(other.Take(false, true), 0);
}

TEST_F(FileLockTest, AWriterThatComesBackKeepsIt) {
  ASSERT_EQ(lock_.Take(true, true), 0);
  ASSERT_EQ(lock_.Take(false, false), 0);
  ASSERT_EQ(lock_.Take(true, false), 0);
  lock_.Downgrade();  // a lane that saw the file drained a moment ago
  EXPECT_TRUE(lock_.alone());
  EXPECT_NE(Another().Take(false, true), 0);
}

TEST_F(FileLockTest, NobodyIsAloneWhoseDescriptorWasHandedOut) {
  ASSERT_EQ(lock_.Take(true, true), 0);
  lock_.HandOut();
  EXPECT_TRUE(lock_.held());
  EXPECT_FALSE(lock_.alone());
}

TEST_F(FileLockTest, GoesWithWhoeverItIsMovedTo) {
  ASSERT_EQ(lock_.Take(true, true), 0);
  FileLock mover = std::move(lock_);
  EXPECT_EQ(lock_.Release(), 0);  // of nothing
  EXPECT_TRUE(mover.held() && mover.alone());
  EXPECT_NE(Another().Take(false, true), 0);
  EXPECT_EQ(mover.Release(), 0);
  EXPECT_EQ(Another().Take(true, true), 0);
}

}  // namespace
}  // namespace tidelane
