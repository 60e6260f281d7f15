/// \file
/// What lists say is found, and only that.
#include "vol/property_lists.h"

#include <array>

#include "engine/engine.h"
#include "h5/protocol.h"
#include "vol/connector_fixture.h"

namespace tidelane::vol {
namespace {

class PropertyListsTest : public ConnectorTest {
 protected:
  void SetUp() override {
    ConnectorTest::SetUp();
    H5Fclose(Create());  // the default transfer list is known from the first open on
    dxpl_ = H5Pcreate(H5P_DATASET_XFER);
  }
  void TearDown() override {
    H5Pclose(dxpl_);
    ConnectorTest::TearDown();
  }
  template <typename T>
  static void Insert(hid_t list, const char* name, T value) {
    ASSERT_GE(H5Pinsert2(list, name, sizeof value, &value, nullptr, nullptr, nullptr, nullptr,
                         nullptr, nullptr),
              0);
  }
  hid_t dxpl_ = h5::kNoId;
};

TEST_F(PropertyListsTest, AListThatSaysNothingChangesNothing) {
  const FileSettings settings = SettingsFor(library(), fapl_);
  EXPECT_EQ(settings, static_cast<const FileSettings&>(Engine::Get().config()));
  for (const hid_t list : {library().default_dxpl, dxpl_}) {
    const Transfer transfer = TransferOf(library(), list);
    EXPECT_FALSE(transfer.synchronous || transfer.paused || transfer.delay_us ||
                 transfer.copy_limit);
  }
}

TEST_F(PropertyListsTest, AnAccessListSaysHowItsFilesAre) {
  Insert(fapl_, TL_PROPERTY_CLOSE, int{TL_WHEN_DEFERRED});
  Insert(fapl_, TL_PROPERTY_FLUSH, int{TL_WHEN_AS_CONFIGURED});
  Insert(fapl_, TL_PROPERTY_PAUSE, hbool_t{true});
  Insert(fapl_, TL_PROPERTY_DISABLE_IMPLICIT, hbool_t{true});
  Insert(fapl_, TL_PROPERTY_DELAY, uint64_t{99});
  const FileSettings settings = SettingsFor(library(), fapl_);
  EXPECT_TRUE(settings.close_deferred);
  EXPECT_EQ(settings.flush_deferred, Engine::Get().config().flush_deferred);
  EXPECT_TRUE(settings.paused && settings.implicit_sync);
  EXPECT_EQ(settings.delay_us, 99u);
}

TEST_F(PropertyListsTest, AnAccessListSaysHowItsFilesAreJournalled) {
  Insert(fapl_, TL_PROPERTY_JOURNAL, int{TL_JOURNAL_POWER});
  Insert(fapl_, TL_PROPERTY_JOURNAL_REQUIRED, hbool_t{true});
  Insert(fapl_, TL_PROPERTY_JOURNAL_COMMITS, tl_journal_commits{10, 5'000'000});
  FileSettings settings = SettingsFor(library(), fapl_);
  EXPECT_EQ(settings.journal, Journal::kPower);
  EXPECT_TRUE(settings.journal_required);
  EXPECT_EQ(settings.journal_commits, (JournalCommits{.flushes = 10, .us = 5'000'000}));
  const FileSettings& configured = Engine::Get().config();
  const int as_configured = TL_JOURNAL_AS_CONFIGURED;
  const tl_journal_commits never{0, 0};
  ASSERT_GE(H5Pset(fapl_, TL_PROPERTY_JOURNAL, &as_configured), 0);
  ASSERT_GE(H5Pset(fapl_, TL_PROPERTY_JOURNAL_COMMITS, &never), 0);
  settings = SettingsFor(library(), fapl_);
  EXPECT_EQ(settings.journal, configured.journal);
  EXPECT_EQ(settings.journal_commits, configured.journal_commits);
}

TEST_F(PropertyListsTest, ATransferListSaysHowItsWritesAre) {
  Insert(dxpl_, TL_PROPERTY_DISABLE_IMPLICIT, hbool_t{true});
  Insert(dxpl_, TL_PROPERTY_PAUSE, hbool_t{false});
  Insert(dxpl_, TL_PROPERTY_COPY_LIMIT, uint64_t{0});
  const Transfer transfer = TransferOf(library(), dxpl_);
  EXPECT_TRUE(transfer.synchronous);
  EXPECT_EQ(transfer.paused, false);
  EXPECT_FALSE(transfer.delay_us.has_value());
  EXPECT_EQ(transfer.copy_limit, 0u);
}

TEST_F(PropertyListsTest, AStrangersPropertyOfThatNameIsLeftAlone) {
  Insert(dxpl_, TL_PROPERTY_PAUSE, std::array<char, 64>{});
  Insert(dxpl_, "somebody.else", int{1});
  EXPECT_FALSE(TransferOf(library(), dxpl_).paused.has_value());
}

}  // namespace
}  // namespace tidelane::vol
