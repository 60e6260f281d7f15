/// \file
/// Bits, a word at a time.
///
/// Invariant: as bits.h says: the last word's bits beyond size() are 0 after each call. Thread safety: a value.
#include "predicate/bits.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tidelane::predicate {
namespace {

constexpr size_t kWord = 64;
constexpr uint64_t kOnes = ~uint64_t{0};

/// The lowest `n` bits; n <= 64.
constexpr uint64_t Low(size_t n) { return n >= kWord ? kOnes : (uint64_t{1} << n) - 1; }

size_t FirstOne(uint64_t word) { return static_cast<size_t>(std::countr_zero(word)); }

// The baseline of x86-64 has no such instruction, and calls a function for std::popcount.
uint64_t Ones(uint64_t x) {
#if defined(__x86_64__) && !defined(__POPCNT__)
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return x * 0x0101010101010101 >> 56;
#else
  return static_cast<uint64_t>(std::popcount(x));
#endif
}

/// Bits [from, from + n); 0 < n <= 64.
uint64_t Read(const uint64_t* words, size_t from, size_t n) {
  const size_t shift = from % kWord;
  uint64_t word = words[from / kWord] >> shift;
  if (shift + n > kWord) word |= words[from / kWord + 1] << (kWord - shift);
  return word & Low(n);
}

/// Few long runs are quicker copied whole than element by element.
bool HasLongRuns(uint64_t word) {
  const uint64_t follow_another = word & word << 1;
  if (follow_another == 0) return false;
  const uint64_t ones = Ones(word);
  const uint64_t runs = ones - Ones(follow_another);
  return ones > 24 && ones > 10 * runs;
}

template <class Element>
void GatherOf(const std::vector<uint64_t>& words, const std::byte* from, std::byte* to) {
  constexpr size_t kSize = sizeof(Element);
  for (uint64_t word : words) {
    if (word == kOnes) {
      std::memcpy(to, from, kWord * kSize);
      to += kWord * kSize;
    } else if (HasLongRuns(word)) {
      while (word != 0) {
        const size_t first = FirstOne(word);
        const size_t n = FirstOne(~(word >> first));
        std::memcpy(to, from + first * kSize, n * kSize);
        to += n * kSize;
        word &= ~(Low(n) << first);
      }
    } else {
      for (; word != 0; word &= word - 1, to += kSize) {
        std::memcpy(to, from + FirstOne(word) * kSize, kSize);
      }
    }
    from += kWord * kSize;
  }
}

}  // namespace

void Bits::Reset(size_t size) {
  words_.assign(size / kWord + (size % kWord != 0 ? 1 : 0), 0);
  size_ = size;
}

uint64_t Bits::Count() const {
  uint64_t count = 0;
  for (uint64_t word : words_) count += Ones(word);
  return count;
}

bool Bits::None() const {
  return std::all_of(words_.begin(), words_.end(), [](uint64_t word) { return word == 0; });
}

void Bits::SetAll() {
  std::fill(words_.begin(), words_.end(), kOnes);
  if (size_ % kWord != 0) words_.back() = Low(size_ % kWord);
}

void Bits::Flip() {
  for (uint64_t& word : words_) word = ~word;
  if (size_ % kWord != 0) words_.back() &= Low(size_ % kWord);
}

void Bits::And(const Bits& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
}

void Bits::Or(const Bits& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

void Bits::SetRange(size_t first, size_t count) {
  if (count == 0) return;
  const size_t end = first + count;
  const size_t begin_word = first / kWord;
  const size_t last_word = (end - 1) / kWord;
  const uint64_t head = kOnes << first % kWord;
  const uint64_t tail = Low((end - 1) % kWord + 1);
  if (begin_word == last_word) {
    words_[begin_word] |= head & tail;
    return;
  }
  words_[begin_word] |= head;
  for (size_t i = begin_word + 1; i < last_word; ++i) words_[i] = kOnes;
  words_[last_word] |= tail;
}

void Bits::CopyRange(size_t to, const Bits& other, size_t from, size_t count) {
  const uint64_t* source = other.words_.data();
  while (count > 0) {
    const size_t shift = to % kWord;
    const size_t n = std::min(count, kWord - shift);
    uint64_t& word = words_[to / kWord];
    word = (word & ~(Low(n) << shift)) | Read(source, from, n) << shift;
    to += n;
    from += n;
    count -= n;
  }
}

std::pair<size_t, size_t> Bits::NextRun(size_t begin) const {
  if (begin >= size_) return {size_, size_};
  size_t i = begin / kWord;
  uint64_t word = words_[i] & kOnes << begin % kWord;
  while (word == 0) {
    if (++i == words_.size()) return {size_, size_};
    word = words_[i];
  }
  const size_t first = i * kWord + FirstOne(word);
  word = ~words_[i] & kOnes << first % kWord;
  while (word == 0) {
    if (++i == words_.size()) return {first, size_};
    word = ~words_[i];
  }
  return {first, i * kWord + FirstOne(word)};
}

void Bits::Positions(uint64_t base, uint64_t* to) const {
  for (uint64_t word : words_) {
    if (word == kOnes) {
      for (size_t i = 0; i < kWord; ++i) to[i] = base + i;
      to += kWord;
    } else {
      for (; word != 0; word &= word - 1) *to++ = base + FirstOne(word);
    }
    base += kWord;
  }
}

void Bits::Bytes(uint8_t* to) const {
  size_t left = size_;
  for (uint64_t word : words_) {
    for (size_t i = 0; i < 8 && left > 0; ++i, word >>= 8) {
      // Each byte keeps its own bit of eight, which then becomes its lowest.
      uint64_t eight = (word & 0xff) * 0x0101010101010101 & 0x8040201008040201;
      eight = (eight + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101;
      if constexpr (std::endian::native == std::endian::big) eight = __builtin_bswap64(eight);
      const size_t n = std::min<size_t>(left, 8);
      if (n == 8) {
        std::memcpy(to, &eight, 8);
      } else {
        std::memcpy(to, &eight, n);
      }
      to += n;
      left -= n;
    }
  }
}

void Bits::Gather(const void* from, size_t element_size, void* to) const {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  switch (element_size) {
    case 1: return GatherOf<uint8_t>(words_, source, target);
    case 2: return GatherOf<uint16_t>(words_, source, target);
    case 4: return GatherOf<uint32_t>(words_, source, target);
    case 8: return GatherOf<uint64_t>(words_, source, target);
    default: break;
  }
  for (auto run = NextRun(0); run.first < size_; run = NextRun(run.second)) {
    const size_t n = (run.second - run.first) * element_size;
    std::memcpy(target, source + run.first * element_size, n);
    target += n;
  }
}

}  // namespace tidelane::predicate
