#include "engine/pending_board.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

struct Boards {
  Boards()
      : name(PendingBoard::Name::New()),
        first(PendingBoard::Create(name, 2, 0)),
        second(PendingBoard::Find(name, 2, 1)) {
    PendingBoard::Forget(name);
  }
  const PendingBoard::Name name;
  const std::unique_ptr<PendingBoard> first, second;
};

TEST(PendingBoard, OthersSeeWhatIsHeld) {
  Boards boards;
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
  Boards boards;
  ASSERT_TRUE(boards.first != nullptr && boards.second != nullptr);
  for (uint64_t i = 0; i < 100; ++i) boards.first->Extend(i * 1000, i * 1000 + 10);
  for (uint64_t i = 0; i < 100; ++i)
    EXPECT_TRUE(boards.second->OthersHold(i * 1000 + 9, i * 1000 + 10));
  EXPECT_FALSE(boards.second->OthersHold(99 * 1000 + 10, UINT64_MAX));
}

TEST(PendingBoard, RowsThatTakeTurnsAreToldApart) {
  Boards boards;
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
  Boards boards;
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
  Boards boards;
  EXPECT_EQ(PendingBoard::Find(boards.name, 2, 1), nullptr);
}

// What lies in /dev/shm under a board's name, put there by somebody else.
class ForeignBoard : public testing::Test {
 protected:
  void TearDown() override { PendingBoard::Forget(name_); }

  std::string Content() const {
    std::ostringstream content;
    content << std::ifstream(name_.Path(), std::ios::binary).rdbuf();
    return content.str();
  }
  void Put(const std::string& content, mode_t mode = 0600) {
    PendingBoard::Forget(name_);
    std::ofstream(name_.Path(), std::ios::binary) << content;
    ASSERT_EQ(chmod(name_.Path().c_str(), mode), 0);
  }
  bool Found(int ranks = 2) const { return PendingBoard::Find(name_, ranks, 1) != nullptr; }

  const PendingBoard::Name name_ = PendingBoard::Name::New();
};

TEST_F(ForeignBoard, OfAnotherNumberOfRanks) {
  const auto other = PendingBoard::Create(name_, 2, 0);
  ASSERT_NE(other, nullptr);
  EXPECT_FALSE(Found(64)) << "there is no memory behind most of its parts";
  EXPECT_FALSE(Found(1));
  EXPECT_TRUE(Found());
}

TEST_F(ForeignBoard, OfTheRightSizeButAnothers) {
  const auto board = PendingBoard::Create(name_, 2, 0);
  ASSERT_NE(board, nullptr);
  const std::string content = Content();
  Put(content);
  EXPECT_TRUE(Found());
  Put(std::string(content.size(), '\0'));
  EXPECT_FALSE(Found()) << "it is empty";
  const PendingBoard::Name other = PendingBoard::Name::New();
  const auto others_board = PendingBoard::Create(other, 2, 0);
  ASSERT_EQ(rename(other.Path().c_str(), name_.Path().c_str()), 0);
  EXPECT_FALSE(Found()) << "it says another name";
}

TEST_F(ForeignBoard, CutShort) {
  const auto board = PendingBoard::Create(name_, 2, 0);
  ASSERT_NE(board, nullptr);
  std::string content = Content();
  content.resize(content.size() / 2);
  Put(content);
  EXPECT_FALSE(Found());
  Put("");
  EXPECT_FALSE(Found());
}

TEST_F(ForeignBoard, ThatOthersMayWriteTo) {
  const auto board = PendingBoard::Create(name_, 2, 0);
  ASSERT_NE(board, nullptr);
  Put(Content(), 0666);
  EXPECT_FALSE(Found());
}

TEST_F(ForeignBoard, LinksAndPipesAreNone) {
  const PendingBoard::Name other = PendingBoard::Name::New();
  const auto board = PendingBoard::Create(other, 2, 0);
  ASSERT_NE(board, nullptr);
  ASSERT_EQ(symlink(other.Path().c_str(), name_.Path().c_str()), 0);
  EXPECT_FALSE(Found());
  EXPECT_EQ(PendingBoard::Create(name_, 2, 0), nullptr) << "nor is one created through a link";
  PendingBoard::Forget(name_);
  PendingBoard::Forget(other);
  ASSERT_EQ(mkfifo(name_.Path().c_str(), 0600), 0);
  EXPECT_FALSE(Found());
}

TEST(PendingBoard, NamesAreNotMadeTwice) {
  const PendingBoard::Name one = PendingBoard::Name::New();
  const PendingBoard::Name two = PendingBoard::Name::New();
  EXPECT_FALSE(one.empty());
  EXPECT_NE(one.Path(), two.Path());
  for (int i = 0; i < 64; ++i) {
    const PendingBoard::Name name = PendingBoard::Name::New();
    EXPECT_EQ((name.first | name.second) >> 63, 0u) << "MPI would lose it (h5/mpi.h)";
  }
}

TEST(PendingBoard, WhoWaitsGoesOnWhenTheBytesAreStored) {
  Boards boards;
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

TEST(PendingBoard, WhoWasAwaitedKnows) {
  Boards boards;
  ASSERT_TRUE(boards.first != nullptr && boards.second != nullptr);
  boards.first->Extend(0, 10);
  EXPECT_FALSE(boards.first->awaited());
  std::thread waiter([&] { boards.second->AwaitOthers(0, 1); });
  while (!boards.first->awaited()) std::this_thread::yield();
  boards.first->Clear();
  waiter.join();
  EXPECT_FALSE(boards.second->awaited());
}

TEST(PendingBoard, NobodyWaitsForWhoIsGone) {
  const PendingBoard::Name name = PendingBoard::Name::New();
  const auto board = PendingBoard::Create(name, 2, 0);
  ASSERT_NE(board, nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto other = PendingBoard::Find(name, 2, 1);
    if (other != nullptr) other->Extend(0, 10);
    _exit(other == nullptr);  // as if it were killed: nothing is cleared
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  PendingBoard::Forget(name);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(board->OthersHold(0, 10));
  board->AwaitOthers(0, 10);
}

TEST(PendingBoard, NobodyWaitsForBytesElsewhere) {
  Boards boards;
  ASSERT_TRUE(boards.first != nullptr && boards.second != nullptr);
  boards.first->Extend(0, 10);
  boards.second->AwaitOthers(10, 20);
}

}  // namespace
}  // namespace tidelane
