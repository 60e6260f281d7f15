/// \file
/// Operations that programs ask for: numbered by HDF5, known to our connector only, carried out on
/// the file.
#include "vol/control.h"

#include <cerrno>

#include "file/file_fixture.h"
#include "h5/protocol.h"
#include "vol/commit.h"
#include "vol/connector_fixture.h"

namespace tidelane::vol {
namespace {

class ControlTest : public ConnectorTest {
 protected:
  void SetUp() override {
    ConnectorTest::SetUp();
    bench_.Open();
    file_ = Create();
    ASSERT_GE(file_, 0);
    const hid_t space = H5Screate(H5S_SCALAR);
    dataset_ = H5Dcreate2(file_, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Sclose(space);
    driver_file = bench_.file_;
  }
  void TearDown() override {
    driver_file.reset();
    H5Dclose(dataset_);
    H5Fclose(file_);
    ConnectorTest::TearDown();
  }

  static int NumberOf(H5VL_subclass_t subclass, const char* name) {
    int number = -1;
    EXPECT_GE(H5VLfind_opt_operation(subclass, name, &number), 0) << name;
    return number;
  }
  herr_t Ask(const char* name, void* args = nullptr) {
    const bool of_file = std::string(name).find("file") != std::string::npos;
    H5VL_optional_args_t operation{NumberOf(of_file ? H5VL_SUBCLS_FILE : H5VL_SUBCLS_DATASET, name),
                                   args};
    return of_file ? H5VLfile_optional_op(file_, &operation, H5P_DEFAULT, H5ES_NONE)
                   : H5VLdataset_optional_op(dataset_, &operation, H5P_DEFAULT, H5ES_NONE);
  }

  FileBench bench_;
  hid_t file_ = h5::kNoId;
  hid_t dataset_ = h5::kNoId;
};

TEST_F(ControlTest, OurConnectorKnowsThemAndTheNativeOneDoesNot) {
  const int wait = NumberOf(H5VL_SUBCLS_FILE, TL_FILE_WAIT);
  EXPECT_TRUE(IsOurs(library(), H5I_FILE, wait));
  EXPECT_FALSE(IsOurs(library(), H5I_FILE, -1));
  EXPECT_FALSE(IsOurs(library(), H5I_FILE, H5VL_NATIVE_FILE_GET_VFD_HANDLE));
  uint64_t flags = 0;
  EXPECT_GE(H5VLquery_optional(file_, H5VL_SUBCLS_FILE, wait, &flags), 0);
  EXPECT_NE(flags & H5VL_OPT_QUERY_SUPPORTED, 0u);
  flags = 0;
  EXPECT_GE(H5VLquery_optional(file_, H5VL_SUBCLS_FILE, H5VL_NATIVE_FILE_GET_SIZE, &flags), 0)
      << "HDF5's own are still answered for";
  const hid_t native = H5Fcreate("control_native.tmp", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_LT(H5VLquery_optional(native, H5VL_SUBCLS_FILE, wait, &flags), 0);
  H5Fclose(native);
  std::remove("control_native.tmp");
}

TEST_F(ControlTest, TheirNumbersAreThoseOfTheFirstRegistration) {
  const Operations before = library().operations;
  RegisterOperations(library());
  EXPECT_EQ(library().operations.dataset[Operations::kTest], before.dataset[Operations::kTest]);
  library().operations = Operations();  // as if another connector had registered the names
  RegisterOperations(library());
  EXPECT_EQ(library().operations.file[Operations::kWait], before.file[Operations::kWait]);
  EXPECT_EQ(library().operations.request[0], before.request[0]);
}

TEST_F(ControlTest, TheyReachTheFile) {
  EXPECT_GE(Ask(TL_DATASET_PAUSE), 0);
  EXPECT_TRUE(bench_.file_->settings().paused);
  ASSERT_TRUE(bench_.Write(0, "abc").ok());
  tl_test_args test{1};
  EXPECT_GE(Ask(TL_FILE_TEST, &test), 0);
  EXPECT_EQ(test.stored, 0);
  EXPECT_GE(Ask(TL_FILE_START), 0);
  EXPECT_FALSE(bench_.file_->settings().paused);
  tl_delay_args delay{1234};
  EXPECT_GE(Ask(TL_DATASET_DELAY, &delay), 0);
  EXPECT_EQ(bench_.file_->settings().delay_us, 1234u);
  EXPECT_GE(Ask(TL_DATASET_WAIT), 0);
  EXPECT_EQ(bench_.Stored(), "abc");
  EXPECT_GE(Ask(TL_DATASET_TEST, &test), 0);
  EXPECT_EQ(test.stored, 1);
}

TEST_F(ControlTest, ACommitIsAFlushOfTheFile) {
  const uint64_t flushes = library().flushes;
  EXPECT_GE(Ask(TL_FILE_COMMIT), 0);
  EXPECT_EQ(library().flushes, flushes + 1);
  EXPECT_FALSE(CommitScope::active());
  driver_file.reset();  // natively, too
  EXPECT_GE(Ask(TL_FILE_COMMIT), 0);
  EXPECT_EQ(library().flushes, flushes + 2);
  EXPECT_FALSE(IsOurs(library(), H5I_DATASET, NumberOf(H5VL_SUBCLS_FILE, TL_FILE_COMMIT)));
}

TEST_F(ControlTest, WhatCannotBeStoredFailsTheWait) {
  FailingWrites failing(bench_, ENOSPC);
  ASSERT_TRUE(bench_.Write(0, "abc").ok());
  EXPECT_LT(Ask(TL_FILE_WAIT), 0);
  EXPECT_TRUE(ErrorSays("memory.h5"));
  failing.failing = false;
  EXPECT_GE(Ask(TL_FILE_WAIT), 0);
}

TEST_F(ControlTest, AFileThatRunsNativelyHasNothingPending) {
  driver_file.reset();
  tl_test_args test{0};
  EXPECT_GE(Ask(TL_FILE_TEST, &test), 0);
  EXPECT_EQ(test.stored, 1);
  EXPECT_GE(Ask(TL_DATASET_WAIT), 0);
}

TEST_F(ControlTest, ARequestIsStartedAndDependsOnNothing) {
  CallScope scope(CallScope::kNone, true);
  ASSERT_TRUE(bench_.Write(0, "abc").ok());
  Request* request = library().requests.Issue(scope.TakeCompletion());
  H5VL_optional_args_t args{library().operations.request[Operations::kRequestDependency], nullptr};
  EXPECT_EQ(RequestOptional(library(), request, &args), 0);
  args.op_type = library().operations.request[Operations::kRequestStart];
  EXPECT_EQ(RequestOptional(library(), request, &args), 0);
  bench_.RunLanes();
  EXPECT_EQ(bench_.Stored(), "abc");
  args.op_type = -5;
  EXPECT_LT(RequestOptional(library(), request, &args), 0);
  library().requests.Wait(*request, UINT64_MAX);
  RequestFree(library(), request);
}

}  // namespace
}  // namespace tidelane::vol
