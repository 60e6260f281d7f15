#include "publish/directory_entry.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

namespace fs = std::filesystem;

class DirectoryEntryTest : public ::testing::Test {
 public:
  void SetUp() override {
    char name[] = "/tmp/tidelane-entry-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = fs::path(name);
    fs::create_directories(root_ / "real/below");
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string in(const std::string& name) const { return (root_ / name).string(); }
  // Where it leads; "" and the errno.
  std::string Leads(const std::string& path, bool follow = true) {
    DirectoryEntry entry;
    error_ = DirectoryEntry::Find(path.c_str(), follow, entry);
    if (error_ != 0) return {};
    const fs::path folder = fs::read_symlink("/proc/self/fd/" + std::to_string(entry.folder.get()));
    return (folder / entry.name).lexically_relative(fs::canonical(root_)).string();
  }
  int error() const { return error_; }

 private:
  fs::path root_;
  int error_ = 0;
};

TEST_F(DirectoryEntryTest, LinksAreFollowedAsOpenWouldFollowThem) {
  fs::create_symlink("real", in("folder"));
  fs::create_symlink("../x.h5", in("real/below/up.h5"));
  fs::create_symlink(in("real/below/up.h5"), in("absolute.h5"));
  fs::create_symlink("missing/x.h5", in("nowhere.h5"));
  fs::create_symlink("loop.h5", in("loop.h5"));
  EXPECT_EQ(Leads(in("x.h5")), "x.h5");
  EXPECT_EQ(Leads(in("folder/x.h5")), "real/x.h5");
  EXPECT_EQ(Leads(in("folder/below//up.h5")), "real/x.h5") << "which does not exist";
  EXPECT_EQ(Leads(in("absolute.h5")), "real/x.h5");
  EXPECT_EQ(Leads(in("absolute.h5"), false), "absolute.h5");
  EXPECT_EQ(Leads(in("nowhere.h5")), "");
  EXPECT_EQ(error(), ENOENT);
  EXPECT_EQ(Leads(in("loop.h5")), "");
  EXPECT_EQ(error(), ELOOP);
  EXPECT_EQ(Leads(in("real/")), "");
  EXPECT_EQ(error(), EISDIR);
}

TEST_F(DirectoryEntryTest, TheFolderStaysWhatItWas) {
  DirectoryEntry entry;
  ASSERT_EQ(DirectoryEntry::Find(in("real/x.h5").c_str(), true, entry), 0);
  std::ofstream(in("real/x.h5")) << "x";
  fs::rename(in("real"), in("moved"));
  struct stat found;
  EXPECT_EQ(entry.Look(found), 0);
  EXPECT_EQ(entry.folder_identity, [&] {
    struct stat folder;
    stat(in("moved").c_str(), &folder);
    return IdentityIn(folder);
  }());
}

TEST(HiddenNameTest, IsTheSameForEveryProcessAndFits) {
  EXPECT_EQ(HiddenName("x.h5"), ".x.h5.unpublished");
  EXPECT_TRUE(IsHiddenName(HiddenName("x.h5")));
  EXPECT_FALSE(IsHiddenName("x.h5.unpublished"));
  EXPECT_FALSE(IsHiddenName(".x.h5"));
  EXPECT_FALSE(IsHiddenName(".unpublished"));
  std::string longest(NAME_MAX, 'x');
  const std::string hidden = HiddenName(longest);
  EXPECT_EQ(hidden.size(), static_cast<size_t>(NAME_MAX));
  EXPECT_TRUE(IsHiddenName(hidden));
  longest.back() = 'y';
  EXPECT_NE(HiddenName(longest), hidden);
}

TEST(HiddenNameTest, IsNotCutInsideACharacter) {
  std::string name;
  while (name.size() + 3 <= NAME_MAX) name += "\xE2\x82\xAC";  // the euro sign
  const std::string hidden = HiddenName(name);
  EXPECT_LE(hidden.size(), static_cast<size_t>(NAME_MAX));
  const size_t cut = hidden.find('~');
  ASSERT_NE(cut, std::string::npos);
  EXPECT_EQ((cut - 1) % 3, 0u);
}

TEST(HiddenNameTest, KeptFilesAreSeenAndNumbered) {
  EXPECT_EQ(KeptName("x.h5", 0), "x.h5.unpublished");
  EXPECT_EQ(KeptName("x.h5", 2), "x.h5.unpublished2");
  EXPECT_LE(KeptName(std::string(NAME_MAX, 'x'), 12).size(), static_cast<size_t>(NAME_MAX));
  EXPECT_FALSE(IsHiddenName(KeptName("x.h5", 0)));
}

}  // namespace
}  // namespace tidelane
