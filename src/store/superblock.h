/// \file
/// Recognises HDF5's superblock in a stream of bytes: the one structure whose write has an order of its own.
///
/// Source: HDF5 File Format Specification, "Disk Format: Level 0A - Format Signature and Superblock".
/// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <cstring>

namespace tidelane {

/// What HDF5, and whoever looks at a file by itself, knows an HDF5 file by.
inline constexpr unsigned char kSignature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

/// Whether a superblock (as SuperblockSize found it) says by itself that the file is open for writing, when it is: other
/// versions have no such mark that HDF5 looks at.
inline bool HasOpenMark(const void* superblock) {
  return static_cast<const unsigned char*>(superblock)[sizeof(kSignature)] >= 3;
}

/// Bytes of the superblock at the front of `bytes` (of which `size` are readable), 0 if there is none.
inline uint64_t SuperblockSize(const void* bytes, uint64_t size) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  if (size < 16 || std::memcmp(at, kSignature, sizeof(kSignature)) != 0) return 0;
  const unsigned version = at[8];
  if (version >= 2) {
    const uint64_t offset_size = at[9];
    return 12 + 4 * offset_size + 4;
  }
  const uint64_t offset_size = at[13];
  const uint64_t fixed = version == 1 ? 28 : 24;
  return fixed + 4 * offset_size + 2 * offset_size +
         24;  // addresses, then the root's symbol table entry
}

/// The end of the file that a superblock (as SuperblockSize found it) tells, in bytes from the start of the file: HDF5 reads
/// nothing beyond it.
inline uint64_t EndInSuperblock(const void* superblock) {
  const auto* at = static_cast<const unsigned char*>(superblock);
  const bool is_new = at[8] >= 2;
  const uint64_t offset_size = is_new ? at[9] : at[13];
  const uint64_t addresses = is_new ? 12 : at[8] == 1 ? 28 : 24;
  uint64_t end = 0;
  // Behind the base address and that of the extension, or of free space.
  for (uint64_t i = offset_size; i != 0; --i)
    end = end << 8 | at[addresses + 2 * offset_size + i - 1];
  return end;
}

}  // namespace tidelane
