/// \file
/// The loops for processors with AVX-512 of bytes and words: 64 bytes at a time.
///
/// Thread safety: no state.
#ifdef __x86_64__

#include <immintrin.h>

#ifdef __SANITIZE_ADDRESS__
// GCC 12 lays variables of 64 bytes on the sanitizer's own stack as if it were aligned for them (its bug 110027).
#define TIDELANE_LOOPS_TARGET \
  __attribute__((target("avx512f,avx512bw,popcnt"), no_sanitize_address))
#else
#define TIDELANE_LOOPS_TARGET __attribute__((target("avx512f,avx512bw,popcnt")))
#endif
#include "predicate/loops.h"
#include "predicate/loops_template.h"

namespace tidelane::predicate {
namespace {

#define TIDELANE_INLINE TIDELANE_LOOPS_TARGET __attribute__((always_inline)) static inline

// GCC 12 may put a mask that it widens on the stack in its own width, and read it back in the wider one. So it is in a general register first.
template <class Mask>
TIDELANE_INLINE uint64_t Widened(Mask mask) {
  asm("" : "+r"(mask));
  return mask;
}

// Masks of all elements where an instruction needs none: without them GCC 12 warns of its own undefined register.
template <unsigned kBytes>
struct Lanes;
template <>
struct Lanes<1> {
  TIDELANE_INLINE __m512i Set(uint64_t value) { return _mm512_set1_epi8(static_cast<char>(value)); }
  TIDELANE_INLINE __m512i Subtract(__m512i a, __m512i b) { return _mm512_sub_epi8(a, b); }
  TIDELANE_INLINE uint64_t Greater(__m512i a, __m512i b) { return _mm512_cmpgt_epi8_mask(a, b); }
};
template <>
struct Lanes<2> {
  TIDELANE_INLINE __m512i Set(uint64_t value) {
    return _mm512_set1_epi16(static_cast<short>(value));
  }
  TIDELANE_INLINE __m512i Subtract(__m512i a, __m512i b) { return _mm512_sub_epi16(a, b); }
  TIDELANE_INLINE uint64_t Greater(__m512i a, __m512i b) {
    return Widened(_mm512_cmpgt_epi16_mask(a, b));
  }
  TIDELANE_INLINE __m512i Signs(__m512i a) { return _mm512_maskz_srai_epi16(~__mmask32{0}, a, 15); }
  /// Of 16 bytes.
  TIDELANE_INLINE __m128i Swaps() {
    return _mm_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  }
};
template <>
struct Lanes<4> {
  TIDELANE_INLINE __m512i Set(uint64_t value) {
    return _mm512_set1_epi32(static_cast<int>(static_cast<uint32_t>(value)));
  }
  TIDELANE_INLINE __m512i Subtract(__m512i a, __m512i b) { return _mm512_sub_epi32(a, b); }
  TIDELANE_INLINE uint64_t Greater(__m512i a, __m512i b) {
    return Widened(_mm512_cmpgt_epi32_mask(a, b));
  }
  TIDELANE_INLINE __m512i Signs(__m512i a) {
    return _mm512_maskz_srai_epi32(__mmask16{0xffff}, a, 31);
  }
  TIDELANE_INLINE __m128i Swaps() {
    return _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
  }
};
template <>
struct Lanes<8> {
  TIDELANE_INLINE __m512i Set(uint64_t value) {
    return _mm512_set1_epi64(static_cast<long long>(value));
  }
  TIDELANE_INLINE __m512i Subtract(__m512i a, __m512i b) { return _mm512_sub_epi64(a, b); }
  TIDELANE_INLINE uint64_t Greater(__m512i a, __m512i b) {
    return Widened(_mm512_cmpgt_epi64_mask(a, b));
  }
  TIDELANE_INLINE __m512i Signs(__m512i a) {
    return _mm512_maskz_srai_epi64(__mmask8{0xff}, a, 63);
  }
  TIDELANE_INLINE __m128i Swaps() {
    return _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
  }
};

template <unsigned kBytes, bool kSwapped, bool kMagnitudes>
struct Wider {
  using Vector = __m512i;
  using Lane = Lanes<kBytes>;
  static constexpr size_t kSize = kBytes;
  static constexpr size_t kStep = 64 / kBytes;  // elements

  TIDELANE_INLINE __m512i Set(uint64_t value) { return Lane::Set(value); }
  TIDELANE_INLINE uint64_t Ones(uint64_t x) { return static_cast<uint64_t>(_mm_popcnt_u64(x)); }

  TIDELANE_INLINE uint64_t Outside(const unsigned char* from, __m512i bias, __m512i limit) {
    __m512i elements = _mm512_loadu_si512(from);
    if constexpr (kSwapped) {
      elements = _mm512_shuffle_epi8(
          elements, _mm512_maskz_broadcast_i32x4(__mmask16{0xffff}, Lane::Swaps()));
    }
    if constexpr (kMagnitudes) {
      const __m512i magnitude = Lane::Set(~uint64_t{0} >> 1 >> (64 - 8 * kBytes));
      elements = _mm512_xor_si512(elements, _mm512_and_si512(Lane::Signs(elements), magnitude));
    }
    return Lane::Greater(Lane::Subtract(elements, bias), limit);
  }

  TIDELANE_INLINE uint64_t Word(const unsigned char* from, __m512i bias, __m512i limit) {
    uint64_t word = 0;
    for (unsigned i = 0; i < kWord; i += kStep) {
      word |= Outside(from + i * kSize, bias, limit) << i;
    }
    return word;
  }
};

}  // namespace

Loop Avx512Loop(const Shape& shape) { return LoopOfFamily<Wider>(shape); }

}  // namespace tidelane::predicate

#else

#include "predicate/loops.h"

namespace tidelane::predicate {
Loop Avx512Loop(const Shape&) { return nullptr; }
}  // namespace tidelane::predicate

#endif
