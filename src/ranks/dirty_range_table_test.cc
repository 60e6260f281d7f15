#include "ranks/dirty_range_table.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/fresh_file.h"

namespace tidelane {
namespace {

// A file that nobody else has.
FileIdentity NewFile() { return {RandomBits(), RandomBits()}; }

bool Exists(const FileIdentity& file) {
  struct stat found;
  return lstat(DirtyRangeTable::PathOf(file).c_str(), &found) == 0;
}

std::unique_ptr<DirtyRangeTable> Look(const FileIdentity& file) {
  return DirtyRangeTable::Watch(file, TableFile::Missing::kLeave);
}

// What `work` returns, of a process that ends without any cleaning up, as if it were killed.
int InChild(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

struct Tables {
  const FileIdentity file = NewFile();
  std::unique_ptr<DirtyRangeTable> first = DirtyRangeTable::Join(file, 0);
  std::unique_ptr<DirtyRangeTable> second = DirtyRangeTable::Join(file, 1);
};

TEST(DirtyRangeTable, OthersSeeWhatIsHeld) {
  Tables tables;
  ASSERT_TRUE(tables.first != nullptr && tables.second != nullptr);
  EXPECT_FALSE(tables.second->OthersHold(0, UINT64_MAX));
  tables.first->Extend(100, 200);
  EXPECT_TRUE(tables.second->OthersHold(150, 151));
  EXPECT_FALSE(tables.second->OthersHold(200, 300));
  EXPECT_FALSE(tables.first->OthersHold(150, 151));  // its own
  tables.first->Clear();
  EXPECT_FALSE(tables.second->OthersHold(0, UINT64_MAX));
}

TEST(DirtyRangeTable, WhoReadsHearsOfThoseThatMayWrite) {
  const FileIdentity file = NewFile();
  const auto reader = DirtyRangeTable::Watch(file, TableFile::Missing::kMake);
  ASSERT_NE(reader, nullptr);
  const uint32_t before = reader->joined();
  EXPECT_FALSE(reader->Written());
  auto writer = DirtyRangeTable::Join(file, 0);
  ASSERT_NE(writer, nullptr);
  EXPECT_TRUE(reader->Written());
  EXPECT_FALSE(writer->Written());  // by another one
  EXPECT_NE(reader->joined(), before);
  const uint32_t with_one = reader->joined();
  writer = nullptr;
  EXPECT_FALSE(reader->Written());
  EXPECT_EQ(reader->joined(), with_one);
  const auto next = DirtyRangeTable::Join(file, 0);
  EXPECT_NE(reader->joined(), with_one);
}

TEST(DirtyRangeTable, ManyRangesAreJoinedAndStillCovered) {
  Tables tables;
  ASSERT_TRUE(tables.first != nullptr && tables.second != nullptr);
  for (uint64_t i = 0; i < 100; ++i) tables.first->Extend(i * 1000, i * 1000 + 10);
  for (uint64_t i = 0; i < 100; ++i)
    EXPECT_TRUE(tables.second->OthersHold(i * 1000 + 9, i * 1000 + 10));
  EXPECT_FALSE(tables.second->OthersHold(99 * 1000 + 10, UINT64_MAX));
}

TEST(DirtyRangeTable, RowsThatTakeTurnsAreToldApart) {
  Tables tables;
  ASSERT_TRUE(tables.first != nullptr && tables.second != nullptr);
  for (uint64_t block = 0; block < DirtyRangeTable::kRows; ++block) {
    for (uint64_t row = 0; row < 50; ++row) {
      const uint64_t at = block * 100000 + row * 1000;
      tables.first->Extend(at, at + 500);
      EXPECT_TRUE(tables.second->OthersHold(at, at + 1));
      EXPECT_TRUE(tables.second->OthersHold(at + 499, at + 500));
    }
  }
  for (uint64_t block = 0; block < DirtyRangeTable::kRows; ++block) {
    for (uint64_t row = 0; row < 50; ++row) {
      const uint64_t at = block * 100000 + row * 1000;
      EXPECT_TRUE(tables.second->OthersHold(at + 250, at + 260));
      EXPECT_FALSE(tables.second->OthersHold(at + 500, at + 1000));
      EXPECT_TRUE(tables.second->OthersHold(at + 499, at + 1000));
    }
    EXPECT_FALSE(tables.second->OthersHold(block * 100000 + 50000, (block + 1) * 100000));
  }
  EXPECT_TRUE(tables.second->OthersHold(600, 5000)) << "over several rows";
  tables.first->Clear();
  EXPECT_FALSE(tables.second->OthersHold(0, UINT64_MAX));
  tables.first->Extend(7, 8);
  EXPECT_TRUE(tables.second->OthersHold(7, 8));
  EXPECT_FALSE(tables.second->OthersHold(8, UINT64_MAX)) << "nothing is left of the rows before";
}

// Whatever is written, in whatever order: what is held is told.
TEST(DirtyRangeTable, CoversAllThatIsHeld) {
  Tables tables;
  ASSERT_TRUE(tables.first != nullptr && tables.second != nullptr);
  std::mt19937 random(1);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<std::pair<uint64_t, uint64_t>> held;
    uint64_t at = random() % 1000;
    const uint64_t pieces = 1 + random() % 200;
    const uint64_t size = 1 + random() % 10;  // some overlap
    for (uint64_t i = 0; i < pieces; ++i) {
      at = random() % 8 == 0 ? random() % 1000 : at + 7;
      const uint64_t end = at + (random() % 8 == 0 ? 1 + random() % 20 : size);
      tables.first->Extend(at, end);
      held.emplace_back(at, end);
    }
    for (const auto& [begin, end] : held) {
      for (uint64_t byte = begin; byte < end; ++byte)
        ASSERT_TRUE(tables.second->OthersHold(byte, byte + 1)) << "turn " << turn << ", " << byte;
      ASSERT_TRUE(tables.second->OthersHold(begin > 3 ? begin - 3 : 0, begin + 1));
    }
    tables.first->Clear();
    ASSERT_FALSE(tables.second->OthersHold(0, UINT64_MAX));
  }
}

TEST(DirtyRangeTable, BelongsToTheFileForAsLongAsItIsUsed) {
  const FileIdentity file = NewFile();
  EXPECT_EQ(Look(file), nullptr);
  EXPECT_FALSE(Exists(file)) << "who only looks makes none";
  auto first = DirtyRangeTable::Join(file, 0);
  auto second = DirtyRangeTable::Join(file, 0);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(first->id(), second->id());
  EXPECT_EQ(first->id() >> 63, 0u) << "MPI would lose it (h5/mpi.h)";
  EXPECT_NE(DirtyRangeTable::Join(NewFile(), 0)->id(), first->id());
  first->Extend(0, 10);
  EXPECT_TRUE(second->OthersHold(0, 1)) << "both wanted the same part, and each has one";
  EXPECT_TRUE(Look(file)->OthersHold(0, 1));
  const uint64_t id = first->id();
  first = nullptr;
  EXPECT_FALSE(second->OthersHold(0, UINT64_MAX));
  EXPECT_TRUE(Exists(file));
  EXPECT_EQ(Look(file)->id(), id);
  second = nullptr;
  EXPECT_FALSE(Exists(file));
  EXPECT_NE(DirtyRangeTable::Join(file, 0)->id(), id);
}

TEST(DirtyRangeTable, OutsidersAreToldApart) {
  using Whose = DirtyRangeTable::Whose;
  Tables tables;
  auto outside = DirtyRangeTable::Join(tables.file, 0);
  ASSERT_TRUE(tables.first != nullptr && tables.second != nullptr && outside != nullptr);
  tables.first->SetGroup({.id = 7, .complete = true});
  tables.second->SetGroup({.id = 7, .complete = true});
  outside->SetGroup({.id = 8, .complete = true});
  tables.first->Extend(0, 10);
  EXPECT_TRUE(tables.second->OthersHold(0, 1));
  EXPECT_FALSE(tables.second->OthersHold(0, 1, Whose::kOutsiders));
  EXPECT_TRUE(outside->OthersHold(0, 1, Whose::kOutsiders));
  EXPECT_TRUE(tables.second->AwaitOthers(0, 1, Whose::kOutsiders));
  tables.first->Clear();
  outside->Extend(0, 10);
  EXPECT_TRUE(tables.second->OthersHold(0, 1));
  EXPECT_TRUE(tables.second->OthersHold(0, 1, Whose::kOutsiders));
}

// Whoever has one while another does has the same one, however many come and go.
TEST(DirtyRangeTable, ThoseThatComeAndGoMeet) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 500;
  const FileIdentity file = NewFile();
  std::barrier meet(kThreads);
  std::atomic<int> apart{0};
  std::atomic<uint64_t> ids[kThreads]{};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int time = 0; time < kTimes; ++time) {
        const auto table = DirtyRangeTable::Join(file, 0);
        ids[i] = table == nullptr ? 0 : table->id();
        meet.arrive_and_wait();
        if (ids[i] == 0 || ids[i] != ids[0]) ++apart;
        meet.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(apart, 0);
  EXPECT_FALSE(Exists(file));
}

// What lies in /dev/shm under a table's name, put there by somebody else: it is not used, and it stays.
class ForeignBoard : public testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }

  std::string Content() const {
    std::ostringstream content;
    content << std::ifstream(path_, std::ios::binary).rdbuf();
    return content.str();
  }
  void Put(const std::string& content, mode_t mode = 0600) {
    // The name comes last: a test beside this one removes what is still empty under such a name.
    const std::string unnamed = "/dev/shm/not-a-table-" + std::to_string(getpid());
    std::ofstream(unnamed, std::ios::binary) << content;
    ASSERT_EQ(chmod(unnamed.c_str(), mode), 0);
    ASSERT_EQ(rename(unnamed.c_str(), path_.c_str()), 0);
  }
  bool Found() const {
    const bool joined = DirtyRangeTable::Join(file_, 0) != nullptr;
    EXPECT_EQ(Look(file_) != nullptr, false) << "nobody uses it any more";
    EXPECT_EQ(Exists(file_), !joined);
    return joined;
  }
  static std::string ABoard() {
    const FileIdentity other = NewFile();
    const auto table = DirtyRangeTable::Join(other, 0);
    std::ostringstream content;
    content << std::ifstream(DirtyRangeTable::PathOf(other), std::ios::binary).rdbuf();
    return content.str();
  }

  const FileIdentity file_ = NewFile();
  const std::string path_ = DirtyRangeTable::PathOf(file_);
};

