/// \file
/// Whose log goes when a file is created over another one.
#include "engine/store_choice.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/counters.h"
#include "device/claim.h"
#include "log/format.h"
#include "log/superblocks.h"

namespace tidelane {
namespace {

constexpr uint64_t kMark = 0x1234567;

class StoreChoiceTest : public testing::Test {
 protected:
  StoreChoiceTest() {
    std::string folder = testing::TempDir() + "tidelane_store_choice_XXXXXX";
    folder_ = mkdtemp(folder.data());
    settings_.journal = Journal::kProcess;
    const std::vector<std::byte> bytes = log::SuperblockOfVersion(0);
    superblock_ = Superblock(0, bytes);
    PutFile(superblock_.Marked(kMark));
  }
  ~StoreChoiceTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/a.h5"; }
  std::string Segment(uint64_t number) const { return log::SegmentName(path(), number); }
  void Put(const std::string& name, std::span<const std::byte> bytes) const {
    const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    close(fd);
  }
  void PutFile(const Superblock& superblock) const { Put(path(), superblock.bytes()); }
  // The `number`th, 1 or 2, of a file's two.
  void PutSegment(uint64_t number, uint64_t id, uint64_t before) const {
    log::SegmentHeader header;
    header.id = id;
    header.number = number;
    header.before = before;
    header.superblock = superblock_;
    header.path = path();
    std::vector<std::byte> front(log::kDataBegin);
    std::ranges::copy(header.Encode(), front.begin());
    Put(Segment(number), front);
  }
  // What an opening does that truncates the file.
  void CreateOver() { ASSERT_TRUE(Created().ok()); }
  Status Created() {
    const std::string name = path();
    StoreChoice choice(name.c_str(), true, settings_, config_);
    const int fd = open(name.c_str(), O_RDWR | O_TRUNC | O_CLOEXEC);
    struct stat found;
    EXPECT_EQ(fstat(fd, &found), 0);
    const std::unique_ptr<Device> device = MakePosixDevice(fd);
    FileEnvironment environment{.config = config_, .arena = arena_, .lanes = lanes_};
    return choice.Make(true, false, false, found, *device, environment);
  }
  bool Has(uint64_t number) const { return std::filesystem::exists(Segment(number)); }

  std::string folder_;
  FileSettings settings_;
  Superblock superblock_;
  const Config config_;
  Arena arena_{1 << 20};
  Lanes lanes_{0};
};

TEST_F(StoreChoiceTest, TheSegmentOfTheMarkGoesByEitherName) {
  for (const uint64_t number : {1, 2}) {
    PutFile(superblock_.Marked(kMark));
    PutSegment(number, kMark, 0);
    CreateOver();
    EXPECT_FALSE(Has(number)) << number;
  }
}

TEST_F(StoreChoiceTest, SoDoesTheOneThatGoesOn) {
  for (const uint64_t number : {1, 2}) {
    PutFile(superblock_.Marked(kMark));
    PutSegment(number, kMark, 0);
    PutSegment(3 - number, 0x7777777, kMark);
    CreateOver();
    EXPECT_FALSE(Has(1) || Has(2)) << number;
  }
}

TEST_F(StoreChoiceTest, AndTheOneBefore) {
  for (const uint64_t number : {1, 2}) {
    PutFile(superblock_.Marked(kMark));
    PutSegment(number, kMark, 0x7777777);
    PutSegment(3 - number, 0x7777777, 0x55555);
    CreateOver();
    EXPECT_FALSE(Has(1) || Has(2)) << number;
  }
}

TEST_F(StoreChoiceTest, AnothersStays) {
  PutSegment(1, kMark, 0);
  PutSegment(2, 0x7777777, 0x55555);
  CreateOver();
  EXPECT_FALSE(Has(1));
  EXPECT_TRUE(Has(2));
  // Whose the file is not marked with; or not marked at all.
  PutSegment(1, kMark, 0);
  PutFile(superblock_.Marked(0x55555));
  PutSegment(2, 0x7777777, kMark);
  CreateOver();
  EXPECT_TRUE(Has(1) && Has(2));
  PutFile(superblock_);
  CreateOver();
  EXPECT_TRUE(Has(1) && Has(2));
}

// A log cannot be made there, and nobody follows a link to write one elsewhere.
TEST_F(StoreChoiceTest, WhatIsNoFileStandsAgainstALog) {
  settings_.journal_required = true;
  PutFile(superblock_);
  for (const uint64_t number : {1, 2}) {
    std::filesystem::create_symlink("elsewhere", Segment(number));
    EXPECT_EQ(Created().code(), ENOTSUP);
    std::filesystem::remove(Segment(number));
    std::filesystem::create_directory(Segment(number));
    EXPECT_EQ(Created().code(), ENOTSUP);
    std::filesystem::remove(Segment(number));
  }
  EXPECT_TRUE(Created().ok());
}

TEST_F(StoreChoiceTest, OneThatSomebodyHoldsStays) {
  PutSegment(1, kMark, 0);
  PutSegment(2, 0x7777777, kMark);
  const int held = open(Segment(2).c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(Claim(held), 0);
  CreateOver();
  EXPECT_FALSE(Has(1));
  EXPECT_TRUE(Has(2));
  close(held);
}

TEST_F(StoreChoiceTest, WithoutATierTheFileIsJournalledAndThatIsCounted) {
  settings_.journal = Journal::kOff;
  settings_.close_in_tier = true;
  const uint64_t before = Read(Fallback::kTierUnusable);
  std::filesystem::remove(path());
  PutFile(superblock_);
  const std::string name = path();
  StoreChoice choice(name.c_str(), false, settings_, config_);
  const int fd = open(name.c_str(), O_RDWR | O_CLOEXEC);
  struct stat found;
  ASSERT_EQ(fstat(fd, &found), 0);
  const std::shared_ptr<Device> device = MakePosixDevice(fd);
  FileEnvironment environment{.config = config_, .arena = arena_, .lanes = lanes_};
  ASSERT_TRUE(choice.Make(true, false, false, found, *device, environment).ok());
  EXPECT_EQ(Read(Fallback::kTierUnusable), before + 1);
  const std::unique_ptr<Store> store = environment.make_store(device);
  ASSERT_TRUE(store->Settle().ok());
  EXPECT_TRUE(store->commits());
}

}  // namespace
}  // namespace tidelane
