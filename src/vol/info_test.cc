/// \file
/// The info string and struct: native is accepted in every spelling in use, anything else is
/// refused by name.
#include "vol/info.h"

#include "vol/connector_fixture.h"

namespace tidelane::vol {
namespace {

TEST(InfoTextTest, NativeInEverySpellingInUse) {
  for (const char* text :
       {"", "  ", "\n", "under_vol=0", "under_vol=0;", "under_vol=0;under_info={}",
        " under_vol=0;under_info={};", "under_vol=0;under_info={}\n"}) {
    EXPECT_TRUE(IsNativeInfo(text)) << '"' << text << '"';
  }
  EXPECT_TRUE(IsNativeInfo(nullptr));
}

TEST(InfoTextTest, AnythingElseIsNot) {
  for (const char* text :
       {"under_vol=1", "under_vol=01", "under_vol=00", "under_vol=512;under_info={under_vol=0}",
        "under_vol=0;under_info={x}", "under_vol=0;under_info={", "under_vol=0 under_info={}",
        "under_vol=", "x", "under_info={}", "UNDER_VOL=0"}) {
    EXPECT_FALSE(IsNativeInfo(text)) << '"' << text << '"';
  }
}

TEST_F(ConnectorTest, TheStringMakesAnInfoAndComesBack) {
  void* info = nullptr;
  ASSERT_GE(H5VLconnector_str_to_info("under_vol=0;under_info={}", connector_, &info), 0);
  char* text = nullptr;
  ASSERT_GE(H5VLconnector_info_to_str(info, connector_, &text), 0);
  EXPECT_STREQ(text, "under_vol=0;under_info={}");
  H5free_memory(text);
  ASSERT_GE(H5Pset_vol(fapl_, connector_, info), 0);
  int order = 1;
  void* copy = nullptr;
  ASSERT_GE(H5Pget_vol_info(fapl_, &copy), 0);
  EXPECT_GE(H5VLcmp_connector_info(&order, connector_, info, copy), 0);
  EXPECT_EQ(order, 0);
  EXPECT_GE(H5VLfree_connector_info(connector_, copy), 0);
  EXPECT_GE(H5VLfree_connector_info(connector_, info), 0);
  const hid_t file = Create();
  EXPECT_GE(file, 0);
  EXPECT_GE(H5Fclose(file), 0);
}

TEST_F(ConnectorTest, AForeignConnectorInTheStringIsRefusedByName) {
  void* info = nullptr;
  EXPECT_LT(H5VLconnector_str_to_info("under_vol=512;under_info={under_vol=0;under_info={}}",
                                      connector_, &info),
            0);
  EXPECT_EQ(info, nullptr);
  EXPECT_TRUE(ErrorSays("stacks on the native connector only"));
}

// Programs written for vol-async fill in the struct themselves.
TEST_F(ConnectorTest, TheStructIsCheckedWhereItIsCopied) {
  Info info{H5VLget_connector_id_by_name("native"), nullptr};
  EXPECT_GE(H5Pset_vol(fapl_, connector_, &info), 0);
  H5VLclose(info.under_vol_id);
  const hid_t file = Create();
  EXPECT_GE(file, 0) << "the copy holds the id";
  EXPECT_GE(H5Fclose(file), 0);

  Info stacked{connector_, nullptr};
  EXPECT_LT(H5Pset_vol(fapl_, connector_, &stacked), 0);
  EXPECT_TRUE(ErrorSays("stacks on the native connector only"));
}

}  // namespace
}  // namespace tidelane::vol
