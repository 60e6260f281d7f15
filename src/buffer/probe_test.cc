#include "buffer/probe.h"

#include <sys/mman.h>

#include <csignal>
#include <cstring>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

constexpr size_t kSize = 4 * kLeastProbed;

class ProbeTest : public ::testing::Test {
 protected:
  ProbeTest()
      : at_(static_cast<char*>(
            mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~ProbeTest() override { munmap(at_, kSize); }

  char* const at_;
};

TEST_F(ProbeTest, WhatIsThereIsLeftAlone) {
  std::memset(at_, 7, kSize);
  sigset_t before, after;
  sigprocmask(SIG_BLOCK, nullptr, &before);
  EXPECT_TRUE(MayReadFrom(at_ + 1, kSize - 1));  // of any alignment
  sigprocmask(SIG_BLOCK, nullptr, &after);
  for (int signal = 1; signal < SIGRTMAX; ++signal)
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
  for (size_t i = 0; i < kSize; ++i) ASSERT_EQ(at_[i], 7);
}

TEST_F(ProbeTest, ForWritingOnlyTheEndsChange) {
  std::memset(at_, 7, kSize);
  EXPECT_TRUE(MayWriteTo(at_ + 1, kSize - 2));
  EXPECT_EQ(at_[0], 7);
  EXPECT_EQ(at_[kSize - 1], 7);
  for (size_t i = 9; i < kSize - 9; ++i) ASSERT_EQ(at_[i], 7);
}

TEST_F(ProbeTest, EitherEndMayBeMissing) {
  for (char* const half : {at_, at_ + kSize / 2}) {
    ASSERT_EQ(mprotect(half, kSize / 2, PROT_NONE), 0);
    EXPECT_FALSE(MayReadFrom(at_, kSize));
    EXPECT_FALSE(MayWriteTo(at_, kSize));
    ASSERT_EQ(mprotect(half, kSize / 2, PROT_READ), 0);
    EXPECT_TRUE(MayReadFrom(at_, kSize));
    EXPECT_FALSE(MayWriteTo(at_, kSize));
    ASSERT_EQ(mprotect(half, kSize / 2, PROT_READ | PROT_WRITE), 0);
  }
  EXPECT_FALSE(MayReadFrom(nullptr, kLeastProbed));
}

}  // namespace
}  // namespace tidelane
