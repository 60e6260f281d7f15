/// \file
/// The arena: its cap, its waiting, its memory, and fork.
#include "buffer/arena.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/counters.h"
#include "base/trace.h"

namespace tidelane {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * 1024;

std::vector<Slab*> TakeAll(Arena& arena) {
  std::vector<Slab*> slabs;
  while (Slab* slab = arena.TryAcquire()) slabs.push_back(slab);
  return slabs;
}

void ReturnAll(const std::vector<Slab*>& slabs) {
  for (Slab* slab : slabs) Arena::Unref(slab);
}

// Whether every page of the range is in memory.
bool Resident(const std::byte* base, size_t size) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages(size / page);
  if (mincore(const_cast<std::byte*>(base), size, pages.data()) != 0) return false;
  for (unsigned char flags : pages) {
    if ((flags & 1) == 0) return false;
  }
  return true;
}

TEST(ArenaTest, SlabSizeFollowsFromTheCap) {
  EXPECT_EQ(Arena(256 * kMiB).slab_size(), kMiB);
  EXPECT_EQ(Arena(32 * kMiB).slab_size(), kMiB);
  EXPECT_EQ(Arena(31 * kMiB).slab_size(), 512 * kKiB);
  EXPECT_EQ(Arena(8 * kMiB).slab_size(), 256 * kKiB);
  EXPECT_EQ(Arena(kMiB).slab_size(), 64 * kKiB);
  EXPECT_EQ(Arena(uint64_t{64} << 30).slab_size(), kMiB);
}

TEST(ArenaTest, CapIsWholeSlabsAndNeverNone) {
  EXPECT_EQ(Arena(1).cap(), 4 * 64 * kKiB);
  EXPECT_EQ(Arena(0).cap(), 4 * 64 * kKiB);
  EXPECT_EQ(Arena(64 * kKiB).cap(), 64 * kKiB);
  EXPECT_EQ(Arena(100 * kKiB).cap(), 64 * kKiB);
  EXPECT_EQ(Arena(256 * kMiB).cap(), 256 * kMiB);
}

TEST(ArenaTest, HandsOutTheCapAndNotOneSlabMore) {
  Arena arena(21 * kMiB + 5);
  const std::vector<Slab*> slabs = TakeAll(arena);
  EXPECT_EQ(slabs.size(), 21 * kMiB / arena.slab_size());
  EXPECT_EQ(arena.in_use(), arena.cap());
  EXPECT_EQ(arena.TryAcquire(), nullptr);
  std::set<std::byte*> bases;
  for (size_t i = 0; i < slabs.size(); ++i) {
    EXPECT_EQ(slabs[i]->size, arena.slab_size());
    EXPECT_EQ(slabs[i]->references.load(), 1u);
    std::memset(slabs[i]->data, static_cast<int>(i), slabs[i]->size);
    bases.insert(slabs[i]->data);
  }
  EXPECT_EQ(bases.size(), slabs.size());
  for (size_t i = 0; i < slabs.size(); ++i) {  // nobody wrote over a neighbour
    EXPECT_EQ(slabs[i]->data[0], static_cast<std::byte>(i));
    EXPECT_EQ(slabs[i]->data[slabs[i]->size - 1], static_cast<std::byte>(i));
  }
  ReturnAll(slabs);
  EXPECT_EQ(arena.in_use(), 0u);
  EXPECT_GE(Read(Counter::kArenaPeakBytes), arena.cap());
}

TEST(ArenaTest, PagesAreFaultedBeforeASlabIsHandedOut) {
  Arena arena(64 * kMiB);
  std::vector<Slab*> slabs;
  for (int i = 0; i < 4; ++i) slabs.push_back(arena.TryAcquire());  // of 1 MiB, 2 MiB, and more
  Slab* slab = slabs.back();
  ASSERT_NE(slab, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(slab->data) % (2 * kMiB), 0u);
  EXPECT_TRUE(Resident(slab->data, slab->size));
  EXPECT_EQ(slab->faulted, slab->size);
  EXPECT_EQ(slabs[1]->faulted, 0u) << "a program that writes little pays little";
  ReturnAll(slabs);
}

