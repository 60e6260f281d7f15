// What is open is found by serial number and by file, whatever order it is closed in.
#include "vfd/open_handles.h"

#include <memory>
#include <vector>

#include "file/file_fixture.h"

namespace tidelane::vfd {
namespace {

class OpenHandlesTest : public ::testing::Test {
 protected:
  Handle* Open(unsigned long serial) {
    bench_.Open();
    auto handle = std::make_unique<Handle>();
    handle->file = bench_.file_;
    handles_.Add(handle.get());
    handle->pub.fileno = serial;  // as HDF5, once our open has returned
    all_.push_back(std::move(handle));
    return all_.back().get();
  }

  FileBench bench_;
  std::vector<std::unique_ptr<Handle>> all_;
  OpenHandles handles_;
};

TEST_F(OpenHandlesTest, EachIsFoundUntilItIsClosed) {
  std::vector<Handle*> open;
  for (unsigned long serial = 1; serial <= 9; ++serial) open.push_back(Open(serial));
  for (const size_t closed : {4u, 0u, 8u, 5u}) {
    handles_.Remove(open[closed]);
    EXPECT_EQ(handles_.WithSerial(closed + 1), nullptr);
    EXPECT_EQ(handles_.Of(*open[closed]->file), nullptr);
    open[closed] = nullptr;
    for (size_t i = 0; i < open.size(); ++i) {
      if (open[i] == nullptr) continue;
      EXPECT_EQ(handles_.WithSerial(i + 1), open[i]);
      EXPECT_EQ(handles_.Of(*open[i]->file), open[i]);
    }
  }
  EXPECT_FALSE(handles_.empty());
}

TEST_F(OpenHandlesTest, OneThatIsBeingOpenedHidesNoOther) {
  Handle* const first = Open(7);
  Handle* const second = Open(8);
  Handle* const opening = Open(0);
  EXPECT_EQ(handles_.WithSerial(7), first);
  EXPECT_EQ(handles_.WithSerial(8), second);
  EXPECT_EQ(handles_.Of(*opening->file), opening);
}

// Where HDF5 could not close a file at its end, the numbers begin anew beside it.
TEST_F(OpenHandlesTest, OfTwoWithOneNumberTheNewerOneIsMeant) {
  Handle* const left = Open(3);
  std::vector<Handle*> open;
  for (unsigned long serial = 1; serial <= 4; ++serial) {
    open.push_back(Open(serial));
    for (size_t i = 0; i < open.size(); ++i) EXPECT_EQ(handles_.WithSerial(i + 1), open[i]);
  }
  for (Handle* const handle : open) handles_.Remove(handle);
  EXPECT_EQ(handles_.WithSerial(3), left);
  handles_.Remove(left);
  EXPECT_TRUE(handles_.empty());
}

TEST_F(OpenHandlesTest, AllTakeManyPiecesAgain) {
  const H5FD_class_t many{}, single{};
  Handle* const first = Open(1);
  Handle* const second = Open(2);
  first->pub.cls = second->pub.cls = &many;
  EXPECT_FALSE(handles_.TakeSingly(*first, &single));
  EXPECT_TRUE(handles_.TakeSingly(*first, &single)) << "it did so before";
  EXPECT_FALSE(handles_.TakeSingly(*second, &single));
  EXPECT_TRUE(handles_.TakeSingly(*second, nullptr));
  EXPECT_EQ(first->pub.cls, &single);
  EXPECT_EQ(second->pub.cls, &many);
  handles_.TakeMany();
  EXPECT_EQ(first->pub.cls, &many);
}

}  // namespace
}  // namespace tidelane::vfd
