/// \file
/// CopyBytes copies exactly what memcpy would, at every alignment and length, in both ways.
#include "buffer/copy.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

constexpr size_t kSmall = 0;                // total of a small write
constexpr size_t kLarge = size_t{1} << 40;  // total of a write that streams

std::vector<uint8_t> Pattern(size_t n) {
  std::vector<uint8_t> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<uint8_t>(i * 131 + (i >> 8) * 7 + 1);
  return bytes;
}

void CheckCopy(size_t to, size_t from, size_t n, size_t total) {
  constexpr size_t kMargin = 128;
  constexpr uint8_t kUntouched = 0;
  const std::vector<uint8_t> source = Pattern(from + n);
  std::vector<uint8_t> target(to + n + kMargin, kUntouched);
  CopyBytes(target.data() + to, source.data() + from, n, total);
  ASSERT_TRUE(std::equal(target.begin() + static_cast<ptrdiff_t>(to),
                         target.begin() + static_cast<ptrdiff_t>(to + n),
                         source.begin() + static_cast<ptrdiff_t>(from)))
      << to << " " << from << " " << n << " " << total;
  const auto is_untouched = [](uint8_t byte) { return byte == kUntouched; };
  ASSERT_TRUE(
      std::all_of(target.begin(), target.begin() + static_cast<ptrdiff_t>(to), is_untouched));
  ASSERT_TRUE(
      std::all_of(target.begin() + static_cast<ptrdiff_t>(to + n), target.end(), is_untouched));
}

TEST(CopyTest, EveryAlignment) {
  for (size_t total : {kSmall, kLarge}) {
    for (size_t to = 0; to < 65; ++to) {
      for (size_t from : {0, 1, 7, 8, 24, 31, 63}) CheckCopy(to, from, 1000, total);
    }
  }
}

TEST(CopyTest, EveryShortLength) {
  for (size_t n = 0; n < 600; ++n) {
    CheckCopy(3, 5, n, kSmall);
    CheckCopy(3, 5, n, kLarge);
    CheckCopy(0, 0, n, kLarge);
  }
}

TEST(CopyTest, LargePieces) {
  CheckCopy(0, 0, (size_t{1} << 20), kLarge);
  CheckCopy(17, 24, (size_t{9} << 20) + 13, kLarge);
  CheckCopy(17, 24, (size_t{1} << 20) + 13, kSmall);
}

TEST(CopyTest, NothingFromNowhere) { CopyBytes(nullptr, nullptr, 0, kLarge); }

// A lane reads what the caller streamed as soon as it is told: the stores must have arrived by
// then.
TEST(CopyTest, AnotherThreadSeesStreamedBytes) {
  const std::vector<uint8_t> source = Pattern(1 << 20);
  for (int round = 0; round < 20; ++round) {
    std::vector<uint8_t> slab(1 << 20);
    std::atomic<bool> ready{false};
    bool equal = false;
    std::thread lane([&] {
      while (!ready.load(std::memory_order_acquire)) std::this_thread::yield();
      equal = slab == source;
    });
    CopyBytes(slab.data(), source.data(), slab.size(), kLarge);
    ready.store(true, std::memory_order_release);
    lane.join();
    EXPECT_TRUE(equal);
  }
}

}  // namespace
}  // namespace tidelane
