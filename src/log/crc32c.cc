#include "log/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace tidelane {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr auto kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}();

// The instruction takes three cycles and one can begin in each: three stretches at a time, of which the crcs are put together.
constexpr size_t kStretch = 2048;

// The product of two polynomials, reflected, without what is a multiple of kPolynomial.
constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = b >> 1 ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

// What a crc becomes by kStretch bytes of zeros, a byte of it at a time.
constexpr auto kPastStretch = [] {
  uint32_t power = uint32_t{1} << 30;  // x
  for (size_t bits = 1; bits < 8 * kStretch; bits *= 2) power = Multiply(power, power);
  std::array<std::array<uint32_t, 256>, 4> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    for (uint32_t i = 0; i < 256; ++i) table[byte][i] = Multiply(i << 8 * byte, power);
  }
  return table;
}();

constexpr uint32_t PastStretch(uint32_t crc) {
  return kPastStretch[0][crc & 0xff] ^ kPastStretch[1][crc >> 8 & 0xff] ^
         kPastStretch[2][crc >> 16 & 0xff] ^ kPastStretch[3][crc >> 24];
}

#if defined(__x86_64__)
#define TL_CRC_TARGET __attribute__((target("sse4.2")))
TL_CRC_TARGET inline uint32_t Next(uint32_t crc, uint64_t word) {
  return static_cast<uint32_t>(_mm_crc32_u64(crc, word));
}
TL_CRC_TARGET inline uint32_t Next(uint32_t crc, unsigned char byte) {
  return _mm_crc32_u8(crc, byte);
}
// Not __builtin_cpu_supports: that asks for all there is to know in each program that loads us, some 25 times, and in a virtual machine
// each time is a way to the hypervisor (0.15 ms altogether where that is a guest itself).
bool HasInstruction() {
  static const bool has = [] {
    unsigned a = 0;
    unsigned b = 0;
    unsigned features = 0;
    unsigned d = 0;
    return __get_cpuid(1, &a, &b, &features, &d) != 0 && (features & bit_SSE4_2) != 0;
  }();
  return has;
}
#elif defined(__ARM_FEATURE_CRC32)
#define TL_CRC_TARGET
inline uint32_t Next(uint32_t crc, uint64_t word) { return __crc32cd(crc, word); }
inline uint32_t Next(uint32_t crc, unsigned char byte) { return __crc32cb(crc, byte); }
constexpr bool HasInstruction() { return true; }
#endif

#ifdef TL_CRC_TARGET

TL_CRC_TARGET inline uint64_t WordAt(const unsigned char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

constexpr size_t kLine = 64;  // of the processor's cache

// Which may lie behind the last byte: nothing is read there.
inline void Prefetch(const unsigned char* at, size_t ahead) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(at) + ahead), 0, 3);
}

// The processor's own guesses follow three streams only slowly, each of which ends after a stretch: what comes next is asked for.
TL_CRC_TARGET uint32_t ByInstruction(const void* bytes, size_t size, uint32_t crc) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  crc = ~crc;
  for (; size >= 3 * kStretch; size -= 3 * kStretch, at += 3 * kStretch) {
    uint32_t second = 0;
    uint32_t third = 0;
    for (size_t line = 0; line < kStretch; line += kLine) {
      for (size_t i = 0; i < 3; ++i) Prefetch(at + 3 * line + i * kLine, 3 * kStretch);
#pragma GCC unroll 8
      for (size_t i = line; i < line + kLine; i += sizeof(uint64_t)) {
        crc = Next(crc, WordAt(at + i));
        second = Next(second, WordAt(at + kStretch + i));
        third = Next(third, WordAt(at + 2 * kStretch + i));
      }
    }
    crc = PastStretch(PastStretch(crc) ^ second) ^ third;
  }
  for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), at += sizeof(uint64_t))
    crc = Next(crc, WordAt(at));
  for (; size != 0; --size) crc = Next(crc, *at++);
  return ~crc;
}

#else

uint32_t ByInstruction(const void* bytes, size_t size, uint32_t crc) {
  return internal::Crc32cByTable(bytes, size, crc);
}

constexpr bool HasInstruction() { return false; }

#endif

}  // namespace

uint32_t internal::Crc32cByTable(const void* bytes, size_t size, uint32_t crc) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  crc = ~crc;
  for (; size != 0; --size) crc = crc >> 8 ^ kTable[(crc ^ *at++) & 0xff];
  return ~crc;
}

uint32_t Crc32c(const void* bytes, size_t size, uint32_t crc) {
  return HasInstruction() ? ByInstruction(bytes, size, crc)
                          : internal::Crc32cByTable(bytes, size, crc);
}

}  // namespace tidelane
