/// \file
/// Parts of slabs: how many fit, that they are apart, and that whole slabs come back.
#include "buffer/slab_parts.h"

#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "buffer/arena.h"

namespace tidelane {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;

TEST(SlabPartsTest, AThousandTakeWhatSixtyThreeSlabsHold) {
  Arena arena(256 * kMiB);
  std::vector<Slab*> parts;
  std::set<std::byte*> places;
  for (int i = 0; i < 1000; ++i) {
    parts.push_back(arena.parts().TryAcquire());
    ASSERT_NE(parts.back(), nullptr);
    EXPECT_EQ(parts.back()->size, kMiB / SlabParts::kParts);
    Arena::FaultIn(*parts.back(), 100);
    std::memset(parts.back()->data, i, parts.back()->size);
    places.insert(parts.back()->data);
  }
  EXPECT_EQ(places.size(), parts.size());
  EXPECT_EQ(arena.in_use(), 63 * kMiB);
  for (int i = 0; i < 1000; ++i) {  // nobody wrote over a neighbour
    EXPECT_EQ(parts[i]->data[0], static_cast<std::byte>(i));
    EXPECT_EQ(parts[i]->data[parts[i]->size - 1], static_cast<std::byte>(i));
  }
  for (Slab* part : parts) Arena::Unref(part);
  EXPECT_EQ(arena.in_use(), 0u);
}

TEST(SlabPartsTest, PartsAreCutInTheirTurn) {
  Arena arena(16 * kMiB);
  std::vector<Slab*> crumbs;
  for (size_t i = 0; i < SlabParts::kParts * SlabParts::kParts; ++i) {
    crumbs.push_back(arena.crumbs().TryAcquire());
    ASSERT_NE(crumbs.back(), nullptr);
    Arena::FaultIn(*crumbs.back(), 1);
    std::memset(crumbs.back()->data, static_cast<int>(i), crumbs.back()->size);
  }
  EXPECT_EQ(arena.in_use(), arena.slab_size()) << "all of one slab";
  for (size_t i = 0; i < crumbs.size(); ++i)
    EXPECT_EQ(crumbs[i]->data[0], static_cast<std::byte>(i));
  for (Slab* crumb : crumbs) Arena::Unref(crumb);
  EXPECT_EQ(arena.in_use(), 0u);
}

TEST(SlabPartsTest, APartThatComesBackIsUsedAgain) {
  Arena arena(16 * kMiB);
  std::vector<Slab*> parts;
  for (size_t i = 0; i < 2 * SlabParts::kParts; ++i) parts.push_back(arena.parts().TryAcquire());
  EXPECT_EQ(arena.in_use(), 2 * arena.slab_size());
  Arena::Unref(parts[5]);
  EXPECT_EQ(arena.parts().TryAcquire(), parts[5]);
  Slab* const third = arena.parts().TryAcquire();
  EXPECT_EQ(arena.in_use(), 3 * arena.slab_size());
  Arena::Unref(third);
  EXPECT_EQ(arena.in_use(), 2 * arena.slab_size());
  for (Slab* part : parts) Arena::Unref(part);
  EXPECT_EQ(arena.in_use(), 0u);
}

TEST(SlabPartsTest, AFullArenaHasNone) {
  Arena arena(kMiB);
  std::vector<Slab*> slabs;
  while (Slab* slab = arena.TryAcquire()) slabs.push_back(slab);
  EXPECT_EQ(arena.parts().TryAcquire(), nullptr);
  Arena::Unref(slabs.back());
  slabs.pop_back();
  Slab* const part = arena.parts().TryAcquire();
  EXPECT_NE(part, nullptr);
  Arena::Unref(part);
  for (Slab* slab : slabs) Arena::Unref(slab);
  EXPECT_EQ(arena.in_use(), 0u);
}

TEST(SlabPartsTest, ManyThreads) {
  Arena arena(4 * kMiB);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 300; ++round) {
        std::vector<Slab*> held;
        for (int i = 0; i < 20; ++i) {
          if (Slab* part = arena.parts().TryAcquire()) {
            part->data[0] = static_cast<std::byte>(t);
            held.push_back(part);
          }
        }
        for (Slab* part : held) {
          failures += part->data[0] == static_cast<std::byte>(t) ? 0 : 1;
          Arena::Unref(part);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(arena.in_use(), 0u);
}

}  // namespace
}  // namespace tidelane
