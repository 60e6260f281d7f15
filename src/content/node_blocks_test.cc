/// \file
/// Blocks of two readers of one file who share what they read.
#include "content/node_blocks.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/counters.h"
#include "base/fresh_file.h"
#include "content/blocks.h"

namespace tidelane {
namespace {

constexpr uint64_t kLongAgoNs = 1'000'000'000;

struct File {
  std::string text = std::string(200'000, 'a');
  FileVersion version{200'000, kLongAgoNs, kLongAgoNs};
  void ChangeTo(char to) {
    text.assign(text.size(), to);
    ++version.modified_ns;
  }
};

class Reading final : public ByteSource {
 public:
  explicit Reading(File& file) : file_(file) {}
  Status Read(Reader, uint64_t address, uint64_t size, void* buffer, ReadTimes& times) override {
    ++reads;
    times.Add(1, 2, size);
    if (fails) return Status::Failed(EIO, "read").At(name, address, size);
    std::memcpy(buffer, file_.text.data() + address, size);
    if (after) after();
    return {};
  }
  uint64_t size() const override { return file_.text.size(); }
  const std::string& path() const override { return name; }
  Keep keep() const override { return Keep::kYes; }
  std::optional<FileVersion> watched() const override { return file_.version; }

  std::string name = "file";
  bool fails = false;
  unsigned reads = 0;
  std::function<void()> after;

 private:
  File& file_;
};

struct Rank {
  Rank(File& file, const FileIdentity& identity, const SharedBlocks::Job& job) : source(file) {
    blocks.Share(std::make_unique<NodeBlocks>(identity, job));
  }
  // What it is full of; '?': the read is the caller's.
  char Read(uint64_t address, bool raw = false) {
    std::string got(100, '?');
    Blocks::Filled filled;
    if (!blocks.Read(source, address, got.size(), got.data(), raw, filled)) return '?';
    const bool one = std::ranges::all_of(got, [&](char c) { return c == got[0]; });
    return one ? got[0] : '!';
  }

  Reading source;
  model::BlockWorth worth;
  Blocks blocks{Toggle::kOn, worth};
};

class NodeBlocksTest : public testing::Test {
 protected:
  const FileIdentity identity_{RandomBits(), RandomBits()};
  const SharedBlocks::Job job_{RandomBits(), 2};
  File file_;
  Rank first_{file_, identity_, job_}, second_{file_, identity_, job_};
};

TEST_F(NodeBlocksTest, WhatOneHasReadTheOtherFinds) {
  const uint64_t before = tidelane::Read(Counter::kNodeHits);
  for (uint64_t at = 0; at < 190'000; at += 1000) {
    ASSERT_EQ(first_.Read(at), 'a');
    ASSERT_EQ(second_.Read(at), 'a');
  }
  EXPECT_EQ(first_.source.reads, 3u);
  EXPECT_EQ(second_.source.reads, 0u);
  EXPECT_GT(tidelane::Read(Counter::kNodeHits), before);
}

TEST_F(NodeBlocksTest, AReadThatLiesInTwoBlocksFindsBoth) {
  ASSERT_EQ(second_.Read(190'000), 'a');  // it has what they share
  ASSERT_EQ(first_.Read(0), 'a');
  ASSERT_EQ(second_.Read(SharedBlocks::kBlock - 50), 'a');
  ASSERT_EQ(first_.Read(SharedBlocks::kBlock - 20), 'a');
  EXPECT_EQ(first_.source.reads, 1u);
  EXPECT_EQ(second_.source.reads, 2u);
}

TEST_F(NodeBlocksTest, ElementsAreNot) {
  for (Rank* const rank : {&first_, &second_}) {
    for (uint64_t at = 0; at < 10'000; at += 100) rank->Read(at, true);
    EXPECT_GT(rank->source.reads, 0u);
  }
}

TEST_F(NodeBlocksTest, OfAnotherVersionNothingIsFound) {
  ASSERT_EQ(second_.Read(100'000), 'a');  // it has what they share
  ASSERT_EQ(first_.Read(0), 'a');
  file_.ChangeTo('b');
  EXPECT_EQ(second_.Read(0), 'b');
  first_.blocks.Clear();  // as its watch does
  EXPECT_EQ(first_.Read(0), 'b');
  EXPECT_EQ(first_.source.reads, 1u);
}

TEST_F(NodeBlocksTest, WhatIsChangedWhileItIsReadIsNotFound) {
  ASSERT_EQ(second_.Read(100'000), 'a');
  first_.source.after = [&] { file_.ChangeTo('b'); };
  ASSERT_EQ(first_.Read(0), 'a');
  EXPECT_EQ(second_.Read(0), 'b');
}

// A change right now might not be seen by the time.
TEST_F(NodeBlocksTest, WhatWasChangedAMomentAgoIsNotShared) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  file_.version.modified_ns =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  ASSERT_EQ(first_.Read(0), 'a');
  file_.text.assign(file_.text.size(), 'b');
  EXPECT_EQ(second_.Read(0), 'b');
}

TEST_F(NodeBlocksTest, WhoFailsToReadKeepsNobodyElse) {
  first_.source.fails = true;
  EXPECT_EQ(first_.Read(0), '?');
  EXPECT_EQ(second_.Read(0), 'a');
  EXPECT_EQ(first_.Read(0), 'a');
}

TEST_F(NodeBlocksTest, WithoutMemoryForItEachReadsForItselfAndCounts) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit little{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &little);
    const uint64_t before = tidelane::Read(Fallback::kMpiNodeMemory);
    const bool read =
        first_.Read(0) == 'a' && second_.Read(0) == 'a' && first_.Read(100'000) == 'a';
    _exit(read && tidelane::Read(Fallback::kMpiNodeMemory) == before + 2 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tidelane
