/// \file
/// The loops for processors with AVX2: 32 bytes at a time.
///
/// Thread safety: no state.
#ifdef __x86_64__

#include <immintrin.h>

#define TIDELANE_LOOPS_TARGET __attribute__((target("avx2,popcnt")))
#include "predicate/loops.h"
#include "predicate/loops_template.h"

namespace tidelane::predicate {
namespace {

#define TIDELANE_INLINE TIDELANE_LOOPS_TARGET __attribute__((always_inline)) static inline

template <unsigned kBytes>
struct Lanes;
template <>
struct Lanes<1> {
  TIDELANE_INLINE __m256i Set(uint64_t value) { return _mm256_set1_epi8(static_cast<char>(value)); }
  TIDELANE_INLINE __m256i Subtract(__m256i a, __m256i b) { return _mm256_sub_epi8(a, b); }
  TIDELANE_INLINE __m256i Greater(__m256i a, __m256i b) { return _mm256_cmpgt_epi8(a, b); }
};
template <>
struct Lanes<2> {
  TIDELANE_INLINE __m256i Set(uint64_t value) {
    return _mm256_set1_epi16(static_cast<short>(value));
  }
  TIDELANE_INLINE __m256i Subtract(__m256i a, __m256i b) { return _mm256_sub_epi16(a, b); }
  TIDELANE_INLINE __m256i Greater(__m256i a, __m256i b) { return _mm256_cmpgt_epi16(a, b); }
  /// Of each 16 bytes.
  TIDELANE_INLINE __m256i Swaps() {
    return _mm256_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14, 1, 0, 3, 2, 5, 4,
                            7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  }
};
template <>
struct Lanes<4> {
  TIDELANE_INLINE __m256i Set(uint64_t value) {
    return _mm256_set1_epi32(static_cast<int>(static_cast<uint32_t>(value)));
  }
  TIDELANE_INLINE __m256i Subtract(__m256i a, __m256i b) { return _mm256_sub_epi32(a, b); }
  TIDELANE_INLINE __m256i Greater(__m256i a, __m256i b) { return _mm256_cmpgt_epi32(a, b); }
  TIDELANE_INLINE __m256i Swaps() {
    return _mm256_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 3, 2, 1, 0, 7, 6,
                            5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
  }
};
template <>
struct Lanes<8> {
  TIDELANE_INLINE __m256i Set(uint64_t value) {
    return _mm256_set1_epi64x(static_cast<long long>(value));
  }
  TIDELANE_INLINE __m256i Subtract(__m256i a, __m256i b) { return _mm256_sub_epi64(a, b); }
  TIDELANE_INLINE __m256i Greater(__m256i a, __m256i b) { return _mm256_cmpgt_epi64(a, b); }
  TIDELANE_INLINE __m256i Swaps() {
    return _mm256_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2,
                            1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
  }
};

template <unsigned kBytes, bool kSwapped, bool kMagnitudes>
struct Wide {
  using Vector = __m256i;
  using Lane = Lanes<kBytes>;
  static constexpr size_t kSize = kBytes;

  TIDELANE_INLINE __m256i Set(uint64_t value) { return Lane::Set(value); }
  TIDELANE_INLINE uint64_t Ones(uint64_t x) { return static_cast<uint64_t>(_mm_popcnt_u64(x)); }

  /// All bits of each element outside.
  TIDELANE_INLINE __m256i Outside(const unsigned char* from, __m256i bias, __m256i limit) {
    __m256i elements = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    if constexpr (kSwapped) elements = _mm256_shuffle_epi8(elements, Lane::Swaps());
    if constexpr (kMagnitudes) {
      const __m256i negative = Lane::Greater(_mm256_setzero_si256(), elements);
      const __m256i magnitude = Lane::Set(~uint64_t{0} >> 1 >> (64 - 8 * kBytes));
      elements = _mm256_xor_si256(elements, _mm256_and_si256(negative, magnitude));
    }
    return Lane::Greater(Lane::Subtract(elements, bias), limit);
  }

  TIDELANE_INLINE uint64_t BitOfEachByte(__m256i bytes) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(bytes));
  }

  /// A byte for each of 32 elements. Packing keeps to halves of 16 bytes: what it leaves is put in order at the end.
  TIDELANE_INLINE __m256i Packed(const unsigned char* from, __m256i bias, __m256i limit) {
    const __m256i first = Outside(from, bias, limit);
    const __m256i second = Outside(from + 32, bias, limit);
    if constexpr (kBytes == 2) {
      return _mm256_permute4x64_epi64(_mm256_packs_epi16(first, second), 0b11011000);
    } else {
      const __m256i third = Outside(from + 64, bias, limit);
      const __m256i fourth = Outside(from + 96, bias, limit);
      const __m256i bytes =
          _mm256_packs_epi16(_mm256_packs_epi32(first, second), _mm256_packs_epi32(third, fourth));
      return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    }
  }

  TIDELANE_INLINE uint64_t Word(const unsigned char* from, __m256i bias, __m256i limit) {
    uint64_t word = 0;
    if constexpr (kBytes == 1) {
      word = BitOfEachByte(Outside(from, bias, limit)) |
             BitOfEachByte(Outside(from + 32, bias, limit)) << 32;
    } else if constexpr (kBytes == 2) {
      for (unsigned i = 0; i < 2; ++i)
        word |= BitOfEachByte(Packed(from + i * size_t{64}, bias, limit)) << i * 32;
    } else if constexpr (kBytes == 4) {
      for (unsigned i = 0; i < 2; ++i)
        word |= BitOfEachByte(Packed(from + i * size_t{128}, bias, limit)) << i * 32;
    } else {
      for (unsigned i = 0; i < kWord; i += 4) {
        const __m256i outside = Outside(from + i * kSize, bias, limit);
        const int bits = _mm256_movemask_pd(_mm256_castsi256_pd(outside));
        word |= static_cast<uint64_t>(static_cast<uint32_t>(bits)) << i;
      }
    }
    return word;
  }
};

}  // namespace

Loop Avx2Loop(const Shape& shape) { return LoopOfFamily<Wide>(shape); }

}  // namespace tidelane::predicate

#else

#include "predicate/loops.h"

namespace tidelane::predicate {
Loop Avx2Loop(const Shape&) { return nullptr; }
}  // namespace tidelane::predicate

#endif
