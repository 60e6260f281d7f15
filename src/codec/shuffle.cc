/// \file
/// Shuffling as a transposition of a matrix of bytes, elements by bytes of an element. Elements of 2, 4,
/// 8 and 16 bytes are done in vectors of sixteen bytes; others in blocks of elements that stay in the
/// first-level cache.
///
/// Thread safety: pure functions.
#include "codec/shuffle.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace tidelane {
namespace {

// Sixteen bytes at once, in whatever registers the machine has.
using Lane = uint8_t __attribute__((vector_size(16)));
constexpr size_t kLane = sizeof(Lane);

#if __has_builtin(__builtin_shufflevector)
#define TL_PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else  // GCC 11
#define TL_PICK(a, b, ...) __builtin_shuffle(a, b, Lane{__VA_ARGS__})
#endif

// The bytes of `a` and `b` in turn: first halves, second halves.
Lane FirstInTurn(Lane a, Lane b) {
  return TL_PICK(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
Lane SecondInTurn(Lane a, Lane b) {
  return TL_PICK(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
#undef TL_PICK

// Taking the two halves of all bytes in turn moves a byte from where it was to the place whose number has
// the same bits, rotated by one. Elements by columns and columns by elements are rotations of each other.
template <size_t kElement, unsigned kRounds>
void Rotate(Lane (&lanes)[kElement]) {
#pragma GCC unroll 4
  for (unsigned round = 0; round < kRounds; ++round) {
    Lane turned[kElement];
#pragma GCC unroll 8
    for (size_t i = 0; i < kElement / 2; ++i) {
      turned[2 * i] = FirstInTurn(lanes[i], lanes[i + kElement / 2]);
      turned[2 * i + 1] = SecondInTurn(lanes[i], lanes[i + kElement / 2]);
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < kElement; ++i) lanes[i] = turned[i];
  }
}

template <size_t kElement>
void ShuffleFixed(const std::byte* __restrict from, size_t elements, std::byte* __restrict to) {
  size_t at = 0;
  for (; at + kLane <= elements; at += kLane) {
    Lane lanes[kElement];
#pragma GCC unroll 16
    for (size_t k = 0; k < kElement; ++k) {
      std::memcpy(&lanes[k], from + at * kElement + k * kLane, kLane);
    }
    Rotate<kElement, std::countr_zero(kLane)>(lanes);
#pragma GCC unroll 16
    for (size_t k = 0; k < kElement; ++k) std::memcpy(to + k * elements + at, &lanes[k], kLane);
  }
  for (; at < elements; ++at) {
    for (size_t k = 0; k < kElement; ++k) to[k * elements + at] = from[at * kElement + k];
  }
}

template <size_t kElement>
void UnshuffleFixed(const std::byte* __restrict from, size_t elements, std::byte* __restrict to) {
  size_t at = 0;
  for (; at + kLane <= elements; at += kLane) {
    Lane lanes[kElement];
#pragma GCC unroll 16
    for (size_t k = 0; k < kElement; ++k) std::memcpy(&lanes[k], from + k * elements + at, kLane);
    Rotate<kElement, std::countr_zero(kElement)>(lanes);
#pragma GCC unroll 16
    for (size_t k = 0; k < kElement; ++k) {
      std::memcpy(to + at * kElement + k * kLane, &lanes[k], kLane);
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
    case 16: ShuffleFixed<16>(from.data(), elements, to); break;
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
    case 16: UnshuffleFixed<16>(from.data(), elements, to); break;
    default: UnshuffleAny(from.data(), elements, element, to);
  }
  const size_t whole = elements * element;
  std::memcpy(to + whole, from.data() + whole, from.size() - whole);
}

}  // namespace tidelane