TEST(ArenaTest, TheFirstSlabsAreFaultedAsTheyFill) {
  Arena arena(64 * kMiB);
  Slab* slab = arena.TryAcquire();
  ASSERT_NE(slab, nullptr);
  EXPECT_FALSE(Resident(slab->data, 4 * kKiB));
  Arena::FaultIn(*slab, 100);
  EXPECT_TRUE(Resident(slab->data, 4 * kKiB));
  EXPECT_FALSE(Resident(slab->data, slab->size));
  Arena::FaultIn(*slab, slab->size - 1);
  EXPECT_TRUE(Resident(slab->data, slab->size));
  EXPECT_EQ(slab->faulted, slab->size);
  Arena::Unref(slab);
}

TEST(ArenaTest, TheLastReferenceReturnsTheSlab) {
  Arena arena(kMiB);
  Slab* slab = arena.TryAcquire();
  Arena::Ref(slab);
  Arena::Ref(slab);
  Arena::Unref(slab);
  Arena::Unref(slab);
  EXPECT_EQ(arena.in_use(), arena.slab_size());
  Arena::Unref(slab);
  EXPECT_EQ(arena.in_use(), 0u);
  Slab* again = arena.TryAcquire();
  EXPECT_EQ(again, slab) << "the slab used last is the one in the caches";
  Arena::Unref(again);
}

TEST(ArenaTest, WaitingEndsAtTheDeadline) {
  Arena arena(kMiB);
  const std::vector<Slab*> slabs = TakeAll(arena);
  const auto deadline = steady_clock::now() + milliseconds(20);
  EXPECT_EQ(arena.AcquireUntil(deadline), nullptr);
  EXPECT_GE(steady_clock::now(), deadline);
  ReturnAll(slabs);
  Slab* slab = arena.AcquireUntil(steady_clock::now());
  EXPECT_NE(slab, nullptr) << "a free slab needs no time";
  Arena::Unref(slab);
}

TEST(ArenaTest, AReleaseWakesAWaiter) {
  Arena arena(kMiB);
  const std::vector<Slab*> slabs = TakeAll(arena);
  Slab* got = nullptr;
  std::thread waiter(
      [&] { got = arena.AcquireUntil(steady_clock::now() + std::chrono::hours(1)); });
  Arena::Unref(slabs.front());
  waiter.join();
  EXPECT_EQ(got, slabs.front());
  ReturnAll(slabs);  // the front one again: now for the waiter's reference
  EXPECT_EQ(arena.in_use(), 0u);
}

TEST(ArenaTest, GrowsAheadOnlyWhenHalfIsUsed) {
  Arena arena(16 * kMiB);  // slabs of 512 KiB; the first step is one, the second 2 MiB
  EXPECT_FALSE(arena.GrowAhead()) << "a program that writes nothing pays nothing";
  std::vector<Slab*> slabs{arena.TryAcquire()};
  EXPECT_FALSE(arena.GrowAhead()) << "and one that writes little, little";
  while (slabs.size() < 4) slabs.push_back(arena.TryAcquire());
  EXPECT_FALSE(arena.GrowAhead()) << "2 MiB are little, too";
  slabs.push_back(arena.TryAcquire());
  EXPECT_TRUE(arena.GrowAhead());
  EXPECT_FALSE(arena.GrowAhead()) << "5 MiB are mapped, 2.5 MiB in use";
  const std::vector<Slab*> rest = TakeAll(arena);
  EXPECT_FALSE(arena.GrowAhead()) << "the cap is reached";
  EXPECT_EQ(slabs.size() + rest.size(), 32u);
  ReturnAll(slabs);
  ReturnAll(rest);
}

TEST(ArenaTest, GrowsToWhatIsExpected) {
  Arena arena(64 * kMiB);
  arena.Expect(10 * kMiB);
  int steps = 0;
  while (arena.GrowAhead()) ++steps;
  EXPECT_GE(steps, 2);
  EXPECT_FALSE(arena.GrowAhead());
  arena.Expect(kMiB);
  EXPECT_FALSE(arena.GrowAhead());
  arena.Expect(1000 * kMiB);
  while (arena.GrowAhead()) {
  }
  EXPECT_EQ(TakeAll(arena).size(), 64u) << "never beyond the cap";
}

constexpr uint64_t kSecond = 1'000'000'000;

