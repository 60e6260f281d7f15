/// \file
/// The loops for any processor of the architecture: plain C++ of fixed lengths, which compilers make vector instructions of.
///
/// Thread safety: no state.
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "predicate/loops.h"
#include "predicate/loops_template.h"

namespace tidelane::predicate {
namespace {

template <unsigned kBytes>
struct Integer;
template <>
struct Integer<1> {
  using Unsigned = uint8_t;
  using Signed = int8_t;
  static Unsigned Swap(Unsigned x) { return x; }
};
template <>
struct Integer<2> {
  using Unsigned = uint16_t;
  using Signed = int16_t;
  static Unsigned Swap(Unsigned x) { return static_cast<Unsigned>(x << 8 | x >> 8); }
};
template <>
struct Integer<4> {
  using Unsigned = uint32_t;
  using Signed = int32_t;
  static Unsigned Swap(Unsigned x) { return __builtin_bswap32(x); }
};
template <>
struct Integer<8> {
  using Unsigned = uint64_t;
  using Signed = int64_t;
  static Unsigned Swap(Unsigned x) { return __builtin_bswap64(x); }
};

/// The bit of each byte, which is 0 or 0xff.
uint64_t BitOfEach(const uint8_t* bytes) {
  uint64_t word = 0;
#ifdef __SSE2__
  for (unsigned i = 0; i < kWord; i += 16) {
    const __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
    word |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(sixteen))) << i;
  }
#else
  for (unsigned i = 0; i < kWord; i += 8) {
    uint64_t eight;
    memcpy(&eight, bytes + i, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    // The product's highest byte gets the lowest bit of each byte, and no carry.
    word |= ((eight & 0x0101010101010101) * 0x0102040810204080 >> 56) << i;
  }
#endif
  return word;
}

template <unsigned kBytes, bool kSwapped, bool kMagnitudes>
struct Plain {
  using Unsigned = typename Integer<kBytes>::Unsigned;
  using Signed = typename Integer<kBytes>::Signed;
  using Vector = Unsigned;
  static constexpr size_t kSize = kBytes;

  static Vector Set(uint64_t value) { return static_cast<Unsigned>(value); }

  static uint64_t Ones(uint64_t x) {
    x -= x >> 1 & 0x5555555555555555;
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return x * 0x0101010101010101 >> 56;
  }

  static uint64_t Word(const unsigned char* from, Vector bias, Vector limit) {
    constexpr Unsigned kMagnitude = static_cast<Unsigned>(~Unsigned{0}) >> 1;
    uint8_t outside[kWord];
    for (size_t i = 0; i < kWord; ++i) {
      Unsigned element;
      memcpy(&element, from + i * kBytes, kBytes);
      if constexpr (kSwapped) element = Integer<kBytes>::Swap(element);
      if constexpr (kMagnitudes) {
        const Signed sign = static_cast<Signed>(static_cast<Signed>(element) >> (8 * kBytes - 1));
        element = static_cast<Unsigned>(element ^ (static_cast<Unsigned>(sign) & kMagnitude));
      }
      const auto apart = static_cast<Signed>(static_cast<Unsigned>(element - bias));
      outside[i] = apart > static_cast<Signed>(limit) ? 0xff : 0;
    }
    return BitOfEach(outside);
  }
};

}  // namespace

Loop BaselineLoop(const Shape& shape) { return LoopOfFamily<Plain>(shape); }

}  // namespace tidelane::predicate
