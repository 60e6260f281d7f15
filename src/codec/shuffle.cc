/// \file
/// Shuffling as a transposition of a matrix of bytes, elements by bytes of an element. For elements
/// of 2, 4 and 8 bytes the inner loop has a constant stride, which the compiler turns into vector
/// instructions; others are done in blocks of elements that stay in the first-level cache.
///
/// Thread safety: pure functions.
#include "codec/shuffle.h"

#include <algorithm>
#include <cstring>

namespace tidelane {
namespace {

template <size_t kElement>
void ShuffleFixed(const std::byte* __restrict from, size_t elements, std::byte* __restrict to) {
  constexpr size_t kBlock = 64;  // elements whose bytes are gathered before they are spread
  size_t at = 0;
  for (; at + kBlock <= elements; at += kBlock) {
    std::byte columns[kElement][kBlock];
    for (size_t i = 0; i < kBlock; ++i) {
      for (size_t k = 0; k < kElement; ++k) columns[k][i] = from[(at + i) * kElement + k];
    }
    for (size_t k = 0; k < kElement; ++k) std::memcpy(to + k * elements + at, columns[k], kBlock);
  }
  for (; at < elements; ++at) {
    for (size_t k = 0; k < kElement; ++k) to[k * elements + at] = from[at * kElement + k];
  }
}

template <size_t kElement>
void UnshuffleFixed(const std::byte* __restrict from, size_t elements, std::byte* __restrict to) {
  constexpr size_t kBlock = 64;
  size_t at = 0;
  for (; at + kBlock <= elements; at += kBlock) {
    std::byte columns[kElement][kBlock];
    for (size_t k = 0; k < kElement; ++k) std::memcpy(columns[k], from + k * elements + at, kBlock);
    for (size_t i = 0; i < kBlock; ++i) {
      for (size_t k = 0; k < kElement; ++k) to[(at + i) * kElement + k] = columns[k][i];
    }
  }
  for (; at < elements; ++at) {
    for (size_t k = 0; k < kElement; ++k) to[at * kElement + k] = from[k * elements + at];
  }
}

// Calls `each(first, last)` for blocks of elements of about 8 KiB.
template <typename Each>
void InBlocks(size_t elements, size_t element, Each each) {
  const size_t block = std::max<size_t>(1, (size_t{8} << 10) / element);
  for (size_t at = 0; at < elements; at += block) each(at, std::min(elements, at + block));
}

void ShuffleAny(const std::byte* __restrict from, size_t elements, size_t element,
                std::byte* __restrict to) {
  InBlocks(elements, element, [=](size_t first, size_t last) {
    for (size_t k = 0; k < element; ++k) {
      for (size_t i = first; i < last; ++i) to[k * elements + i] = from[i * element + k];
    }
  });
}

void UnshuffleAny(const std::byte* __restrict from, size_t elements, size_t element,
                  std::byte* __restrict to) {
  InBlocks(elements, element, [=](size_t first, size_t last) {
    for (size_t k = 0; k < element; ++k) {
      for (size_t i = first; i < last; ++i) to[i * element + k] = from[k * elements + i];
    }
  });
}

}  // namespace

void Shuffle(std::span<const std::byte> from, size_t element, std::byte* to) {
  if (from.empty()) return;
  const size_t elements = from.size() / element;
  switch (element) {
    case 2: ShuffleFixed<2>(from.data(), elements, to); break;
    case 4: ShuffleFixed<4>(from.data(), elements, to); break;
    case 8: ShuffleFixed<8>(from.data(), elements, to); break;
    default: ShuffleAny(from.data(), elements, element, to);
  }
  const size_t whole = elements * element;
  std::memcpy(to + whole, from.data() + whole, from.size() - whole);
}

void Unshuffle(std::span<const std::byte> from, size_t element, std::byte* to) {
  if (from.empty()) return;
  const size_t elements = from.size() / element;
  switch (element) {
    case 2: UnshuffleFixed<2>(from.data(), elements, to); break;
    case 4: UnshuffleFixed<4>(from.data(), elements, to); break;
    case 8: UnshuffleFixed<8>(from.data(), elements, to); break;
    default: UnshuffleAny(from.data(), elements, element, to);
  }
  const size_t whole = elements * element;
  std::memcpy(to + whole, from.data() + whole, from.size() - whole);
}

}  // namespace tidelane
