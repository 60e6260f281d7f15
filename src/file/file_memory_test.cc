/// \file
/// What the program's side does when there is no memory for its lists: every allocation fails in turn.
///
/// A call either does all it was asked for or throws std::bad_alloc, which the driver turns into an error (vfd/driver.cc).
/// Afterwards everything outside the range of a call that failed is as it was, and everything can still be stored.
#include <cstdlib>
#include <new>
#include <random>
#include <vector>

#include "file/file_fixture.h"

namespace {
constinit thread_local int allocations_left = -1;  // of this thread; negative: any number
}  // namespace

// Of this whole program; outside these tests it is the usual one. Both kinds: the address sanitizer has them of its own,
// which do not go with these `delete`s.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (allocations_left == 0) return nullptr;
  if (allocations_left > 0) --allocations_left;
  return std::malloc(size);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tidelane {
namespace {

constexpr uint64_t kSpace = 4096;

// Whether `call` came to its end within so many allocations.
template <typename Call>
bool Within(int allocations, Call call) {
  allocations_left = allocations;
  bool whole = true;
  try {
    call();
  } catch (const std::bad_alloc&) {
    whole = false;
  }
  allocations_left = -1;
  return whole;
}

class ShortMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    bench_.record_ = false;  // it would need memory, too
    bench_.Open(std::string(kSpace, '.'));
  }

  std::string Read(uint64_t address, uint64_t size) {
    std::string bytes(size, '?');
    EXPECT_TRUE(bench_.file_->Read(address, size, bytes.data(), true).ok());
    return bytes;
  }
  // All that is not where `failed` writes were.
  void ExpectContents(const std::string& expected, const std::vector<bool>& unknown) {
    const std::string found = Read(0, kSpace);
    for (uint64_t i = 0; i < kSpace; ++i) {
      if (!unknown[i]) {
        ASSERT_EQ(found[i], expected[i]) << "at " << i;
      }
    }
  }

  FileBench bench_;
};

TEST_F(ShortMemory, AWriteThatFindsNoneLeavesTheRestAsItWas) {
  std::mt19937 random(20240607);
  std::string expected(kSpace, '.');
  std::vector<bool> unknown(kSpace, false);
  unsigned failed = 0;
  for (int round = 0; round < 4000; ++round) {
    const uint64_t size = 1 + random() % 300;
    const uint64_t address = random() % (kSpace - size);
    const std::string bytes(size, static_cast<char>('a' + round % 26));
    const int allocations = static_cast<int>(random() % 5);
    const bool whole = Within(allocations, [&] {
      const CallScope scope(CallScope::kNone, round % 3 == 0);
      static_cast<void>(bench_.file_->Write(address, size, bytes.data(), InProgress()));
    });
    failed += whole ? 0 : 1;
    for (uint64_t i = address; i < address + size; ++i) {
      unknown[i] = !whole;
      expected[i] = bytes[i - address];
    }
    if (round % 50 == 0) ExpectContents(expected, unknown);
    if (round % 400 == 0) {
      ASSERT_TRUE(bench_.file_->drainer().Drain(Wait::kFlush).ok());
    }
  }
  EXPECT_GT(failed, 100u);
  EXPECT_TRUE(bench_.file_->drainer().Drain(Wait::kFlush).ok());
  ExpectContents(expected, unknown);
  EXPECT_TRUE(bench_.file_->drainer().drained());
  bench_.file_->writes().RelieveArena();
  EXPECT_EQ(bench_.arena_.in_use(), 0u) << "no slab is held for ever";
}

TEST_F(ShortMemory, AReadThatFindsNoneHoldsNothing) {
  for (uint64_t at = 0; at < kSpace; at += 64) {
    ASSERT_TRUE(bench_.file_->Write(at, 32, std::string(32, 'x').data()).ok());
  }
  std::string bytes(kSpace, '?');
  unsigned failed = 0;
  for (int allocations = 0; allocations < 12; ++allocations) {
    failed += Within(allocations,
                     [&] { EXPECT_TRUE(bench_.file_->Read(0, kSpace, bytes.data(), true).ok()); })
                  ? 0
                  : 1;
  }
  EXPECT_GT(failed, 3u);
  EXPECT_EQ(Read(0, 64), std::string(32, 'x') + std::string(32, '.'));
  EXPECT_TRUE(bench_.file_->drainer().Drain(Wait::kFlush).ok());
  bench_.file_->writes().RelieveArena();
  EXPECT_EQ(bench_.arena_.in_use(), 0u);
}

// It ended the process: who stored in the background could tell nobody.
TEST_F(ShortMemory, WhatALaneHasNoMemoryToStoreIsToldAndTriedAgain) {
  std::string expected(kSpace, '.');
  for (int allocations = 0; allocations < 40; ++allocations) {
    const std::string text(100, static_cast<char>('a' + allocations % 26));
    for (const uint64_t at : {uint64_t{0}, uint64_t{300}, uint64_t{1000}}) {
      ASSERT_TRUE(bench_.Write(at, text).ok());
      expected.replace(at, text.size(), text);
    }
    bench_.file_->Start();
    EXPECT_TRUE(Within(allocations, [&] { bench_.RunLanes(); })) << allocations;
    EXPECT_EQ(Read(0, kSpace), expected) << allocations;
    const Status status = bench_.file_->drainer().Drain(Wait::kFlush);
    ASSERT_TRUE(status.ok()) << allocations << ": " << status.Message();
    EXPECT_EQ(Difference(bench_.Stored(), expected), "") << allocations;
  }
}

// Other ranks meet whoever waits: it may not leave because there is no memory for asking a lane.
TEST_F(ShortMemory, WhoWaitsStoresWhatNoLaneCanBeAskedFor) {
  std::string expected(kSpace, '.');
  for (int round = 0; round < 100; ++round) {
    const std::string text(100, static_cast<char>('a' + round % 26));
    const uint64_t at = static_cast<uint64_t>(round) * 40;
    ASSERT_TRUE(bench_.Write(at, text).ok());
    expected.replace(at, text.size(), text);
    for (int allocations = 0; allocations < 8; ++allocations) {
      EXPECT_TRUE(Within(allocations,
                         [&] { static_cast<void>(bench_.file_->drainer().Drain(Wait::kRanks)); }))
          << "round " << round << ", " << allocations;
    }
    ASSERT_TRUE(bench_.file_->drainer().Drain(Wait::kRanks).ok());
    EXPECT_EQ(Difference(bench_.Stored(), expected), "") << round;
  }
}

}  // namespace
}  // namespace tidelane
