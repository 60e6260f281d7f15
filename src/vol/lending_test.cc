/// \file
/// How much of a caller's buffer is lent: what is selected of it, above the limit, while nothing failed.
/// (The limit of a file is asked for inside calls only: tests/conformance/control_test.cc.)
#include "vol/lending.h"

#include <cerrno>
#include <span>

#include "file/file_fixture.h"
#include "vol/connector_fixture.h"

namespace tidelane::vol {
namespace {

constexpr hsize_t kRows = 10;
constexpr hsize_t kColumns = 100;
constexpr uint64_t kBytes = kRows * kColumns * sizeof(int);

class LendingTest : public ConnectorTest {
 protected:
  void SetUp() override {
    ConnectorTest::SetUp();
    library().requests = RequestQueue();
    library().limits_copies = false;
    file_ = Create();
    const hsize_t extent[] = {kRows, kColumns};
    space_ = H5Screate_simple(2, extent, nullptr);
    dataset_ =
        H5Dcreate2(file_, "d", H5T_NATIVE_INT, space_, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    all_.copy_limit = 0;
  }
  void TearDown() override {
    H5Dclose(dataset_);
    H5Sclose(space_);
    H5Fclose(file_);
    ConnectorTest::TearDown();
  }
  uint64_t Lent(hid_t memory_space, hid_t file_space, const Transfer& transfer) {
    return BufferToLend(library(),
                        {H5VLobject(dataset_), H5T_NATIVE_INT, memory_space, file_space, buffer_},
                        transfer)
        .size();
  }

  hid_t file_ = h5::kNoId;
  hid_t space_ = h5::kNoId;
  hid_t dataset_ = h5::kNoId;
  int buffer_[kRows * kColumns] = {};
  Transfer all_;
};

TEST_F(LendingTest, NothingUnlessSomebodyAsksForIt) { EXPECT_EQ(Lent(H5S_ALL, H5S_ALL, {}), 0u); }

TEST_F(LendingTest, WhatTheMemorySpaceSelectsElseTheFilesSpace) {
  const hsize_t some = 7;
  const hid_t line = H5Screate_simple(1, &some, nullptr);
  EXPECT_EQ(Lent(line, space_, all_), 7 * sizeof(int));
  EXPECT_EQ(Lent(H5S_ALL, space_, all_), kBytes);
  EXPECT_EQ(Lent(H5S_ALL, H5S_ALL, all_), kBytes);
  EXPECT_EQ(Lent(H5S_BLOCK, space_, all_), 0u) << "nobody says how long that buffer is";
  H5Sclose(line);
}

// Of a space that is larger than the program's buffer, what lies beyond the selection is somebody else's memory:
// perhaps a buffer of HDF5's, which is written by this very call and freed before it is stored.
TEST_F(LendingTest, NothingBeforeOrBehindTheSelection) {
  const hsize_t start[] = {2, 90};
  const hsize_t count[] = {3, 5};
  H5Sselect_hyperslab(space_, H5S_SELECT_SET, start, nullptr, count, nullptr);
  const std::span<const std::byte> lent = BufferToLend(
      library(), {H5VLobject(dataset_), H5T_NATIVE_INT, H5S_ALL, space_, buffer_}, all_);
  EXPECT_EQ(static_cast<const void*>(lent.data()), &buffer_[2 * kColumns + 90]);
  EXPECT_EQ(lent.size(), (2 * kColumns + 5) * sizeof(int));
  H5Sselect_none(space_);
  EXPECT_EQ(Lent(H5S_ALL, space_, all_), 0u);
}

TEST_F(LendingTest, OneElementIsNotWorthIt) {
  const hid_t scalar = H5Screate(H5S_SCALAR);
  const hid_t null = H5Screate(H5S_NULL);
  EXPECT_EQ(Lent(scalar, space_, all_), 0u);
  EXPECT_EQ(Lent(null, space_, all_), 0u);
  H5Sclose(scalar);
  H5Sclose(null);
}

TEST_F(LendingTest, OnlyWhatIsLargerThanTheLimit) {
  Transfer transfer;
  transfer.copy_limit = kBytes;
  EXPECT_EQ(Lent(H5S_ALL, space_, transfer), 0u);
  transfer.copy_limit = kBytes - 1;
  EXPECT_EQ(Lent(H5S_ALL, space_, transfer), kBytes);
}

// An event set that failed refuses what comes after: nobody would say when a buffer is free.
TEST_F(LendingTest, NothingAfterARequestFailed) {
  FileBench bench;
  bench.Open();
  const FailingWrites failing(bench, ENOSPC);
  CallScope scope(CallScope::kNone, true);
  ASSERT_TRUE(bench.Write(0, "abc").ok());
  Request* request = library().requests.Issue(scope.TakeCompletion());
  EXPECT_EQ(Lent(H5S_ALL, space_, all_), kBytes);
  library().requests.Wait(*request, UINT64_MAX);
  EXPECT_EQ(Lent(H5S_ALL, space_, all_), 0u);
  RequestFree(library(), request);
  library().requests = RequestQueue();
}

}  // namespace
}  // namespace tidelane::vol
