#include "buffer/staging.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "buffer/arena.h"

namespace tidelane {
namespace {

constexpr uint64_t kUnit = StagingMemory::kUnit;
constexpr uint64_t kGranule = StagingMemory::kGranule;

// What it was asked to pin, and whether it does.
struct Pins final : Pinner {
  int Pin(std::byte* begin, uint64_t size) override {
    if (error == 0) pinned.push_back({begin, size});
    return error;
  }
  std::vector<std::pair<std::byte*, uint64_t>> pinned;
  int error = 0;
};

TEST(StagingMemory, PinsAGranuleOnceAndKeepsIt) {
  StagingMemory memory(4 * kGranule);
  Pins pins;
  for (int i = 0; i < 3; ++i) {
    Slab* const slab = memory.TryAcquire(kGranule / 2, pins);
    ASSERT_NE(slab, nullptr);
    std::memset(slab->data, i, kGranule / 2);
    Arena::Unref(slab);
  }
  ASSERT_EQ(pins.pinned.size(), 1u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pins.pinned[0].first) % kGranule, 0u);
  EXPECT_EQ(memory.pinned(), kGranule);
  EXPECT_EQ(memory.in_use(), 0u);
}

TEST(StagingMemory, WhatCannotBePinnedIsUsedAllTheSame) {
  StagingMemory memory(kGranule);
  Pins pins;
  pins.error = 1;
  Slab* const slab = memory.TryAcquire(kUnit, pins);
  ASSERT_NE(slab, nullptr);
  std::memset(slab->data, 1, kUnit);
  EXPECT_EQ(memory.pinned(), 0u);
  Arena::Unref(slab);
}

TEST(StagingMemory, NeverGivesMoreThanItsCap) {
  StagingMemory memory(2 * kGranule);
  Pins pins;
  EXPECT_EQ(memory.TryAcquire(2 * kGranule + 1, pins), nullptr);
  Slab* const all = memory.TryAcquire(2 * kGranule, pins);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(memory.TryAcquire(1, pins), nullptr);
  Arena::Unref(all);
  Slab* const again = memory.TryAcquire(1, pins);
  ASSERT_NE(again, nullptr);
  Arena::Unref(again);
}

TEST(StagingMemory, AWaiterSeesWhatComesBack) {
  StagingMemory memory(kGranule);
  Pins pins;
  Slab* const all = memory.TryAcquire(kGranule, pins);
  std::thread lane([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Arena::Unref(all);
  });
  Slab* slab = nullptr;
  while (slab == nullptr) {
    memory.AwaitReturn(std::chrono::steady_clock::now() + std::chrono::seconds(30));
    slab = memory.TryAcquire(kGranule, pins);
  }
  lane.join();
  Arena::Unref(slab);
}

TEST(StagingMemory, RandomPiecesAreDisjointAndJoinAgain) {
  StagingMemory memory(3 * kGranule);
  Pins pins;
  std::mt19937 random(7);
  struct Held {
    Slab* slab;
    uint64_t size;
    int value;
  };
  std::vector<Held> held;
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    if (held.empty() || random() % 2 == 0) {
      const uint64_t size = 1 + random() % (kGranule / 2);
      Slab* const slab = memory.TryAcquire(size, pins);
      if (slab == nullptr) {
        ++refused;
        continue;
      }
      slab->data[0] = slab->data[size - 1] = static_cast<std::byte>(i);
      held.push_back({slab, size, i});
    } else {
      std::swap(held[random() % held.size()], held.back());
      const auto [slab, size, value] = held.back();
      ASSERT_EQ(slab->data[0], static_cast<std::byte>(value));
      ASSERT_EQ(slab->data[size - 1], static_cast<std::byte>(value));
      Arena::Unref(slab);
      held.pop_back();
    }
  }
  EXPECT_GT(refused, 0);
  for (const Held& piece : held) Arena::Unref(piece.slab);
  Slab* const all = memory.TryAcquire(3 * kGranule, pins);  // one piece again
  ASSERT_NE(all, nullptr);
  Arena::Unref(all);
}

TEST(StagingMemory, AChildHasNoneOfItAndBeginsAnew) {
  StagingMemory memory(kGranule);
  Pins pins;
  Slab* const before = memory.TryAcquire(kUnit, pins);
  ASSERT_NE(before, nullptr);
  memory.LockForFork();
  const pid_t child = fork();
  memory.UnlockAfterFork(child == 0);
  if (child == 0) {
    const bool withdrawn = before->kind == Slab::Kind::kWithdrawn && before->data == nullptr;
    Arena::Unref(before);
    Slab* const own = memory.TryAcquire(kGranule, pins);
    const bool fresh = own != nullptr;
    if (fresh) std::memset(own->data, 1, kGranule);
    _exit(withdrawn && fresh ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  before->data[0] = std::byte{1};
  Arena::Unref(before);
}

}  // namespace
}  // namespace tidelane
