/// \file
/// The connector as HDF5 sees it: classes, capabilities, and our driver on its files but not in its
/// answers.
#include "vol/connector.h"

#include <cstring>

#include "base/counters.h"
#include "vol/connector_fixture.h"

namespace tidelane::vol {
namespace {

TEST_F(ConnectorTest, BothNamesHaveAClassAndShareCallbacks) {
  const H5VL_class_t* async = PluginInfo(reinterpret_cast<const void*>(&H5open), "async");
  EXPECT_STREQ(class_->name, "tidelane");
  EXPECT_STREQ(async->name, "async");
  EXPECT_EQ(async->value, 512);
  EXPECT_EQ(async->dataset_cls.write, class_->dataset_cls.write);
  EXPECT_NE(async->introspect_cls.get_conn_cls, class_->introspect_cls.get_conn_cls);
  EXPECT_EQ(PluginInfo(reinterpret_cast<const void*>(&H5Fopen), "tidelane"), class_);
}

// A callback that HDF5's native connector has and ours lacks would be a feature lost.
TEST_F(ConnectorTest, EveryNativeCallbackIsThere) {
  const H5VL_class_t& native = library().hdf5().native();
  const auto* ours = reinterpret_cast<const unsigned char*>(class_);
  const auto* theirs = reinterpret_cast<const unsigned char*>(&native);
  for (size_t at = offsetof(H5VL_class_t, attr_cls); at < sizeof(H5VL_class_t);
       at += sizeof(void*)) {
    void *mine, *other;
    std::memcpy(&mine, ours + at, sizeof mine);
    std::memcpy(&other, theirs + at, sizeof other);
    EXPECT_TRUE(other == nullptr || mine != nullptr) << "callback at offset " << at;
  }
}

TEST_F(ConnectorTest, CapabilitiesAreNativesAndAsynchronous) {
  uint64_t flags = 0;
  ASSERT_GE(H5Pget_vol_cap_flags(fapl_, &flags), 0);
  EXPECT_EQ(flags, library().hdf5().native().cap_flags | H5VL_CAP_FLAG_ASYNC);
}

TEST_F(ConnectorTest, FilesUseOurDriverAndSaySec2) {
  const hid_t file = Create();
  ASSERT_GE(file, 0);
  const hid_t answer = H5Fget_access_plist(file);
  EXPECT_EQ(H5Pget_driver(answer), library().hdf5().Sec2Id(answer));
  hid_t reported = h5::kNoId;
  ASSERT_GE(H5Pget_vol_id(answer, &reported), 0);
  H5VL_class_value_t value = 0;
  ASSERT_GE(H5VLget_value(reported, &value), 0);
  EXPECT_EQ(value, class_->value);
  // Natively opened beside it, the file must conflict: HDF5 sees another driver.
  const hid_t native = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  EXPECT_LT(native, 0);
  H5VLclose(reported);
  H5Pclose(answer);
  EXPECT_GE(H5Fclose(file), 0);
}

TEST_F(ConnectorTest, TheProgramsAccessListIsNotChanged) {
  const hid_t before = H5Pget_driver(fapl_);
  const hid_t file = Create();
  EXPECT_EQ(H5Pget_driver(fapl_), before);
  EXPECT_GE(H5Fclose(file), 0);
}

TEST_F(ConnectorTest, OtherDriversStayAndAreCounted) {
  const uint64_t before = Read(Fallback::kDriver);
  H5Pset_fapl_core(fapl_, 1 << 16, false);
  const hid_t file = Create();
  ASSERT_GE(file, 0);
  const hid_t answer = H5Fget_access_plist(file);
  EXPECT_EQ(H5Pget_driver(answer), H5Pget_driver(fapl_));
  EXPECT_EQ(Read(Fallback::kDriver), before + 1);
  H5Pclose(answer);
  EXPECT_GE(H5Fclose(file), 0);
}

TEST_F(ConnectorTest, AFailedOpenKeepsTheNativeErrno) {
  EXPECT_LT(H5Fopen("no such folder/file.h5", H5F_ACC_RDONLY, fapl_), 0);
  EXPECT_TRUE(ErrorSays("errno = 2"));
}

// Found by h5py's own tests: with the plugin path set, HDF5 asked us whether we could open what the
// native connector could not, and our public calls wiped the native error.
TEST_F(ConnectorTest, AProbeAfterANativeFailureIsAnsweredNo) {
  H5Fclose(Create());
  bool accessible = true;
  H5VL_file_specific_args_t args{};
  args.op_type = H5VL_FILE_IS_ACCESSIBLE;
  args.args.is_accessible.filename = path_.c_str();
  args.args.is_accessible.fapl_id = fapl_;
  args.args.is_accessible.accessible = &accessible;
  H5Fopen("no such file", H5F_ACC_RDONLY, H5P_DEFAULT);
  EXPECT_GE(class_->file_cls.specific(nullptr, &args, H5P_DATASET_XFER_DEFAULT, nullptr), 0);
  EXPECT_FALSE(accessible);
  EXPECT_TRUE(ErrorSays("errno = 2"));
  EXPECT_GT(H5Fis_accessible(path_.c_str(), fapl_), 0) << "a program's own question";
}

// HDF5 leaves the answer of H5Aexists_async unset when there is no such attribute.
TEST_F(ConnectorTest, AnAttributeThatDoesNotExistIsSaidNotTo) {
  const hid_t file = Create();
  const hid_t events = H5EScreate();
  hbool_t exists = true;
  EXPECT_GE(H5Aexists_async(file, "missing", &exists, events), 0);
  EXPECT_FALSE(exists);
  EXPECT_GE(H5ESclose(events), 0);
  EXPECT_GE(H5Fclose(file), 0);
}

TEST_F(ConnectorTest, EventSetsCountWritesFlushesAndCloses) {
  const hid_t events = H5EScreate();
  const hsize_t size = 8;
  const double data[size] = {};
  const hid_t space = H5Screate_simple(1, &size, nullptr);
  const hid_t file = Create();
  const hid_t set =
      H5Dcreate2(file, "d", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_GE(H5Dwrite_async(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data, events), 0);
  EXPECT_GE(H5Fflush_async(file, H5F_SCOPE_LOCAL, events), 0);
  H5Dclose(set);
  EXPECT_GE(H5Fclose_async(file, events), 0);
  uint64_t operations = 0;
  EXPECT_GE(H5ESget_op_counter(events, &operations), 0);
  EXPECT_EQ(operations, 3u);
  size_t left = 1;
  hbool_t failed = true;
  EXPECT_GE(H5ESwait(events, H5ES_WAIT_FOREVER, &left, &failed), 0);
  EXPECT_EQ(left, 0u);
  EXPECT_FALSE(failed);
  H5Sclose(space);
  EXPECT_GE(H5ESclose(events), 0);
}

}  // namespace
}  // namespace tidelane::vol
