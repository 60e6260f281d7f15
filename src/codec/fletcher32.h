/// \file
/// HDF5's Fletcher-32: over big-endian 16-bit words, an odd last byte being the upper half of a
/// word, sums starting at 0. Stored as four little-endian bytes behind the data.
///
/// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tidelane {

inline constexpr size_t kFletcherBytes = 4;

uint32_t Fletcher32(std::span<const std::byte> data);

/// Stores `sum` at `to`.
void StoreFletcher32(uint32_t sum, std::byte* to);

/// Whether `stored` (at least kFletcherBytes) ends with the sum of what precedes it: as it is
/// written today, or with the bytes of each half exchanged, as HDF5 before 1.6.3 wrote it on
/// little-endian machines.
bool EndsWithFletcher32(std::span<const std::byte> stored);

}  // namespace tidelane
