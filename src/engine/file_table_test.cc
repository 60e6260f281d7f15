/// \file
/// The engine's table of files: their states, and what names lead to.
#include "engine/file_table.h"

#include <fcntl.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "engine/engine.h"

namespace tidelane {
namespace {

using Files = FileTable::Files;

class FileTableTest : public ::testing::Test {
 protected:
  FileTableTest() {
    std::string folder = ::testing::TempDir() + "tidelane_table_XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  ~FileTableTest() override {
    for (const auto& file : opened_) EXPECT_TRUE(Engine::Get().Close(file).ok());
    std::filesystem::remove_all(folder_);
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  FileName At(const std::string& name) const { return FileName::LeadsTo(Path(name).c_str()); }
  std::shared_ptr<File> Opened(const std::string& name) {
    OpenOptions options;
    options.flags = O_RDWR | O_CREAT;
    std::shared_ptr<File> file;
    EXPECT_TRUE(Engine::Get().Open(Path(name).c_str(), options, file).ok());
    opened_.push_back(file);
    return file;
  }

  std::string folder_;
  Files opened_;
  FileTable table_;
};

// A lane closes a device and then takes the file out of the table. Who opens the file meanwhile, and closes it, and opens it again,
// must wait for the second one's lock, too.
TEST_F(FileTableTest, AnInodeMayHaveSeveralFilesThatLeave) {
  const auto older = Opened("file"), newer = Opened("file"), another = Opened("another");
  for (const auto& file : {older, newer, another}) table_.AddOpen(file, std::nullopt);
  EXPECT_EQ(table_.ClosedAt(At("file")), Files());
  table_.StartDraining(older);
  EXPECT_TRUE(table_.StartLeaving(older));
  EXPECT_FALSE(table_.StartLeaving(older)) << "somebody was faster";
  table_.StartDraining(newer);
  EXPECT_EQ(table_.ClosedAt(At("file")), Files({older, newer}));
  EXPECT_EQ(table_.DrainingAt(At("file")), newer);
  EXPECT_TRUE(table_.StartLeaving(newer));
  EXPECT_EQ(table_.DrainingAt(At("file")), nullptr);
  EXPECT_EQ(table_.ClosedAt(At("file")), Files({older, newer}));
  EXPECT_EQ(table_.closed(), 2u);
  table_.Remove(older);
  EXPECT_EQ(table_.ClosedAt(At("file")), Files({newer}));
  EXPECT_EQ(table_.Known(), Files({another}));
  EXPECT_EQ(table_.All(), Files({another, newer}));
}

TEST_F(FileTableTest, AFileIsFoundByItsInodeAndByTheNameThatItWasOpenedBy) {
  const auto file = Opened("file");
  table_.AddOpen(file, std::nullopt);
  std::filesystem::rename(Path("file"), Path("moved"));
  EXPECT_EQ(table_.At(At("moved")), Files({file}));
  EXPECT_EQ(table_.At(At("file")), Files({file}));
  const auto next = Opened("file");
  table_.AddOpen(next, std::nullopt);
  EXPECT_EQ(table_.At(At("file")), Files({file, next}));
  EXPECT_EQ(table_.At(At("moved")), Files({file}));
  EXPECT_EQ(table_.At(At("none")), Files());
  table_.StartDraining(file);
  EXPECT_EQ(table_.DrainingAt(At("file")), nullptr) << "another inode is there now";
  EXPECT_EQ(table_.DrainingAt(At("moved")), file);
  EXPECT_TRUE(table_.Knows(file->identity()));
  EXPECT_EQ(table_.OpenAs(file->identity()), Files());
}

TEST_F(FileTableTest, KnowsWhoHasOpenedAFileAndWhy) {
  const auto first = Opened("first"), second = Opened("second");
  EXPECT_TRUE(table_.OnlyBy(1));
  table_.AddOpen(first, FileTable::Opener{.number = 1, .inside = false});
  table_.AddOpen(second, FileTable::Opener{.number = 2, .inside = true});
  EXPECT_FALSE(table_.OnlyBy(1));
  EXPECT_EQ(table_.Inside(1), Files());
  EXPECT_EQ(table_.Inside(2), Files({second}));
  const auto of_ranks = Opened("first");
  table_.AddOpen(of_ranks, std::nullopt);
  EXPECT_EQ(table_.OpenAs(first->identity()), Files({first, of_ranks}));
  EXPECT_EQ(table_.OpenAs(first->identity(), FileTable::By::kAnOpener), Files({first}));
  EXPECT_EQ(table_.OpenAs(first->identity(), FileTable::By::kRanks), Files({of_ranks}));
  table_.StartDraining(second);
  EXPECT_TRUE(table_.OnlyBy(1));
  EXPECT_EQ(table_.Inside(2), Files());
  EXPECT_FALSE(table_.Reopen(second, {.number = 1, .inside = true}))
      << "Closing::Adopt refuses: nobody has closed it";
  EXPECT_EQ(table_.draining(), Files({second}));
  EXPECT_TRUE(table_.OnlyBy(1));
}

}  // namespace
}  // namespace tidelane
