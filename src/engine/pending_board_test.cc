#include "engine/pending_board.h"

#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

struct Boards {
  explicit Boards(const char* test)
      : name(std::string("tidelane-test-") + test + "-" + std::to_string(getpid())),
        first(PendingBoard::Create(name, 2, 0)),
        second(PendingBoard::Find(name, 2, 1)) {
    PendingBoard::Forget(name);
  }
  const std::string name;
  const std::unique_ptr<PendingBoard> first, second;
};

TEST(PendingBoard, OthersSeeWhatIsHeld) {
  Boards boards("see");
  ASSERT_TRUE(boards.first != nullptr && boards.second != nullptr);
  EXPECT_FALSE(boards.second->OthersHold(0, UINT64_MAX));
  boards.first->Extend(100, 200);
  EXPECT_TRUE(boards.second->OthersHold(150, 151));
  EXPECT_FALSE(boards.second->OthersHold(200, 300));
  EXPECT_FALSE(boards.first->OthersHold(150, 151));  // its own
  boards.first->Clear();
  EXPECT_FALSE(boards.second->OthersHold(0, UINT64_MAX));
}

TEST(PendingBoard, ManyRangesAreJoinedAndStillCovered) {
  Boards boards("many");
  ASSERT_TRUE(boards.first != nullptr && boards.second != nullptr);
  for (uint64_t i = 0; i < 100; ++i) boards.first->Extend(i * 1000, i * 1000 + 10);
  for (uint64_t i = 0; i < 100; ++i)
    EXPECT_TRUE(boards.second->OthersHold(i * 1000 + 9, i * 1000 + 10));
  EXPECT_FALSE(boards.second->OthersHold(99 * 1000 + 10, UINT64_MAX));
}

TEST(PendingBoard, ItsNameIsGoneOnceForgotten) {
  Boards boards("name");
  EXPECT_EQ(PendingBoard::Find(boards.name, 2, 1), nullptr);
}

TEST(PendingBoard, WhoWaitsGoesOnWhenTheBytesAreStored) {
  Boards boards("wait");
  ASSERT_TRUE(boards.first != nullptr && boards.second != nullptr);
  boards.first->Extend(0, 10);
  std::atomic<bool> over{false};
  std::thread waiter([&] {
    boards.second->AwaitOthers(5, 6);
    over = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(over);
  boards.first->Clear();
  waiter.join();
}

TEST(PendingBoard, NobodyWaitsForBytesElsewhere) {
  Boards boards("elsewhere");
  ASSERT_TRUE(boards.first != nullptr && boards.second != nullptr);
  boards.first->Extend(0, 10);
  boards.second->AwaitOthers(10, 20);
}

}  // namespace
}  // namespace tidelane
