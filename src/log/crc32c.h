/// \file
/// CRC-32C (Castagnoli), by the processor's own instruction where it has one: what the log is checked with.
///
/// Thread safety: pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidelane {

/// Of `size` bytes, going on from `crc`, which is that of the bytes before them: 0 for none.
uint32_t Crc32c(const void* bytes, size_t size, uint32_t crc = 0);

namespace internal {
/// The same without the instruction.
uint32_t Crc32cByTable(const void* bytes, size_t size, uint32_t crc);
}  // namespace internal

}  // namespace tidelane
