/// \file
/// Shuffle puts every byte where HDF5's definition of the filter puts it, at every element size and
/// length; Unshuffle undoes it.
#include "codec/shuffle.h"

#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

std::vector<std::byte> Pattern(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 131 + (i >> 8) * 7 + 1);
  return bytes;
}

// The definition: byte k of element i goes to place k * elements + i; the rest stays.
std::vector<std::byte> Defined(const std::vector<std::byte>& from, size_t element) {
  std::vector<std::byte> to = from;
  const size_t elements = from.size() / element;
  for (size_t i = 0; i < elements; ++i) {
    for (size_t k = 0; k < element; ++k) to[k * elements + i] = from[i * element + k];
  }
  return to;
}

TEST(ShuffleTest, EverySizeAsDefinedAndBack) {
  for (size_t element : {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 100, 9000}) {
    for (size_t n : {0,   1,   2,   3,   4,   7,   8,    9,    63,   64,    65,    127,
                     128, 129, 511, 512, 513, 520, 1023, 4096, 4099, 18000, 20003, 100001}) {
      const std::vector<std::byte> from = Pattern(n);
      std::vector<std::byte> to(n + 1, std::byte{0x5a});
      Shuffle(from, element, to.data());
      ASSERT_EQ(to.back(), std::byte{0x5a}) << element << " " << n;
      to.pop_back();
      ASSERT_EQ(to, Defined(from, element)) << element << " " << n;
      std::vector<std::byte> back(n + 1, std::byte{0x5a});
      Unshuffle(to, element, back.data());
      ASSERT_EQ(back.back(), std::byte{0x5a}) << element << " " << n;
      back.pop_back();
      ASSERT_EQ(back, from) << element << " " << n;
    }
  }
}

}  // namespace
}  // namespace tidelane
