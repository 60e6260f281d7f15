/// \file
/// Superblocks of files that HDF5 has made, for tests.
///
/// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace tidelane::log {

inline std::vector<std::byte> BytesOfHex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(16 * digit(hex[i]) + digit(hex[i + 1])));
  return bytes;
}

/// As h5py makes them for `libver` earliest (0), v108 (2) and latest (3); addresses of 8 bytes, no user block.
inline std::vector<std::byte> SuperblockOfVersion(unsigned version) {
  constexpr std::string_view kOld =
      "894844460d0a1a0a000000000008080004001000000000000000000000000000ffffffffffffffff180800000000"
      "0000"
      "ffffffffffffffff0000000000000000600000000000000001000000000000008800000000000000a80200000000"
      "0000";
  constexpr std::string_view kSecond =
      "894844460d0a1a0a020808000000000000000000ffffffffffffffff18080000000000003000000000000000b81f"
      "adf8";
  constexpr std::string_view kThird =
      "894844460d0a1a0a030808000000000000000000ffffffffffffffff1808000000000000300000000000000009bc"
      "6cfd";
  return BytesOfHex(version == 0 ? kOld : version == 2 ? kSecond : kThird);
}

}  // namespace tidelane::log
