/// \file
/// Memory of slabs: each kind by itself, and what a forked child has of it and of an arena on it.
#include "buffer/slab_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "buffer/arena.h"

namespace tidelane {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

bool Mapped(const std::byte* base, size_t size) {
  std::vector<unsigned char> pages(size / static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  return mincore(const_cast<std::byte*>(base), size, pages.data()) == 0 || errno != ENOMEM;
}

bool Resident(const std::byte* base, size_t size) {
  std::vector<unsigned char> pages(size / static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  if (mincore(const_cast<std::byte*>(base), size, pages.data()) != 0) return false;
  for (const unsigned char flags : pages) {
    if ((flags & 1) == 0) return false;
  }
  return true;
}

// Calls of read(2) that this process has made so far; 0 where the system does not count them.
uint64_t ReadCalls() {
  std::ifstream io("/proc/self/io");
  std::string name;
  for (uint64_t value = 0; io >> name >> value;) {
    if (name == "syscr:") return value;
  }
  return 0;
}

// Lanes ask whenever they have nothing to do, and each look reads a file for each level of each control group.
TEST(PrivateMemory, WhetherMemoryIsScarceIsNotLookedUpEachTime) {
  const uint64_t before = ReadCalls();
  if (before == 0) GTEST_SKIP() << "the system does not count reads";
  constexpr uint64_t kAsked = 10'000;
  const bool first = PrivateMemory::Get().scarce();
  for (uint64_t i = 1; i < kAsked; ++i) EXPECT_EQ(PrivateMemory::Get().scarce(), first);
  EXPECT_LT(ReadCalls() - before, kAsked / 10);
}

// Runs `work` in a child as the engine forks; it says what of its expectations was not met, 0: nothing.
template <typename Work>
TL_NO_ANALYSIS int InChild(Arena& arena, Work work) {
  arena.LockForFork();
  const pid_t child = fork();
  arena.UnlockAfterFork();
  if (child == 0) {
    alarm(20);  // a hang fails
    _exit(work());
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + status;
}

uint64_t BytesTaken(int descriptor) {
  struct stat status = {};
  return fstat(descriptor, &status) == 0 ? static_cast<uint64_t>(status.st_blocks) * 512 : 0;
}

TEST(PrivateMemoryTest, RegionsAreAlignedAndFaultedWhereThatIsWanted) {
  PrivateMemory& memory = PrivateMemory::Get();
  bool faulted = false;
  std::byte* const lazy = memory.Acquire(kMiB, faulted);
  ASSERT_NE(lazy, nullptr);
  EXPECT_FALSE(faulted);
  EXPECT_FALSE(Resident(lazy, kMiB));
  EXPECT_TRUE(Populate(lazy, kMiB / 2));
  EXPECT_TRUE(Resident(lazy, kMiB / 2));
  faulted = true;
  std::byte* const large = memory.Acquire(4 * kMiB, faulted);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % (2 * kMiB), 0u);
  EXPECT_TRUE(Resident(large, 4 * kMiB));
  memory.Release(lazy, kMiB);
  memory.Release(large, 4 * kMiB);
  EXPECT_FALSE(Mapped(large, 4 * kMiB));
}

TEST(PrivateMemoryTest, AChildHasACopyOfItsOwn) {
  Arena arena(4 * kMiB);
  Slab* const slab = arena.TryAcquire();
  slab->data[0] = std::byte{1};
  EXPECT_EQ(InChild(arena,
                    [&] {
                      if (slab->data[0] != std::byte{1}) return 1;
                      slab->data[0] = std::byte{2};
                      Arena::Unref(slab);
                      return arena.in_use() == 0 && arena.TryAcquire() == slab ? 0 : 2;
                    }),
            0);
  EXPECT_EQ(slab->data[0], std::byte{1});
  Arena::Unref(slab);
}

TEST(SharedMemoryTest, WhoMapsTheDescriptorSeesTheBytes) {
  SharedMemory memory;
  bool faulted = false;
  std::byte* const small = memory.Acquire(kMiB, faulted);
  faulted = true;
  std::byte* const large = memory.Acquire(4 * kMiB, faulted);
  ASSERT_NE(small, nullptr);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % (2 * kMiB), 0u);
  EXPECT_TRUE(Resident(large, 4 * kMiB));
  small[5] = std::byte{5};
  large[kMiB] = std::byte{6};
  std::byte seen{};
  const auto read = [&](const std::byte* at) {
    return pread(memory.descriptor(), &seen, 1, static_cast<off_t>(memory.OffsetOf(at))) == 1;
  };
  EXPECT_TRUE(read(small + 5) && seen == std::byte{5});
  EXPECT_TRUE(read(large + kMiB) && seen == std::byte{6});
  memory.Release(small, kMiB);
  memory.Release(large, 4 * kMiB);
}

// Otherwise the first write to a page that the system does not have would end the program.
TEST(SharedMemoryTest, ItsPagesAreTakenAtOnceAndGivenBack) {
  SharedMemory memory;
  bool faulted = false;
  std::byte* const base = memory.Acquire(4 * kMiB, faulted);
  ASSERT_NE(base, nullptr);
  EXPECT_GE(BytesTaken(memory.descriptor()), 4 * kMiB);
  memory.Release(base, 4 * kMiB);
  EXPECT_LT(BytesTaken(memory.descriptor()), kMiB);
  EXPECT_FALSE(Mapped(base, 4 * kMiB));
}

TEST(SharedMemoryTest, AnArenaWorksOnItAsOnAnyOther) {
  SharedMemory memory;
  Arena arena(8 * kMiB, memory);
  std::vector<Slab*> slabs;
  while (Slab* slab = arena.TryAcquire()) {
    Arena::FaultIn(*slab, slab->size);
    std::memset(slab->data, static_cast<int>(slabs.size()), slab->size);
    slabs.push_back(slab);
  }
  EXPECT_EQ(slabs.size() * arena.slab_size(), arena.cap());
  for (size_t i = 0; i < slabs.size(); ++i) {
    EXPECT_EQ(slabs[i]->data[slabs[i]->size - 1], static_cast<std::byte>(i));
    Arena::Unref(slabs[i]);
  }
  EXPECT_EQ(arena.in_use(), 0u);
}

TEST(SharedMemoryTest, AChildHasNoneOfItAndBeginsAnew) {
  SharedMemory memory;
  Arena arena(kMiB, memory);
  Slab* const slab = arena.TryAcquire();
  std::byte* const bytes = slab->data;
  const size_t size = slab->size;
  std::memset(bytes, 1, size);
  const int descriptor = memory.descriptor();
  EXPECT_EQ(InChild(arena,
                    [&] {
                      if (slab->data != nullptr || slab->size != 0) return 1;
                      if (Mapped(bytes, size)) return 2;
                      if (fcntl(descriptor, F_GETFD) >= 0) return 3;
                      if (arena.in_use() != 0) return 4;
                      Arena::Ref(slab);  // as extents do; nothing comes of it
                      Arena::Unref(slab);
                      Arena::Unref(slab);
                      for (uint64_t taken = 0; taken < arena.cap(); taken += arena.slab_size()) {
                        Slab* const fresh = arena.TryAcquire();
                        if (fresh == nullptr || fresh == slab) return 5;
                        std::memset(fresh->data, 2, fresh->size);
                      }
                      return arena.TryAcquire() == nullptr ? 0 : 6;
                    }),
            0);
  for (size_t i = 0; i < size; ++i) ASSERT_EQ(bytes[i], std::byte{1});
  Arena::Unref(slab);
  EXPECT_EQ(arena.TryAcquire(), slab) << "the parent goes on as if nothing had been";
  Arena::Unref(slab);
}

TEST(SharedMemoryTest, AChildOfAChildHasNoneOfEither) {
  SharedMemory memory;
  Arena arena(kMiB, memory);
  Slab* const first = arena.TryAcquire();
  EXPECT_EQ(InChild(arena,
                    [&] {
                      Slab* const second = arena.TryAcquire();
                      std::memset(second->data, 2, second->size);
                      const int found = InChild(arena, [&] {
                        if (first->size != 0 || second->size != 0) return 1;
                        Slab* const third = arena.TryAcquire();
                        std::memset(third->data, 3, third->size);
                        return 0;
                      });
                      return found == 0 && second->data[0] == std::byte{2} ? 0 : 1;
                    }),
            0);
  Arena::Unref(first);
}

}  // namespace
}  // namespace tidelane