// Of a process whose control group leaves much, or little: these tests may run in either.
class GroupMemory final : public SlabMemory {
 public:
  explicit GroupMemory(bool scarce) : scarce_(scarce) {}
  std::byte* Acquire(size_t size, bool& faulted) override {
    return PrivateMemory::Get().Acquire(size, faulted);
  }
  void Release(std::byte* base, size_t size) override { PrivateMemory::Get().Release(base, size); }
  bool Discard(std::byte* base, size_t size) override {
    return PrivateMemory::Get().Discard(base, size);
  }
  bool scarce() override { return scarce_; }
  AtFork at_fork() const override { return AtFork::kCopied; }

 private:
  const bool scarce_;
};

std::vector<Slab*> Burst(Arena& arena, size_t slabs) {
  std::vector<Slab*> burst;
  for (size_t i = 0; i < slabs; ++i) {
    burst.push_back(arena.TryAcquire());
    Arena::FaultIn(*burst.back(), burst.back()->size);
  }
  ReturnAll(burst);
  return burst;
}

// A thousand files that held 131 MiB had as much again ready.
TEST(ArenaTest, GrowsAheadBy32MiBAtMost) {
  GroupMemory memory(false);
  Arena arena(512 * kMiB, memory);
  std::vector<Slab*> slabs;
  while (arena.in_use() < 80 * kMiB) {
    slabs.push_back(arena.TryAcquire());
    ASSERT_NE(slabs.back(), nullptr);
  }
  uint64_t steps = 0;
  while (arena.GrowAhead()) ++steps;
  EXPECT_GE(steps, 1u);
  EXPECT_LE(steps, 3u) << "of 16 MiB";
  ReturnAll(slabs);
}

TEST(ArenaTest, PagesThatNobodyNeedsGoBackToTheSystem) {
  GroupMemory memory(false);
  Arena arena(64 * kMiB, memory);
  const std::vector<Slab*> burst = Burst(arena, 64);
  const auto resident = [&burst] {
    return std::ranges::count_if(burst,
                                 [](const Slab* slab) { return Resident(slab->data, slab->size); });
  };
  const uint64_t now = NowNs();
  const auto rest = arena.Trim(now + 9 * kSecond);
  EXPECT_EQ(resident(), 64) << "a program may need them again in a moment";
  EXPECT_GT(rest.count(), 0);
  EXPECT_LE(rest, std::chrono::seconds(1));
  EXPECT_EQ(arena.Trim(now + 11 * kSecond), std::chrono::nanoseconds::max());
  EXPECT_EQ(resident(), 0);
  EXPECT_FALSE(arena.GrowAhead()) << "nobody has asked for them again";
  const std::vector<Slab*> again = Burst(arena, 64);
  EXPECT_EQ(std::set(again.begin(), again.end()), std::set(burst.begin(), burst.end()));
}

TEST(ArenaTest, PagesThatAreNeededAgainAreKeptForFourPeriods) {
  GroupMemory memory(false);
  Arena arena(64 * kMiB, memory);
  const std::vector<Slab*> burst = Burst(arena, 64);
  const uint64_t now = NowNs();
  ASSERT_EQ(arena.Trim(now + 11 * kSecond), std::chrono::nanoseconds::max());
  for (Slab* slab : burst) slab->freed_ns = now - 12 * kSecond;  // they are needed after so long
  Burst(arena, 64);
  arena.Trim(NowNs() + 47 * kSecond);
  EXPECT_TRUE(Resident(burst.back()->data, burst.back()->size));
  arena.Trim(NowNs() + 49 * kSecond);
  EXPECT_FALSE(Resident(burst.back()->data, burst.back()->size));
}

TEST(ArenaTest, WhatIsUsedInTurnDoesNotKeepTheRest) {
  GroupMemory memory(false);
  Arena arena(64 * kMiB, memory);
  const std::vector<Slab*> burst = Burst(arena, 32);
  for (Slab* slab : burst) slab->freed_ns = NowNs() - 11 * kSecond;
  Slab* const used = arena.TryAcquire();
  Arena::Unref(used);
  arena.Trim(NowNs());
  EXPECT_TRUE(Resident(used->data, used->size));
  EXPECT_EQ(std::ranges::count_if(
                burst, [](const Slab* slab) { return Resident(slab->data, slab->size); }),
            1);
}