TEST_F(ForeignBoard, OfTheRightSizeButAnothers) {
  const std::string content = ABoard();
  Put(content);
  EXPECT_TRUE(Found()) << "one that is left of a program that was killed";
  Put(std::string(content.size(), 'x'));
  EXPECT_FALSE(Found()) << "it does not say that it is one";
}

TEST_F(ForeignBoard, WithoutAHead) {
  const std::string content = ABoard();
  for (const size_t size : {content.size(), size_t{64}}) {
    Put(std::string(size, '\0'));
    EXPECT_TRUE(Found()) << "its maker was killed before it wrote one";
    Put(std::string(size, '\0'));
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // it does not look more often
    EXPECT_NE(DirtyRangeTable::Join(NewFile(), 0), nullptr);
    EXPECT_FALSE(Exists(file_)) << "the next one sweeps";
  }
}

TEST_F(ForeignBoard, OfAnotherSize) {
  std::string content = ABoard();
  content.resize(content.size() - 1);
  Put(content);
  EXPECT_FALSE(Found());
  EXPECT_EQ(Content(), content);
  Put("mine");
  EXPECT_FALSE(Found());
  EXPECT_EQ(Content(), "mine");
}

TEST_F(ForeignBoard, ThatOthersMayWriteTo) {
  Put(ABoard(), 0666);
  EXPECT_FALSE(Found());
  Put("", 0666);
  EXPECT_FALSE(Found());
}

