#include "base/notices.h"

#include <gtest/gtest.h>

namespace tidelane {
namespace {

int scheduled = 0;
int Schedule(TellNotices tell, void*) {
  EXPECT_NE(tell, nullptr);
  ++scheduled;
  return 0;
}
int Tell(void*) { return 0; }

class NoticesTest : public testing::Test {
 protected:
  void SetUp() override { scheduled = 0; }
  void TearDown() override {
    ListenForNotices(nullptr, nullptr);
    TakeNotices();
  }
};

TEST_F(NoticesTest, NobodyListens) {
  NoteNative(Fallback::kDriver, "nobody.h5");
  EXPECT_TRUE(TakeNotices().empty());
}

TEST_F(NoticesTest, IsToldOnceForAFileAndAReason) {
  ListenForNotices(Schedule, Tell);
  NoteNative(Fallback::kDriver, "once.h5");
  NoteNative(Fallback::kDriver, "once.h5");
  NoteNative(Fallback::kSwmrWrite, "once.h5");
  EXPECT_EQ(scheduled, 2);
  const std::vector<Notice> taken = TakeNotices();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].reason, Fallback::kDriver);
  EXPECT_EQ(taken[1].reason, Fallback::kSwmrWrite);
  NoteNative(Fallback::kDriver, "once.h5");
  EXPECT_TRUE(TakeNotices().empty());
}

TEST_F(NoticesTest, AreBounded) {
  ListenForNotices(Schedule, Tell);
  for (int i = 0; i < 1000; ++i) NoteNative(Fallback::kDriver, std::to_string(i));
  EXPECT_LE(TakeNotices().size(), 64u);
}

}  // namespace
}  // namespace tidelane
