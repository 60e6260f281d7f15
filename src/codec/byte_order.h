/// \file
/// Integers as they lie in a chunk's headers, at any address.
///
/// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidelane {

template <typename Integer>
constexpr Integer LoadBigEndian(const std::byte* from) {
  Integer value = 0;
  for (size_t i = 0; i < sizeof value; ++i) {
    value = static_cast<Integer>(value << 8 | static_cast<Integer>(from[i]));
  }
  return value;
}

template <typename Integer>
constexpr void StoreBigEndian(Integer value, std::byte* to) {
  for (size_t i = sizeof value; i-- > 0; value = static_cast<Integer>(value >> 8)) {
    to[i] = static_cast<std::byte>(value);
  }
}

constexpr uint32_t LoadLittleEndian32(const std::byte* from) {
  uint32_t value = 0;
  for (size_t i = sizeof value; i-- > 0;) value = value << 8 | static_cast<uint32_t>(from[i]);
  return value;
}

}  // namespace tidelane
