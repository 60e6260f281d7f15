/// \file
/// 1. A constant becomes a key: the bytes of an element that tell whether it is less, equal or greater (KeyOf).
/// 2. Its first 8 or 16 bytes are a number, high byte first, whose order is that of bytes; the condition, an interval of numbers.
/// 3. A loop loads numbers and compares them; what they leave open, Settle looks at.
#include "predicate/fixed_strings.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "predicate/loops.h"

namespace tidelane::predicate {
namespace {

constexpr size_t kBits = 64;

template <class Word>
Word NumberAt(const unsigned char* from) {
  if constexpr (sizeof(Word) == sizeof(uint64_t)) {
    uint64_t number;
    std::memcpy(&number, from, sizeof number);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    number = __builtin_bswap64(number);
#endif
    return number;
  } else {
    return Word{NumberAt<uint64_t>(from)} << kBits | NumberAt<uint64_t>(from + sizeof(uint64_t));
  }
}

bool IsEquality(Comparison comparison) {
  return comparison == Comparison::kEqual || comparison == Comparison::kNotEqual;
}

/// Of an element's order to the first and to the second constant.
bool HoldsOfOrders(Comparison comparison, int first, int second) {
  switch (comparison) {
    case Comparison::kEqual: return first == 0;
    case Comparison::kNotEqual: return first != 0;
    case Comparison::kLess: return first < 0;
    case Comparison::kGreater: return first > 0;
    case Comparison::kLessEqual: return first <= 0;
    case Comparison::kGreaterEqual: return first >= 0;
    case Comparison::kBetween: return first >= 0 && second <= 0;
  }
  return false;
}

}  // namespace

bool HoldsOfStrings(Comparison comparison, std::string_view element, std::string_view first,
                    std::string_view second) {
  if (comparison == Comparison::kEqual) return element == first;
  if (comparison == Comparison::kNotEqual) return element != first;
  const int second_order = comparison == Comparison::kBetween ? element.compare(second) : 0;
  return HoldsOfOrders(comparison, element.compare(first), second_order);
}

template <class Word>
Word FixedStrings::Key::Least(size_t offset) const {
  unsigned char first[sizeof(Word)] = {};
  std::memcpy(first, bytes.data() + offset, std::min(bytes.size() - offset, sizeof first));
  return NumberAt<Word>(first);
}

template <class Word>
Word FixedStrings::Key::Most(size_t offset) const {
  constexpr Word kAll = ~Word{0};
  const size_t given = bytes.size() - offset;
  return Least<Word>(offset) | (given < sizeof(Word) ? kAll >> (8 * given) : Word{0});
}

template <class Word>
bool FixedStrings::Key::Decides() const {
  return whole && bytes.size() <= sizeof(Word);
}

FixedStrings::Key FixedStrings::KeyOf(const std::string& constant) const {
  Key key;
  size_t length = 0;  // of what an element can be equal to, or begin with
  switch (pad_) {
    case ElementType::Pad::kNullTerminated:
      length = std::min(constant.find('\0'), constant.size());
      break;
    case ElementType::Pad::kNullPadded: length = constant.find_last_not_of('\0') + 1; break;
    case ElementType::Pad::kSpacePadded: length = constant.find_last_not_of(' ') + 1; break;
  }
  key.bytes = constant.substr(0, std::min(length, size_));
  key.shorter = length < constant.size() || length > size_;
  if (pad_ == ElementType::Pad::kNullTerminated) {
    // What follows the null does not count. There is one, unless the element is full.
    if (key.bytes.size() < size_) key.bytes += '\0';
  } else if (pad_ == ElementType::Pad::kNullPadded || IsEquality(comparison_)) {
    key.bytes.resize(size_, pad_ == ElementType::Pad::kNullPadded ? '\0' : ' ');
  } else {
    // 'a' is less than 'a\t', but the space that pads it is greater than a tab.
    key.whole = false;
    if (std::ranges::any_of(key.bytes, [](unsigned char c) { return c < ' '; })) key.bytes.clear();
  }
  return key;
}

// The three functions below: false if no element can match.

template <class Word>
bool FixedStrings::LimitBelow(bool with_equal) {
  const Key& key = first_key_;
  const Word least = key.Least<Word>(offset_);
  const Word most = key.Most<Word>(offset_);
  if (!key.Decides<Word>()) {
    interval_.low = least;
    interval_.doubtful_below = Big{static_cast<Word>(most - least)} + 1;
    interval_.doubts = true;
  } else if (with_equal && !key.shorter) {
    interval_.low = least;
  } else {
    if (most == static_cast<Word>(~Word{0})) return false;
    interval_.low = static_cast<Word>(most + 1);
  }
  interval_.span = static_cast<Word>(~Word{0}) - interval_.low;
  return true;
}

template <class Word>
bool FixedStrings::LimitAbove(const Key& key, bool with_equal) {
  const Word least = key.Least<Word>(offset_);
  Word high = key.Most<Word>(offset_);
  if (key.Decides<Word>() && !with_equal && !key.shorter) {
    if (least == 0) return false;
    high = static_cast<Word>(least - 1);
  }
  if (high < interval_.low) return false;
  interval_.span = high - interval_.low;
  if (!key.Decides<Word>()) {
    interval_.doubtful_from = least > interval_.low ? least - interval_.low : Big{0};
    interval_.doubts = true;
  }
  return true;
}

template <class Word>
bool FixedStrings::Limit() {
  interval_.span = static_cast<Word>(~Word{0});
  if (first_key_.bytes.empty() || second_key_.bytes.empty()) {
    interval_.doubtful_from = 0;
    interval_.doubts = true;
    return true;
  }
  switch (comparison_) {
    case Comparison::kEqual:
    case Comparison::kNotEqual:
      inside_ = comparison_ == Comparison::kEqual;
      return !first_key_.shorter && LimitBelow<Word>(true) && LimitAbove<Word>(first_key_, true);
    case Comparison::kLess: return LimitAbove<Word>(first_key_, false);
    case Comparison::kLessEqual: return LimitAbove<Word>(first_key_, true);
    case Comparison::kGreater: return LimitBelow<Word>(false);
    case Comparison::kGreaterEqual: return LimitBelow<Word>(true);
    case Comparison::kBetween: return LimitBelow<Word>(true) && LimitAbove<Word>(second_key_, true);
  }
  return true;
}

template <class Word>
void FixedStrings::Use() {
  const bool any = Limit<Word>();
  const bool all = any && !interval_.doubts && interval_.low == 0 &&
                   interval_.span == static_cast<Word>(~Word{0});
  never_ = inside_ ? !any : all;
  always_ = inside_ ? all : !any;
  loop_ = interval_.doubts ? RunLoop<Word, true> : RunLoop<Word, false>;
}

FixedStrings::FixedStrings(const Condition& condition, const ElementType& type)
    : comparison_(condition.comparison),
      first_(std::get<std::string>(condition.values.front())),
      second_(std::get<std::string>(condition.values.back())),
      pad_(type.pad),
      size_(type.size) {
  first_key_ = KeyOf(first_);
  second_key_ = KeyOf(second_);
  const size_t needed = std::max(first_key_.bytes.size(), second_key_.bytes.size());
  // Equality may look anywhere first: at a long constant's last characters, as names often begin alike.
  if (IsEquality(comparison_) && needed > sizeof(Big))
    offset_ = std::clamp(first_.size() + 1, sizeof(Big), needed) - sizeof(Big);
  needed <= sizeof(uint64_t) ? Use<uint64_t>() : Use<Big>();
  if (interval_.doubts || never_ || always_ || size_ > sizeof(uint64_t) || (size_ & (size_ - 1)))
    return;
  const auto bits = static_cast<unsigned>(8 * size_);
  const uint64_t low = static_cast<uint64_t>(interval_.low) >> (kBits - bits);
  const uint64_t high = static_cast<uint64_t>(interval_.low + interval_.span) >> (kBits - bits);
  const uint64_t half = uint64_t{1} << (bits - 1);
  range_ = {.bias = low + half, .limit = high - low - half, .inside = inside_};
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  const bool swapped = size_ > 1;
#else
  const bool swapped = false;
#endif
  numbers_ = LoopOf({.size = static_cast<unsigned>(size_), .swapped = swapped});
}

void FixedStrings::Run(const unsigned char* elements, size_t count, uint64_t* words) const {
  numbers_ != nullptr ? numbers_(elements, count, range_, words)
                      : loop_(*this, elements, count, words);
}

uint64_t FixedStrings::Count(const unsigned char* elements, size_t count) const {
  return numbers_ != nullptr ? numbers_(elements, count, range_, nullptr)
                             : loop_(*this, elements, count, nullptr);
}

template <class Word, bool kDoubts>
uint64_t FixedStrings::RunLoop(const FixedStrings& strings, const unsigned char* elements,
                               size_t count, uint64_t* words) {
  const size_t size = strings.size_;
  const auto low = static_cast<Word>(strings.interval_.low);
  const auto span = static_cast<Word>(strings.interval_.span);
  const auto doubtful_below = static_cast<Word>(strings.interval_.doubtful_below);
  const auto doubtful_from = static_cast<Word>(strings.interval_.doubtful_from);
  const auto fulfils = [&](Word number, const unsigned char* element) -> bool {
    const auto above = static_cast<Word>(number - low);
    const bool in = above <= span;
    if constexpr (kDoubts) {
      if (in && (above < doubtful_below || above >= doubtful_from)) return strings.Settle(element);
    }
    return in;
  };
  // Numbers may be longer than elements, and are not loaded from behind the last one.
  const size_t offset = strings.offset_;
  const size_t needed = offset + sizeof(Word);
  const size_t direct = count * size < needed ? 0 : (count * size - needed) / size + 1;
  const uint64_t flip = strings.inside_ ? 0 : ~uint64_t{0};
  uint64_t matches = 0;
  for (size_t i = 0; i < count; i += kBits) {
    const size_t length = std::min(kBits, count - i);
    const unsigned char* element = elements + i * size;
    uint64_t word = 0;
    size_t bit = 0;
    for (const size_t end = std::min(length, direct > i ? direct - i : 0); bit < end; ++bit) {
      word |= uint64_t{fulfils(NumberAt<Word>(element + offset), element)} << bit;
      element += size;
    }
    for (; bit < length; ++bit) {
      unsigned char first[sizeof(Word)] = {};
      std::memcpy(first, element + offset, std::min(size - offset, sizeof first));
      word |= uint64_t{fulfils(NumberAt<Word>(first), element)} << bit;
      element += size;
    }
    word = (word ^ flip) & (~uint64_t{0} >> (kBits - length));
    if (words != nullptr) *words++ = word;
    matches += static_cast<uint64_t>(__builtin_popcountll(word));
  }
  return matches;
}

bool FixedStrings::Settle(const unsigned char* element) const {
  bool settled = true;
  const auto order = [&](const Key& key) {
    const int differs = std::memcmp(element, key.bytes.data(), key.bytes.size());
    if (differs == 0 && !key.whole) settled = false;
    return differs != 0 ? differs : key.shorter ? -1 : 0;
  };
  const int first = order(first_key_);
  const int second = comparison_ == Comparison::kBetween ? order(second_key_) : 0;
  return settled ? HoldsOfOrders(comparison_, first, second) != !inside_ : Matches(element);
}

std::string_view FixedStrings::Characters(const unsigned char* element) const {
  const std::string_view all(reinterpret_cast<const char*>(element), size_);
  switch (pad_) {
    case ElementType::Pad::kNullTerminated: return all.substr(0, all.find('\0'));
    case ElementType::Pad::kNullPadded: return all.substr(0, all.find_last_not_of('\0') + 1);
    case ElementType::Pad::kSpacePadded: return all.substr(0, all.find_last_not_of(' ') + 1);
  }
  return all;
}

bool FixedStrings::Matches(const unsigned char* element) const {
  return HoldsOfStrings(comparison_, Characters(element), first_, second_);
}

}  // namespace tidelane::predicate
