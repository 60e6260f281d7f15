/// \file
/// Blocks that processes share, some of which are killed, stopped, or somebody else.
#include "ranks/shared_blocks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/fresh_file.h"

namespace tidelane {
namespace {

using Turn = SharedBlocks::Turn;
constexpr FileVersion kVersion{1 << 30, 7, 8};
constexpr uint64_t kBlock = SharedBlocks::kBlock;

bool Exists(const std::string& path) {
  struct stat found;
  return lstat(path.c_str(), &found) == 0;
}

// A process that ends without any cleaning up, as if it were killed.
pid_t Start(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  return child;
}

int ResultOf(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class SharedBlocksTest : public testing::Test {
 protected:
  std::unique_ptr<SharedBlocks> Join() { return SharedBlocks::Join(file_, job_); }
  std::string path() const { return SharedBlocks::PathOf(file_, job_); }
  void TearDown() override { unlink(path().c_str()); }

  static std::vector<std::byte> Filled(char with) {
    return std::vector<std::byte>(kBlock, static_cast<std::byte>(with));
  }
  static bool Put(SharedBlocks& blocks, uint64_t block, char with,
                  const FileVersion& version = kVersion) {
    if (blocks.Take(block, version) != Turn::kMine) return false;
    blocks.Put(Filled(with).data(), kBlock);
    return true;
  }
  // The byte that the block is full of; '?': it is not here, '!': it is full of several.
  static char Get(const SharedBlocks& blocks, uint64_t block,
                  const FileVersion& version = kVersion) {
    std::string text(kBlock, '?');
    if (!blocks.Read(block, version, 0, kBlock, text.data())) return '?';
    const bool one = std::ranges::all_of(text, [&](char c) { return c == text[0]; });
    return one ? text[0] : '!';
  }

  const FileIdentity file_{RandomBits(), RandomBits()};
  const SharedBlocks::Job job_{RandomBits(), 3};
};

TEST_F(SharedBlocksTest, WhatOneHasReadAllHave) {
  const auto first = Join(), second = Join();
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(Get(*second, 5), '?');
  ASSERT_TRUE(Put(*first, 5, 'a'));
  EXPECT_EQ(Get(*second, 5), 'a');
  EXPECT_EQ(second->Take(5, kVersion), Turn::kHere);
  EXPECT_EQ(Get(*second, 6), '?');
  EXPECT_EQ(ResultOf(Start([&] { return Get(*Join(), 5); })), 'a');
}

TEST_F(SharedBlocksTest, PartsOfWordsAreCopied) {
  const auto first = Join();
  std::vector<std::byte> bytes(kBlock);
  for (size_t i = 0; i < kBlock; ++i) bytes[i] = static_cast<std::byte>(i * 7 % 251);
  ASSERT_EQ(first->Take(1, kVersion), Turn::kMine);
  first->Put(bytes.data(), kBlock - 3);
  for (const uint64_t from : {0u, 1u, 7u, 8u, 13u}) {
    for (const uint64_t size : {0u, 1u, 3u, 8u, 9u, 100u}) {
      std::vector<std::byte> got(size + 1, std::byte{0xee});
      ASSERT_TRUE(first->Read(1, kVersion, from, size, got.data()));
      EXPECT_TRUE(std::equal(got.begin(), got.end() - 1, bytes.begin() + static_cast<long>(from)));
      EXPECT_EQ(got.back(), std::byte{0xee});
    }
  }
  std::vector<std::byte> got(kBlock);
  EXPECT_TRUE(first->Read(1, kVersion, 0, kBlock - 3, got.data()));
  EXPECT_FALSE(first->Read(1, kVersion, 0, kBlock - 2, got.data()));  // the file has no more
  EXPECT_FALSE(first->Read(1, kVersion, kBlock, 1, got.data()));
}

TEST_F(SharedBlocksTest, AnotherVersionIsNotBelieved) {
  const auto first = Join(), second = Join();
  ASSERT_TRUE(Put(*first, 5, 'a'));
  for (const FileVersion& other :
       {FileVersion{1, 7, 8}, FileVersion{1 << 30, 6, 8}, FileVersion{1 << 30, 7, 9}}) {
    EXPECT_EQ(Get(*second, 5, other), '?');
  }
  const FileVersion newer{1 << 30, 9, 9};
  ASSERT_TRUE(Put(*second, 5, 'b', newer));
  EXPECT_EQ(Get(*first, 5, newer), 'b');
}

TEST_F(SharedBlocksTest, ManyBlocksTakeEachOthersPlaces) {
  const auto first = Join(), second = Join();
  constexpr uint64_t kMany = SharedBlocks::kSlots * 5 / 4;
  uint64_t put = 0, found = 0;
  for (uint64_t block = 0; block < kMany; ++block)
    put += Put(*first, block, static_cast<char>('a' + block % 26));
  for (uint64_t block = 0; block < kMany; ++block) {
    const char got = Get(*second, block);
    EXPECT_TRUE(got == '?' || got == static_cast<char>('a' + block % 26)) << block;
    found += got != '?';
  }
  EXPECT_GT(found, std::min(put, SharedBlocks::kSlots) / 2);
}

TEST_F(SharedBlocksTest, NeighboursAllFit) {
  const auto first = Join();
  const uint64_t many = std::min(SharedBlocks::kSlots, BlockMemory::Most() / kBlock) / 4;
  for (uint64_t block = 0; block < many; ++block) ASSERT_TRUE(Put(*first, block, 'a'));
  uint64_t found = 0;
  for (uint64_t block = 0; block < many; ++block) found += Get(*first, block) == 'a';
  EXPECT_GT(found, many * 95 / 100);
}

TEST_F(SharedBlocksTest, WhoComesWhileABlockIsReadWaitsForIt) {
  const auto first = Join();
  ASSERT_EQ(first->Take(5, kVersion), Turn::kMine);
  const pid_t child = Start([&] {
    const auto second = Join();
    return second->Take(5, kVersion) == Turn::kHere ? Get(*second, 5) : '-';
  });
  usleep(3000);
  first->Put(Filled('c').data(), kBlock);
  EXPECT_EQ(ResultOf(child), 'c');
}

TEST_F(SharedBlocksTest, WhoReadsItMayGiveUp) {
  const auto first = Join(), second = Join();
  ASSERT_EQ(first->Take(5, kVersion), Turn::kMine);
  EXPECT_EQ(first->Take(6, kVersion), Turn::kAlone);  // one at a time
  first->GiveUp();
  EXPECT_EQ(Get(*second, 5), '?');
  EXPECT_TRUE(Put(*second, 5, 'd'));
  EXPECT_EQ(Get(*first, 5), 'd');
}

TEST_F(SharedBlocksTest, WhoIsKilledWhileItReadsKeepsNobodyWaiting) {
  const auto first = Join();
  EXPECT_EQ(ResultOf(Start([&] {
              auto* const second = Join().release();
              return second->Take(5, kVersion) == Turn::kMine ? 1 : 0;
            })),
            1);
  EXPECT_EQ(Get(*first, 5), '?');
  const auto begin = SharedBlocks::Clock::now();
  ASSERT_TRUE(Put(*first, 5, 'e'));
  EXPECT_LT(SharedBlocks::Clock::now() - begin, SharedBlocks::kLeastPatience);
  EXPECT_EQ(Get(*first, 5), 'e');
}

TEST_F(SharedBlocksTest, WhoIsStoppedKeepsOthersForAMoment) {
  const auto first = Join();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = Start([&] {
    auto* const second = Join().release();
    const char taken = second->Take(5, kVersion) == Turn::kMine ? 1 : 0;
    (void)!write(ready[1], &taken, 1);
    pause();
    return 0;
  });
  char taken = 0;
  ASSERT_EQ(read(ready[0], &taken, 1), 1);
  ASSERT_EQ(taken, 1);
  auto begin = SharedBlocks::Clock::now();
  EXPECT_EQ(first->Take(5, kVersion), Turn::kAlone);
  EXPECT_GE(SharedBlocks::Clock::now() - begin, SharedBlocks::kLeastPatience);
  // Again and again: each time for half as long.
  begin = SharedBlocks::Clock::now();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(first->Take(5, kVersion), Turn::kAlone);
  EXPECT_LT(SharedBlocks::Clock::now() - begin, 10 * SharedBlocks::kLeastPatience);
  EXPECT_TRUE(Put(*first, 1005, 'f'));  // of others nobody waits for it
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(Put(*first, 5, 'f'));
  for (const int end : ready) close(end);
}

// More versions in turn than there are places, so that these are written all the time.
TEST_F(SharedBlocksTest, HalfABlockIsNeverRead) {
  const auto first = Join();
  const auto version = [](int i) { return FileVersion{1 << 30, 7, static_cast<uint64_t>(i % 8)}; };
  const pid_t child = Start([&] {
    const auto second = Join();
    int got = 0;
    // It may be over before the other process has come to write anything.
    const auto late = SharedBlocks::Clock::now() + std::chrono::seconds(10);
    for (int i = 0; i < 5000 || (got == 0 && SharedBlocks::Clock::now() < late); ++i) {
      const char found = Get(*second, 5, version(i));
      if (found != '?' && found != 'a' + i % 8) return 1;
      got += found != '?';
    }
    return got == 0 ? 2 : 0;
  });
  int status = 0;
  for (int i = 0; waitpid(child, &status, WNOHANG) == 0; ++i) {
    const Turn turn = first->Take(5, version(i));
    ASSERT_NE(turn, Turn::kAlone);
    if (turn == Turn::kMine) first->Put(Filled(static_cast<char>('a' + i % 8)).data(), kBlock);
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A process that is kept from its core is not waited for: on a busy machine a walk may be of no use, but not one walk after the other.
TEST_F(SharedBlocksTest, ProcessesThatReadTheSameReadEachBlockOnce) {
  constexpr uint64_t kWalk = 100;
  constexpr int kProcesses = 4;
  constexpr int kWalks = 5;
  const SharedBlocks::Job job{job_.id, kProcesses * kWalks + 1};
  const auto kept = SharedBlocks::Join(file_, job);  // who comes late finds what the others had
  const auto walk = [&](const FileVersion& version) {
    std::vector<pid_t> children;
    for (int process = 0; process < kProcesses; ++process) {
      children.push_back(Start([&] {
        const auto blocks = SharedBlocks::Join(file_, job);
        int own = 0;
        for (uint64_t block = 0; block < kWalk; ++block) {
          const Turn turn = blocks->Take(block, version);
          if (turn == Turn::kMine) {
            usleep(100);
            blocks->Put(Filled(static_cast<char>('a' + block % 26)).data(), kBlock);
          } else if (turn == Turn::kHere &&
                     Get(*blocks, block, version) != static_cast<char>('a' + block % 26)) {
            return 255;
          }
          own += turn != Turn::kHere;
        }
        return own;
      }));
    }
    int own = 0;
    for (const pid_t child : children) {
      const int its = ResultOf(child);
      EXPECT_LE(its, static_cast<int>(kWalk)) << "255: another block";
      own += its;
    }
    return own;
  };
  int own = INT_MAX;
  for (uint64_t i = 0; i < kWalks && own > static_cast<int>(kWalk) * 2; ++i)
    own = walk({1 << 30, 7, i});
  EXPECT_GE(own, static_cast<int>(kWalk));
  EXPECT_LE(own, static_cast<int>(kWalk) * 2);
}

TEST_F(SharedBlocksTest, TheNameGoesWhenAllHaveIt) {
  auto first = Join(), second = Join();
  ASSERT_TRUE(Exists(path()));
  struct stat found;
  ASSERT_EQ(stat(path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  const auto third = Join();
  EXPECT_FALSE(Exists(path()));
  ASSERT_TRUE(Put(*first, 5, 'a'));
  EXPECT_EQ(Get(*third, 5), 'a');
  first = nullptr;
  second = nullptr;
  EXPECT_EQ(Get(*third, 5), 'a');
}

TEST_F(SharedBlocksTest, OrWithTheLastOneOfThisMachine) {
  auto first = Join(), second = Join();
  first = nullptr;
  EXPECT_TRUE(Exists(path()));
  second = nullptr;
  EXPECT_FALSE(Exists(path()));
}

TEST_F(SharedBlocksTest, WhatKilledProcessesLeaveTheNextOneRemoves) {
  EXPECT_EQ(ResultOf(Start([&] { return Join().release() != nullptr ? 1 : 0; })), 1);
  ASSERT_TRUE(Exists(path()));
  const SharedBlocks::Job later{RandomBits(), 2};
  const auto next = SharedBlocks::Join(file_, later);
  EXPECT_FALSE(Exists(path()));
}

TEST_F(SharedBlocksTest, WhatIsNotOursIsNotUsed) {
  const std::string elsewhere = path() + "-elsewhere";
  ASSERT_EQ(symlink(elsewhere.c_str(), path().c_str()), 0);
  EXPECT_EQ(Join(), nullptr);  // no link is followed
  EXPECT_FALSE(Exists(elsewhere));
  unlink(path().c_str());
  // The name comes last: a test beside this one removes what is still empty under such a name.
  const auto make = [&](mode_t mode, const std::string& text) {
    std::string unnamed = "/dev/shm/not-blocks-XXXXXX";
    const int made = mkstemp(unnamed.data());
    fchmod(made, mode);
    EXPECT_EQ(write(made, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(made);
    EXPECT_EQ(rename(unnamed.c_str(), path().c_str()), 0);
  };
  make(0660, "");  // others could cut it short
  EXPECT_EQ(Join(), nullptr);
  unlink(path().c_str());
  make(0600, std::string(4096, 'x'));  // somebody else's, of another size
  EXPECT_EQ(Join(), nullptr);
  EXPECT_TRUE(Exists(path()));
}

TEST_F(SharedBlocksTest, RanksThatSeeAnotherFileAreApart) {
  const auto first = Join();
  const auto other = SharedBlocks::Join({file_.device + 1, file_.inode}, job_);
  ASSERT_TRUE(Put(*first, 5, 'a'));
  EXPECT_EQ(Get(*other, 5), '?');
}

TEST_F(SharedBlocksTest, WithoutRoomEachReadsForItself) {
  EXPECT_EQ(ResultOf(Start([&] {
              const rlimit little{1 << 20, 1 << 20};
              setrlimit(RLIMIT_FSIZE, &little);
              return Join() == nullptr ? 1 : 0;
            })),
            1);
}

TEST_F(SharedBlocksTest, AForkedChildUsesNothingOfIt) {
  const auto first = Join();
  ASSERT_TRUE(Put(*first, 5, 'a'));
  EXPECT_EQ(ResultOf(Start([&] {
              return Get(*first, 5) == '?' && first->Take(6, kVersion) == Turn::kAlone ? 1 : 0;
            })),
            1);
  EXPECT_EQ(Get(*first, 5), 'a');
}

}  // namespace
}  // namespace tidelane
