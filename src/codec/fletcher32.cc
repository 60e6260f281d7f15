/// \file
/// The sums are taken in columns: word i of a block belongs to column i mod kColumns. Each column
/// keeps a, the sum of its words, and b, the sum of a after each row. For a block of kColumns * K
/// words that follows the sums s1 and s2, exact arithmetic gives
///
///     s1' = s1 + sum a[j]
///     s2' = s2 + kColumns * K * s1 + sum (kColumns * b[j] - j * a[j])
///
/// which the compiler computes for all columns at once. Sums are kept modulo 65535 by folding the
/// upper halves onto the lower: 0 only for sums that are 0, else 1 to 65535, as HDF5 has it.
///
/// Thread safety: pure functions.
#include "codec/fletcher32.h"

#include <algorithm>

namespace tidelane {
namespace {

constexpr size_t kColumns = 16;
constexpr size_t kRows = 360;  // so many words of 65535 leave b below 2^32

uint64_t Fold(uint64_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

uint32_t Word(const std::byte* at) {
  return std::to_integer<uint32_t>(at[0]) << 8 | std::to_integer<uint32_t>(at[1]);
}

struct Sums {
  uint64_t s1 = 0;
  uint64_t s2 = 0;

  void AddWord(uint32_t word) {
    s1 = Fold(s1 + word);
    s2 = Fold(s2 + s1);
  }

  void AddRows(const std::byte* at, size_t rows) {
    uint32_t a[kColumns] = {};
    uint32_t b[kColumns] = {};
    for (size_t row = 0; row < rows; ++row, at += 2 * kColumns) {
      for (size_t j = 0; j < kColumns; ++j) a[j] += Word(at + 2 * j);
      for (size_t j = 0; j < kColumns; ++j) b[j] += a[j];
    }
    s2 += kColumns * rows * s1;
    for (size_t j = 0; j < kColumns; ++j) {
      s1 += a[j];
      s2 += uint64_t{kColumns} * b[j] - uint64_t{j} * a[j];
    }
    s1 = Fold(s1);
    s2 = Fold(s2);
  }
};

}  // namespace

uint32_t Fletcher32(std::span<const std::byte> data) {
  Sums sums;
  const std::byte* at = data.data();
  size_t words = data.size() / 2;
  while (words >= kColumns) {
    const size_t rows = std::min(words / kColumns, kRows);
    sums.AddRows(at, rows);
    at += 2 * kColumns * rows;
    words -= kColumns * rows;
  }
  for (; words != 0; --words, at += 2) sums.AddWord(Word(at));
  if (data.size() % 2 != 0) sums.AddWord(std::to_integer<uint32_t>(*at) << 8);
  return static_cast<uint32_t>(sums.s2 << 16 | sums.s1);
}

void StoreFletcher32(uint32_t sum, std::byte* to) {
  for (size_t i = 0; i < kFletcherBytes; ++i) to[i] = static_cast<std::byte>(sum >> (8 * i));
}

bool EndsWithFletcher32(std::span<const std::byte> stored) {
  const size_t bytes = stored.size() - kFletcherBytes;
  uint32_t found = 0;
  for (size_t i = 0; i < kFletcherBytes; ++i) {
    found |= std::to_integer<uint32_t>(stored[bytes + i]) << (8 * i);
  }
  const uint32_t sum = Fletcher32(stored.first(bytes));
  const uint32_t exchanged = (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
  return found == sum || found == exchanged;
}

}  // namespace tidelane
