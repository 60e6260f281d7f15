/// \file
/// Superblocks of empty files that HDF5 has made (1.14.6; those of version 2 by 2.0), for tests: each version, with addresses of 2, 4 and 8
/// bytes.
///
/// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tidelane::log {

struct SuperblockSample {
  unsigned version;
  unsigned offset_size;
  uint64_t end;  ///< of the file
  std::string_view hex;

  std::vector<std::byte> bytes() const {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    std::vector<std::byte> bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      bytes.push_back(static_cast<std::byte>(16 * digit(hex[i]) + digit(hex[i + 1])));
    return bytes;
  }
};

inline constexpr SuperblockSample kSuperblocks[] = {
    {0, 2, 338,
     "894844460d0a1a0a000000000002020004001000000000000000ffff5201ffff00003c00"
     "01000000000000006400f200000000000000000000000000"},
    {0, 4, 492,
     "894844460d0a1a0a0000000000040400040010000000000000000000ffffffffec010000"
     "ffffffff0000000048000000010000000000000070000000840100000000000000000000"},
    {0, 8, 800,
     "894844460d0a1a0a000000000008080004001000000000000000000000000000ffffffff"
     "ffffffff2003000000000000ffffffffffffffff00000000000000006000000000000000"
     "01000000000000008800000000000000a802000000000000"},
    {1, 2, 342,
     "894844460d0a1a0a01000000000202000400100000000000400000000000ffff5601ffff"
     "0000400001000000000000006800f600000000000000000000000000"},
    {1, 4, 496,
     "894844460d0a1a0a010000000004040004001000000000004000000000000000ffffffff"
     "f0010000ffffffff000000004c0000000100000000000000740000008801000000000000"
     "00000000"},
    {1, 8, 804,
     "894844460d0a1a0a01000000000808000400100000000000400000000000000000000000"
     "ffffffffffffffff2403000000000000ffffffffffffffff000000000000000064000000"
     "0000000001000000000000008c00000000000000ac02000000000000"},
    {2, 2, 135, "894844460d0a1a0a020202000000ffff870018009eed410e"},
    {2, 4, 155, "894844460d0a1a0a0204040000000000ffffffff9b000000200000009a6607ab"},
    {2, 8, 195,
     "894844460d0a1a0a020808000000000000000000ffffffffffffffffc300000000000000"
     "3000000000000000ab5fed36"},
    {3, 2, 135, "894844460d0a1a0a030202000000ffff87001800e6ad8b1c"},
    {3, 4, 155, "894844460d0a1a0a0304040000000000ffffffff9b0000002000000022f53298"},
    {3, 8, 195,
     "894844460d0a1a0a030808000000000000000000ffffffffffffffffc300000000000000"
     "3000000000000000061a6137"},
};

/// With addresses of 8 bytes.
inline std::vector<std::byte> SuperblockOfVersion(unsigned version) {
  for (const SuperblockSample& sample : kSuperblocks) {
    if (sample.version == version && sample.offset_size == 8) return sample.bytes();
  }
  return {};
}

}  // namespace tidelane::log