TEST_F(ForeignBoard, LinksAndPipesAreNone) {
  const FileIdentity other = NewFile();
  const auto table = DirtyRangeTable::Join(other, 0);
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(symlink(DirtyRangeTable::PathOf(other).c_str(), path_.c_str()), 0);
  EXPECT_FALSE(Found());
  unlink(path_.c_str());
  ASSERT_EQ(symlink((path_ + "-new").c_str(), path_.c_str()), 0);
  EXPECT_FALSE(Found()) << "nor is one made through a link";
  unlink(path_.c_str());
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(Found());
}

TEST(DirtyRangeTable, WhoWaitsGoesOnWhenTheBytesAreStored) {
  Tables tables;
  ASSERT_TRUE(tables.first != nullptr && tables.second != nullptr);
  tables.first->Extend(0, 10);
  std::atomic<bool> over{false};
  std::thread waiter([&] {
    tables.second->AwaitOthers(5, 6);
    over = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(over);
  tables.first->Clear();
  waiter.join();
}

TEST(DirtyRangeTable, WhoWasAwaitedKnows) {
  Tables tables;
  ASSERT_TRUE(tables.first != nullptr && tables.second != nullptr);
  tables.first->Extend(0, 10);
  EXPECT_FALSE(tables.first->awaited());
  std::thread waiter([&] { tables.second->AwaitOthers(0, 1); });
  while (!tables.first->awaited()) std::this_thread::yield();
  tables.first->Clear();
  waiter.join();
  EXPECT_FALSE(tables.second->awaited());
}

TEST(DirtyRangeTable, NobodyWaitsForWhatIsWrittenMeanwhile) {
  Tables tables;
  ASSERT_TRUE(tables.first != nullptr && tables.second != nullptr);
  std::atomic<bool> over{false};
  tables.first->Extend(0, 10);
  std::thread waiter([&] {
    tables.second->AwaitOthers(0, 10);
    over = true;
  });
  while (!tables.first->awaited()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  tables.first->Clear();
  tables.first->Extend(0, 10);
  waiter.join();
  EXPECT_TRUE(over);
}

TEST(DirtyRangeTable, WhoHasLeftWritesNoMore) {
  Tables tables;
  ASSERT_TRUE(tables.first != nullptr && tables.second != nullptr);
  tables.first->Extend(0, 10);
  tables.first->Clear();
  EXPECT_TRUE(tables.second->Written());
  tables.first->Leave();
  EXPECT_FALSE(tables.second->Written());
}

TEST(DirtyRangeTable, AWaitMayHaveAnEnd) {
  Tables tables;
  ASSERT_TRUE(tables.first != nullptr && tables.second != nullptr);
  tables.first->Extend(0, 10);
  EXPECT_FALSE(
      tables.second->AwaitOthers(0, 1, DirtyRangeTable::Whose::kOthers,
                                 DirtyRangeTable::Clock::now() + std::chrono::milliseconds(20)));
}

TEST(DirtyRangeTable, NobodyWaitsForWhoIsGone) {
  const FileIdentity file = NewFile();
  const auto table = DirtyRangeTable::Join(file, 0);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(InChild([&] {
              const auto other = DirtyRangeTable::Join(file, 1);
              if (other == nullptr) return 1;
              other->Extend(0, 10);
              _exit(0);
            }),
            0);
  EXPECT_TRUE(table->OthersHold(0, 10));
  EXPECT_TRUE(table->AwaitOthers(0, 10));
  EXPECT_FALSE(table->OthersHold(0, 10)) << "nor does anybody a second time";
}

// Of parts that were never given back the next one who comes makes nothing.
TEST(DirtyRangeTable, NothingIsLeftOfWhoWasKilled) {
  const FileIdentity file = NewFile();
  const auto leave = [&] {
    const auto alone = DirtyRangeTable::Join(file, 1);
    if (alone == nullptr) return 1;
    alone->Extend(0, 10);
    _exit(0);
  };
  EXPECT_EQ(InChild(leave), 0);
  EXPECT_TRUE(Exists(file));
  auto table = DirtyRangeTable::Join(file, 0);
  ASSERT_NE(table, nullptr);
  EXPECT_FALSE(table->OthersHold(0, UINT64_MAX));
  EXPECT_EQ(InChild(leave), 0);
  const auto next = DirtyRangeTable::Join(file, 1);
  EXPECT_FALSE(table->OthersHold(0, UINT64_MAX)) << "another one has its part";
  table = nullptr;
  EXPECT_EQ(InChild(leave), 0);
  EXPECT_TRUE(Exists(file));
}

TEST(DirtyRangeTable, WhatNobodyUsesIsRemovedByTheNext) {
  const FileIdentity killed = NewFile();
  const FileIdentity live = NewFile();
  const auto used = DirtyRangeTable::Join(live, 0);
  EXPECT_EQ(InChild([&]() -> int {
              const auto alone = DirtyRangeTable::Join(killed, 0);
              _exit(alone == nullptr || !Exists(killed));
            }),
            0);  // from here on any process may remove it
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // it does not look more often
  const auto other = DirtyRangeTable::Join(NewFile(), 0);
  EXPECT_FALSE(Exists(killed));
  EXPECT_TRUE(Exists(live));
}

TEST(DirtyRangeTable, NoneIsMadeThatTheSystemWouldPunish) {
  EXPECT_EQ(InChild([] {
              const rlimit small{4096, 4096};
              setrlimit(RLIMIT_FSIZE, &small);
              return DirtyRangeTable::Join(NewFile(), 0) == nullptr ? 0 : 1;
            }),
            0);
}

// Whatever a process that was forked off does with its copy, and however long it lives.
TEST(DirtyRangeTable, AForkedProcessHasNoPartInIt) {
  Tables tables;
  ASSERT_TRUE(tables.first != nullptr && tables.second != nullptr);
  tables.first->Extend(0, 10);
  EXPECT_EQ(InChild([&] {
              tables.first = nullptr;
              tables.second = nullptr;
              return 0;
            }),
            0);
  EXPECT_TRUE(Exists(tables.file));
  EXPECT_TRUE(tables.second->OthersHold(0, 10));
  EXPECT_FALSE(
      tables.second->AwaitOthers(0, 1, DirtyRangeTable::Whose::kOthers,
                                 DirtyRangeTable::Clock::now() + std::chrono::milliseconds(50)))
      << "its part is still claimed";
}

TEST(DirtyRangeTable, NobodyWaitsForBytesElsewhere) {
  Tables tables;
  ASSERT_TRUE(tables.first != nullptr && tables.second != nullptr);
  tables.first->Extend(0, 10);
  tables.second->AwaitOthers(10, 20);
}

}  // namespace
}  // namespace tidelane
