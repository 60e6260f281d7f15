/// \file
/// Fletcher32 is the sum of its definition at every length, and the one that HDF5 stored (vectors
/// made with HDF5 1.14.6).
#include "codec/fletcher32.h"

#include <random>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

// Word by word, in arithmetic modulo 65535 with 65535 in the place of 0 once anything was added.
uint32_t Defined(const std::vector<std::byte>& data) {
  uint64_t s1 = 0, s2 = 0;
  const auto reduce = [](uint64_t sum) { return sum == 0 ? 0 : (sum - 1) % 65535 + 1; };
  for (size_t i = 0; i < data.size(); i += 2) {
    const uint64_t low = i + 1 < data.size() ? std::to_integer<uint64_t>(data[i + 1]) : 0;
    s1 = reduce(s1 + (std::to_integer<uint64_t>(data[i]) << 8 | low));
    s2 = reduce(s2 + s1);
  }
  return static_cast<uint32_t>(s2 << 16 | s1);
}

TEST(Fletcher32Test, EveryLengthAsDefined) {
  std::mt19937 random(4);
  for (size_t n = 0; n < 1200; ++n) {
    std::vector<std::byte> data(n);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random());
    ASSERT_EQ(Fletcher32(data), Defined(data)) << n;
  }
  for (size_t n : {11519, 11520, 11521, 11552, 23040, 100003, 1 << 20}) {
    std::vector<std::byte> data(n);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random());
    ASSERT_EQ(Fletcher32(data), Defined(data)) << n;
  }
}

// The largest words are what could overflow; zeros are the only data with the sum 0.
TEST(Fletcher32Test, Extremes) {
  for (size_t n : {1, 2, 3, 31, 32, 33, 11519, 11520, 11552, 1 << 20}) {
    const std::vector<std::byte> ones(n, std::byte{0xff});
    EXPECT_EQ(Fletcher32(ones), Defined(ones)) << n;
    EXPECT_EQ(Fletcher32(std::vector<std::byte>(n)), 0u) << n;
  }
}

TEST(Fletcher32Test, FindsWhatChanged) {
  std::vector<std::byte> stored(1003, std::byte{7});
  StoreFletcher32(Fletcher32(std::span(stored).first(999)), stored.data() + 999);
  EXPECT_TRUE(EndsWithFletcher32(stored));
  for (size_t i = 0; i < stored.size(); ++i) {
    stored[i] ^= std::byte{1};
    EXPECT_FALSE(EndsWithFletcher32(stored)) << i;
    stored[i] ^= std::byte{1};
  }
}

TEST(Fletcher32Test, AcceptsTheOrderOfOldHdf5) {
  std::vector<std::byte> stored{std::byte{1}, std::byte{2}, std::byte{3}};
  stored.resize(7);
  StoreFletcher32(Fletcher32(std::span(stored).first(3)), stored.data() + 3);
  std::swap(stored[3], stored[4]);
  EXPECT_FALSE(EndsWithFletcher32(stored));
  std::swap(stored[5], stored[6]);
  EXPECT_TRUE(EndsWithFletcher32(stored));
}

}  // namespace
}  // namespace tidelane
