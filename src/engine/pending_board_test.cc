#include "engine/pending_board.h"

#include <unistd.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

TEST(PendingBoard, RowsThatTakeTurnsAreToldApart) {
  Boards boards("rows");
  ASSERT_TRUE(boards.first != nullptr && boards.second != nullptr);
  for (uint64_t block = 0; block < PendingBoard::kRows; ++block) {
    for (uint64_t row = 0; row < 50; ++row) {
      const uint64_t at = block * 100000 + row * 1000;
      boards.first->Extend(at, at + 500);
      EXPECT_TRUE(boards.second->OthersHold(at, at + 1));
      EXPECT_TRUE(boards.second->OthersHold(at + 499, at + 500));
    }
  }
  for (uint64_t block = 0; block < PendingBoard::kRows; ++block) {
    for (uint64_t row = 0; row < 50; ++row) {
      const uint64_t at = block * 100000 + row * 1000;
      EXPECT_TRUE(boards.second->OthersHold(at + 250, at + 260));
      EXPECT_FALSE(boards.second->OthersHold(at + 500, at + 1000));
      EXPECT_TRUE(boards.second->OthersHold(at + 499, at + 1000));
    }
    EXPECT_FALSE(boards.second->OthersHold(block * 100000 + 50000, (block + 1) * 100000));
  }
  EXPECT_TRUE(boards.second->OthersHold(600, 5000)) << "over several rows";
  boards.first->Clear();
  EXPECT_FALSE(boards.second->OthersHold(0, UINT64_MAX));
  boards.first->Extend(7, 8);
  EXPECT_TRUE(boards.second->OthersHold(7, 8));
  EXPECT_FALSE(boards.second->OthersHold(8, UINT64_MAX)) << "nothing is left of the rows before";
}

// Whatever is written, in whatever order: what is held is told.
TEST(PendingBoard, CoversAllThatIsHeld) {
  Boards boards("random");
  ASSERT_TRUE(boards.first != nullptr && boards.second != nullptr);
  std::mt19937 random(1);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<std::pair<uint64_t, uint64_t>> held;
    uint64_t at = random() % 1000;
    const uint64_t pieces = 1 + random() % 200;
    const uint64_t size = 1 + random() % 10;  // some overlap
    for (uint64_t i = 0; i < pieces; ++i) {
      at = random() % 8 == 0 ? random() % 1000 : at + 7;
      const uint64_t end = at + (random() % 8 == 0 ? 1 + random() % 20 : size);
      boards.first->Extend(at, end);
      held.emplace_back(at, end);
    }
    for (const auto& [begin, end] : held) {
      for (uint64_t byte = begin; byte < end; ++byte)
        ASSERT_TRUE(boards.second->OthersHold(byte, byte + 1)) << "turn " << turn << ", " << byte;
      ASSERT_TRUE(boards.second->OthersHold(begin > 3 ? begin - 3 : 0, begin + 1));
    }
    boards.first->Clear();
    ASSERT_FALSE(boards.second->OthersHold(0, UINT64_MAX));
  }
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
