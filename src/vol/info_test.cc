/// \file
/// The info string and struct: what is for the native connector is accepted, settings are kept for
/// the file, anything else is refused by name. Spellings are base/connector_info_test.cc's.
#include "vol/info.h"

#include "vol/connector_fixture.h"

namespace tidelane::vol {
namespace {

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

// An Info from a string, and back.
class InfoTest : public ConnectorTest {
 protected:
  void TearDown() override {
    for (void* info : infos_) H5VLfree_connector_info(connector_, info);
    ConnectorTest::TearDown();
  }

  void* FromString(const char* text) {
    void* info = nullptr;
    if (H5VLconnector_str_to_info(text, connector_, &info) < 0) return nullptr;
    infos_.push_back(info);
    return info;
  }

  std::string ToString(const void* info) {
    char* text = nullptr;
    EXPECT_GE(H5VLconnector_info_to_str(info, connector_, &text), 0);
    std::string copy = text == nullptr ? "" : text;
    H5free_memory(text);
    return copy;
  }

  int Order(const void* left, const void* right) {
    int order = 99;
    EXPECT_GE(H5VLcmp_connector_info(&order, connector_, left, right), 0);
    return order;
  }

 private:
  std::vector<void*> infos_;
};

TEST_F(InfoTest, SettingsRoundTrip) {
  const void* info = FromString("gap=64k; close=deferred");
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(ToString(info), "under_vol=0;under_info={};close=deferred;gap=64k");
  const void* again = FromString(ToString(info).c_str());
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(ToString(again), ToString(info));
  EXPECT_EQ(Order(info, again), 0);
}

TEST_F(InfoTest, DifferentSettingsDiffer) {
  const void* none = FromString("under_vol=0");
  const void* deferred = FromString("close=deferred");
  const void* waiting = FromString("close=wait");
  EXPECT_NE(Order(deferred, waiting), 0);
  EXPECT_EQ(Order(deferred, waiting) < 0, Order(waiting, deferred) > 0);
  EXPECT_NE(Order(none, deferred), 0);
  EXPECT_EQ(Order(none, none), 0);
}

TEST_F(InfoTest, TheAccessListCarriesTheSettings) {
  EXPECT_EQ(SettingsOf(library(), fapl_), nullptr) << "no info: the process's settings";
  ASSERT_GE(H5Pset_vol(fapl_, connector_, FromString("under_vol=0;under_info={}")), 0);
  EXPECT_EQ(SettingsOf(library(), fapl_), nullptr) << "none in the info either";
  ASSERT_GE(H5Pset_vol(fapl_, connector_, FromString("close=deferred;copy_limit=0")), 0);
  const hid_t copy = H5Pcopy(fapl_);
  H5Pclose(fapl_);
  fapl_ = copy;
  const FileSettings* settings = SettingsOf(library(), fapl_);
  ASSERT_NE(settings, nullptr);
  EXPECT_TRUE(settings->close_deferred);
  EXPECT_FALSE(settings->flush_deferred);
  EXPECT_EQ(settings->copy_limit, 0u);
}

TEST_F(InfoTest, AnotherConnectorsAccessListSaysNothing) {
  const hid_t native = H5VLget_connector_id_by_name("native");
  ASSERT_GE(H5Pset_vol(fapl_, native, nullptr), 0);
  H5VLclose(native);
  EXPECT_EQ(SettingsOf(library(), fapl_), nullptr);
}

TEST_F(InfoTest, LookingForSettingsKeepsTheErrorStack) {
  EXPECT_LT(H5Fopen("/nowhere/x.h5", H5F_ACC_RDONLY, H5P_DEFAULT), 0);
  const ssize_t before = H5Eget_num(H5E_DEFAULT);
  ASSERT_GT(before, 0);
  EXPECT_EQ(SettingsOf(library(), fapl_), nullptr);
  EXPECT_EQ(H5Eget_num(H5E_DEFAULT), before);
}

// The struct that programs fill in has two fields; what the second one points to is not looked at.
TEST_F(InfoTest, AProgramsOwnPointerIsRefusedAndNotFollowed) {
  Info info{H5VLget_connector_id_by_name("native"), reinterpret_cast<void*>(8)};
  EXPECT_LT(H5Pset_vol(fapl_, connector_, &info), 0);
  EXPECT_TRUE(ErrorSays("under_vol_info must be null"));
  // Copied by its fields, as pass-through connectors do, it keeps what the string said.
  const auto* given = static_cast<const Info*>(FromString("flush=deferred"));
  ASSERT_NE(given, nullptr);
  info.under_vol_info = given->under_vol_info;
  ASSERT_GE(H5Pset_vol(fapl_, connector_, &info), 0);
  H5VLclose(info.under_vol_id);
  const FileSettings* settings = SettingsOf(library(), fapl_);
  ASSERT_NE(settings, nullptr);
  EXPECT_TRUE(settings->flush_deferred);
}

TEST_F(InfoTest, MistakesAreToldOnTheErrorStack) {
  EXPECT_EQ(FromString("close=defered"), nullptr);
  EXPECT_TRUE(
      ErrorSays("cannot use close='defered' (connector info): accepted are wait, "
                "deferred, tier or tier_deferred; the nearest is deferred"));
  EXPECT_EQ(FromString("under_vol=0;under_info={};closes=wait"), nullptr);
  EXPECT_TRUE(ErrorSays("there is no such setting; the nearest is close"));
  EXPECT_EQ(FromString("lanes=63"), nullptr);
  EXPECT_TRUE(ErrorSays("it is one for the whole process"));
}

TEST_F(InfoTest, CombinationsHaveABound) {
  size_t kept = 0;
  for (size_t gap = 0; gap <= kMostChoices; ++gap) {
    void* info = nullptr;
    const std::string text = "gap=" + std::to_string(gap);
    if (H5VLconnector_str_to_info(text.c_str(), connector_, &info) < 0) break;
    H5VLfree_connector_info(connector_, info);
    ++kept;
  }
  EXPECT_GT(kept, kMostChoices / 2);
  EXPECT_LE(kept, kMostChoices);
  EXPECT_TRUE(ErrorSays("yet another combination"));
  library().file_choices->clear();  // other tests want theirs kept
}

}  // namespace
}  // namespace tidelane::vol
