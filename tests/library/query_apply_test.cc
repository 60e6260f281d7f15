/// \file
/// What H5Qapply hands to the plugin, and gives back: seen by a connector that answers the operation and does nothing else.
#include <cstdint>
#include <string>
#include <vector>

#include <H5VLconnector.h>
#include <gtest/gtest.h>

#include "h5/protocol.h"
#include "tidelane_query.h"

namespace {

struct Seen {
  tl_query_apply_args args = {};
  std::string query;
  std::vector<int64_t> locations;
  hid_t list = H5I_INVALID_HID;
  void* object = nullptr;
  int times = 0;
  bool fails = false;
} seen;

int operation = 0;
int files[2];  // what the connector's files are

void* CreateFile(const char* name, unsigned, hid_t, hid_t, hid_t, void**) {
  return &files[std::string(name) == "second"];
}

herr_t CloseFile(void*, hid_t, void**) { return 0; }

herr_t FileOptional(void* object, H5VL_optional_args_t* asked, hid_t, void**) {
  if (asked->op_type != operation || seen.fails) return -1;
  auto* args = static_cast<tl_query_apply_args*>(asked->args);
  seen.args = *args;
  seen.query.assign(static_cast<const char*>(args->query), args->query_size);
  seen.locations.assign(args->locations, args->locations + args->location_count);
  seen.object = object;
  ++seen.times;
  *args->result = TL_QUERY_FOUND_REGIONS | TL_QUERY_FOUND_ATTRIBUTES;
  args->view = 4711;
  return 0;
}

herr_t Supports(void*, H5VL_subclass_t subclass, int op, uint64_t* flags) {
  *flags = subclass == H5VL_SUBCLS_FILE && op == operation ? H5VL_OPT_QUERY_SUPPORTED : 0;
  return 0;
}

H5VL_class_t Connector() {
  H5VL_class_t connector = {};
  connector.version = H5VL_VERSION;
  connector.value = static_cast<H5VL_class_value_t>(500);
  connector.name = "answers_queries";
  connector.file_cls.create = CreateFile;
  connector.file_cls.close = CloseFile;
  connector.file_cls.optional = FileOptional;
  connector.introspect_cls.opt_query = Supports;
  return connector;
}

class LibraryQueryApplyTest : public testing::Test {
 protected:
  LibraryQueryApplyTest() {
    static const H5VL_class_t connector = Connector();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    seen = Seen();
    const hid_t vol = H5VLregister_connector(&connector, H5P_DEFAULT);
    const hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    EXPECT_GE(H5Pset_vol(fapl, vol, nullptr), 0);
    if (H5VLfind_opt_operation(H5VL_SUBCLS_FILE, TL_QUERY_APPLY, &operation) < 0) {
      EXPECT_GE(H5VLregister_opt_operation(H5VL_SUBCLS_FILE, TL_QUERY_APPLY, &operation), 0);
    }
    places_[0] = H5Fcreate("first", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    places_[1] = H5Fcreate("second", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    EXPECT_GE(H5Pclose(fapl), 0);
    EXPECT_GE(H5VLclose(vol), 0);
    const int three = 3;
    query_ = H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_LESS_THAN, H5T_NATIVE_INT, &three);
    H5Qencode(query_, nullptr, &size_);
    bytes_.resize(size_);
    H5Qencode(query_, bytes_.data(), &size_);
  }
  ~LibraryQueryApplyTest() override {
    EXPECT_GE(H5Qclose(query_), 0);
    for (const hid_t place : places_) EXPECT_GE(H5Fclose(place), 0);
  }

  hid_t places_[2];
  hid_t query_;
  size_t size_ = 0;
  std::string bytes_;
};

TEST_F(LibraryQueryApplyTest, TheQueryAndTheLocationReachThePlugin) {
  unsigned result = 99;
  EXPECT_EQ(H5Qapply(places_[0], query_, &result, H5P_DEFAULT), 4711);
  EXPECT_EQ(result, H5Q_REF_REG | H5Q_REF_ATTR);
  EXPECT_EQ(seen.times, 1);
  EXPECT_EQ(seen.object, &files[0]);
  EXPECT_EQ(seen.args.size, sizeof(tl_query_apply_args));
  EXPECT_EQ(seen.args.flags, 0u);
  EXPECT_EQ(seen.args.view, -1);
  EXPECT_EQ(seen.args.view_list, H5P_DEFAULT);
  EXPECT_EQ(seen.args.result, &result);
  EXPECT_EQ(seen.query, bytes_);
  EXPECT_EQ(seen.locations, std::vector<int64_t>{places_[0]});
}

TEST_F(LibraryQueryApplyTest, SeveralLocationsAreOneOperation) {
  unsigned result = 0;
  hid_t locations[2] = {places_[1], places_[0]};
  EXPECT_EQ(H5Qapply_multi(2, locations, query_, &result, H5P_DEFAULT), 4711);
  EXPECT_EQ(seen.times, 1);
  EXPECT_EQ(seen.object, &files[1]) << "of the first";
  EXPECT_EQ(seen.locations, (std::vector<int64_t>{places_[1], places_[0]}));
}

TEST_F(LibraryQueryApplyTest, EventSets) {
  unsigned result = 0;
  size_t left = 1;
  hbool_t failed = true;
  const hid_t set = H5EScreate();
  EXPECT_EQ(H5Qapply_async(places_[0], query_, &result, H5P_DEFAULT, set), 4711);
  EXPECT_EQ(H5Qapply_multi_async(2, places_, query_, &result, H5P_DEFAULT, set), 4711);
  EXPECT_GE(H5ESwait(set, UINT64_MAX, &left, &failed), 0);
  EXPECT_FALSE(failed);
  EXPECT_EQ(result, H5Q_REF_REG | H5Q_REF_ATTR);
  EXPECT_EQ(seen.times, 2);
  EXPECT_GE(H5ESclose(set), 0);
}

TEST_F(LibraryQueryApplyTest, WhatThePluginRefusesFails) {
  unsigned result = 99;
  seen.fails = true;
  EXPECT_LT(H5Qapply(places_[0], query_, &result, H5P_DEFAULT), 0);
  EXPECT_EQ(result, 0u);
}

// One of them natively: nothing is asked, because part of an answer would be taken for all of it.
TEST_F(LibraryQueryApplyTest, NothingIsAskedUnlessEachLocationAnswers) {
  unsigned result = 0;
  const hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(fapl, 65536, 0);
  hid_t locations[2] = {places_[0], H5Fcreate("native", H5F_ACC_TRUNC, H5P_DEFAULT, fapl)};
  EXPECT_LT(H5Qapply_multi(2, locations, query_, &result, H5P_DEFAULT), 0);
  EXPECT_EQ(seen.times, 0);
  EXPECT_GE(H5Fclose(locations[1]), 0);
  EXPECT_GE(H5Pclose(fapl), 0);
}

}  // namespace
