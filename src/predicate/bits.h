/// \file
/// One bit for each element of a block: which of them fulfil a condition.
///
/// Invariant: bits beyond `size()` in the last word are 0. Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tidelane::predicate {

class Bits {
 public:
  Bits() = default;
  explicit Bits(size_t size) { Reset(size); }

  /// All 0; memory is kept.
  void Reset(size_t size);
  size_t size() const { return size_; }
  /// Of 64 elements each, the first in the lowest bit.
  const uint64_t* words() const { return words_.data(); }
  /// Who writes words keeps the invariant.
  uint64_t* words() { return words_.data(); }
  size_t word_count() const { return words_.size(); }
  bool At(size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }

  uint64_t Count() const;
  bool None() const;
  void SetAll();
  void Flip();
  /// With one of equal size.
  void And(const Bits& other);
  void Or(const Bits& other);
  /// Sets [first, first + count).
  void SetRange(size_t first, size_t count);
  /// Overwrites [to, to + count) with [from, from + count) of another one.
  void CopyRange(size_t to, const Bits& other, size_t from, size_t count);

  /// The first run of 1 bits at `begin` or after: {its first, one past its last}; {size(), size()}: there is none.
  std::pair<size_t, size_t> NextRun(size_t begin) const;
  /// Writes `base` + the number of each 1 bit, ascending: Count() of them.
  void Positions(uint64_t base, uint64_t* to) const;
  /// Writes a 0 or 1 for each element.
  void Bytes(uint8_t* to) const;
  /// Copies the elements (of `element_size` bytes, one after another at `from`) whose bits are 1, in order, without gaps.
  void Gather(const void* from, size_t element_size, void* to) const;

 private:
  size_t size_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace tidelane::predicate