TEST(ArenaTest, WhereMemoryIsScarcePagesGoBackAtOnce) {
  GroupMemory memory(true);
  Arena arena(64 * kMiB, memory);
  const std::vector<Slab*> burst = Burst(arena, 64);
  const auto rest = arena.Trim(NowNs());
  EXPECT_LE(rest, milliseconds(200));
  arena.Trim(NowNs() + kSecond / 4);
  EXPECT_FALSE(Resident(burst.back()->data, burst.back()->size));
}

TEST(ArenaTest, TrimmingWhileOthersTakeAndReturn) {
  Arena arena(48 * kMiB);
  std::atomic<bool> over{false};
  std::thread trims([&] {
    while (!over) arena.Trim(NowNs() + 100 * kSecond);
  });
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 100; ++round) {
        std::vector<Slab*> held;
        for (int i = 0; i < 12; ++i) {
          Slab* slab = arena.TryAcquire();
          if (slab == nullptr) continue;
          Arena::FaultIn(*slab, slab->size);
          std::memset(slab->data, t + 1, 4096);
          held.push_back(slab);
        }
        for (const Slab* slab : held) failures += slab->data[4095] == std::byte(t + 1) ? 0 : 1;
        ReturnAll(held);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  over = true;
  trims.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(arena.in_use(), 0u);
}

// More slabs wanted than there are: nobody may hold one twice, and nobody may wait for ever.
TEST(ArenaTest, ManyThreadsShareFewSlabs) {
  Arena arena(256 * kKiB);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        Slab* slab = arena.AcquireUntil(steady_clock::now() + std::chrono::minutes(2));
        if (slab == nullptr) {
          ++failures;
          continue;
        }
        slab->data[0] = static_cast<std::byte>(t);
        if (i % 64 == 0) std::this_thread::yield();
        if (slab->data[0] != static_cast<std::byte>(t)) ++failures;
        Arena::Unref(slab);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(arena.in_use(), 0u);
}

// Threads take, others return, and the arena grows under them.
TEST(ArenaTest, GrowingWhileOthersRelease) {
  Arena arena(48 * kMiB);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&arena] {
      for (int round = 0; round < 20; ++round) {
        std::vector<Slab*> held;
        for (int i = 0; i < 20; ++i) {
          if (Slab* slab = arena.TryAcquire()) held.push_back(slab);
          arena.GrowAhead();
        }
        ReturnAll(held);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena.in_use(), 0u);
  const std::vector<Slab*> all = TakeAll(arena);
  EXPECT_EQ(all.size(), 48u);
  ReturnAll(all);
}

TEST(ArenaTest, AForkedChildCanGoOnWhileTheParentWaited) {
  Arena arena(kMiB);
  std::vector<Slab*> slabs = TakeAll(arena);
  std::atomic<bool> started{false};
  std::thread waiter([&] {
    started = true;
    Arena::Unref(arena.AcquireUntil(steady_clock::now() + std::chrono::hours(1)));
  });
  while (!started) std::this_thread::yield();
  arena.LockForFork();
  const pid_t child = fork();
  arena.UnlockAfterFork();
  if (child == 0) {
    alarm(20);  // a hang fails
    ReturnAll(slabs);
    Slab* slab = arena.AcquireUntil(steady_clock::now() + milliseconds(100));
    _exit(slab != nullptr && arena.in_use() == arena.slab_size() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ReturnAll(slabs);
  waiter.join();
  EXPECT_EQ(arena.in_use(), 0u);
}

// RLIMIT_AS is what batch systems set; sanitizers need more address space than any limit would
// leave.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TL_SANITIZED 1
#elif defined(__has_feature)
#define TL_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TL_SANITIZED 0
#endif
#if !TL_SANITIZED
TEST(ArenaTest, WhenTheSystemRefusesMemoryThereIsLessNotACrash) {
  const pid_t child = fork();
  if (child == 0) {
    Arena arena(512 * kMiB);
    uint64_t pages = 0;  // what earlier tests' threads left mapped differs from run to run
    std::ifstream("/proc/self/statm") >> pages;
    const uint64_t allowed = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + 100 * kMiB;
    const struct rlimit limit = {allowed, allowed};
    if (pages == 0 || setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    const std::vector<Slab*> slabs = TakeAll(arena);
    const bool some = slabs.size() >= 60 && slabs.size() <= 100;
    const bool none_left = arena.AcquireUntil(steady_clock::now()) == nullptr;
    _exit(some && none_left ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

}  // namespace
}  // namespace tidelane
