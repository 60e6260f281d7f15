#include "log/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
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

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) uint32_t ByInstruction(const void* bytes, size_t size,
                                                         uint32_t crc) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  uint64_t wide = ~crc;
  for (; size >= sizeof wide; size -= sizeof wide, at += sizeof wide) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    wide = _mm_crc32_u64(wide, word);
  }
  auto narrow = static_cast<uint32_t>(wide);
  for (; size != 0; --size) narrow = _mm_crc32_u8(narrow, *at++);
  return ~narrow;
}

bool HasInstruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

#elif defined(__ARM_FEATURE_CRC32)

uint32_t ByInstruction(const void* bytes, size_t size, uint32_t crc) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  crc = ~crc;
  for (uint64_t word; size >= sizeof word; size -= sizeof word, at += sizeof word) {
    std::memcpy(&word, at, sizeof word);
    crc = __crc32cd(crc, word);
  }
  for (; size != 0; --size) crc = __crc32cb(crc, *at++);
  return ~crc;
}

constexpr bool HasInstruction() { return true; }

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
