/// \file
/// Conditions of numbers run the loops of loops.h, or one of their own for long double; those of fixed strings are fixed_strings.h's, and
/// strings of variable length are compared one by one.
///
/// Thread safety: what Make gives is never changed.
#include "predicate/matcher.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <utility>

#include "predicate/fixed_strings.h"
#include "predicate/interval.h"
#include "predicate/loops.h"

namespace tidelane::predicate {

/// A condition on elements of one type. The functions are not asked where `known` is not kNothing.
struct Matcher::Loops {
  enum class Known : uint8_t { kNothing, kNever, kAlways };

  Loops() = default;
  Loops(const Loops&) = delete;
  Loops& operator=(const Loops&) = delete;
  virtual ~Loops() = default;
  /// Bits of `count` elements.
  virtual void Run(const unsigned char* elements, size_t count, uint64_t* words) const = 0;
  virtual uint64_t Count(const unsigned char* elements, size_t count) const = 0;

  Known known = Known::kNothing;
};

namespace {

using Known = Matcher::Loops::Known;
using LoopsPtr = std::shared_ptr<const Matcher::Loops>;

constexpr size_t kWord = 64;

struct Numbers final : Matcher::Loops {
  void Run(const unsigned char* elements, size_t count, uint64_t* words) const override {
    loop(elements, count, range, words);
  }
  uint64_t Count(const unsigned char* elements, size_t count) const override {
    return loop(elements, count, range, nullptr);
  }

  Loop loop = nullptr;
  Range range;
};

/// `Test` says of one element, by its first byte, whether it matches.
template <class Test>
struct OneByOne final : Matcher::Loops {
  OneByOne(Test made, size_t element_size) : test(std::move(made)), size(element_size) {}

  void Run(const unsigned char* elements, size_t count, uint64_t* words) const override {
    const typename Test::Scope scope;
    for (size_t i = 0; i < count; i += kWord) {
      uint64_t word = 0;
      for (size_t bit = 0; bit < kWord && i + bit < count; ++bit) {
        word |= static_cast<uint64_t>(test.Matches(elements + (i + bit) * size)) << bit;
      }
      *words++ = word;
    }
  }
  uint64_t Count(const unsigned char* elements, size_t count) const override {
    const typename Test::Scope scope;
    uint64_t matches = 0;
    for (size_t i = 0; i < count; ++i) matches += test.Matches(elements + i * size) ? 1 : 0;
    return matches;
  }

  Test test;
  size_t size;
};

struct NoScope {
  NoScope() {}
};

// Comparing NaN must not trap in a program that asked for it.
struct NoTraps {
  NoTraps() { std::feholdexcept(&programs); }
  ~NoTraps() { std::fesetenv(&programs); }
  NoTraps(const NoTraps&) = delete;
  NoTraps& operator=(const NoTraps&) = delete;
  std::fenv_t programs;
};

struct LongDoubles {
  using Scope = NoTraps;
  bool Matches(const unsigned char* element) const {
    Number value;
    std::memcpy(&value, element, sizeof value);
    if (swapped) {
      unsigned char bytes[sizeof value];
      std::reverse_copy(element, element + sizeof value, bytes);
      std::memcpy(&value, bytes, sizeof value);
    }
    return (value >= interval.low && value <= interval.high) != outside;
  }

  LongInterval interval;
  bool outside = false;
  bool swapped = false;
};

struct Strings final : Matcher::Loops {
  explicit Strings(FixedStrings made) : strings(std::move(made)) {}
  void Run(const unsigned char* elements, size_t count, uint64_t* words) const override {
    strings.Run(elements, count, words);
  }
  uint64_t Count(const unsigned char* elements, size_t count) const override {
    return strings.Count(elements, count);
  }

  FixedStrings strings;
};

struct VariableStrings {
  using Scope = NoScope;
  bool Matches(const unsigned char* element) const {
    const char* string = nullptr;
    std::memcpy(&string, element, sizeof string);
    return HoldsOfStrings(comparison, string != nullptr ? string : "", first, second);
  }

  Comparison comparison = Comparison::kEqual;
  std::string first;
  std::string second;
};

Known KnownOf(bool empty, bool whole, bool outside) {
  if (empty) return outside ? Known::kAlways : Known::kNever;
  if (whole) return outside ? Known::kNever : Known::kAlways;
  return Known::kNothing;
}

/// For elements whose bits are integers already, or floats of one sign: `low` to `high` of them. Or as Shape::magnitudes says.
Range RangeOf(uint64_t low, uint64_t high, unsigned bits) {
  const uint64_t half = uint64_t{1} << (bits - 1);
  return {.bias = low + half, .limit = high - low - half};
}

LoopsPtr NumbersOf(const Bounds& bounds, const ElementType& type, Constants constants) {
  const Interval interval = IntervalOf(bounds, type, constants);
  const bool outside = bounds.comparison == Comparison::kNotEqual;
  const unsigned bits = type.size * 8;
  uint64_t low = interval.low;
  uint64_t high = interval.high;
  Shape shape = {.size = type.size, .swapped = type.swapped && type.size > 1};
  if (type.is_float()) {
    const auto least = static_cast<int64_t>(low);
    const auto most = static_cast<int64_t>(high);
    const uint64_t sign = uint64_t{1} << (bits - 1);
    if (most < 0) {
      low = sign | -high;
      high = sign | static_cast<uint64_t>(-least);
    } else if (least <= 0) {
      // 0 and -0, which is -1 there, are one value.
      shape.magnitudes = true;
      --low;
    }
  }
  auto numbers = std::make_shared<Numbers>();
  numbers->known = KnownOf(interval.empty, interval.whole, outside);
  numbers->loop = LoopOf(shape);
  numbers->range = RangeOf(low, high, bits);
  numbers->range.inside = !outside;
  return numbers;
}

LoopsPtr LongDoublesOf(const Bounds& bounds, const ElementType& type) {
  LongDoubles test;
  test.interval = LongIntervalOf(bounds);
  test.outside = bounds.comparison == Comparison::kNotEqual;
  test.swapped = type.swapped;
  auto loops = std::make_shared<OneByOne<LongDoubles>>(test, type.size);
  const bool empty = !std::islessequal(test.interval.low, test.interval.high);
  loops->known = KnownOf(empty, false, test.outside);
  return loops;
}

LoopsPtr StringsOf(const Condition& condition, const ElementType& type) {
  const std::string& first = std::get<std::string>(condition.values.front());
  const std::string& second = std::get<std::string>(condition.values.back());
  const Known known = condition.comparison == Comparison::kBetween && first > second
                          ? Known::kNever
                          : Known::kNothing;
  if (type.kind == ElementType::Kind::kFixedString) {
    auto loops = std::make_shared<Strings>(FixedStrings(condition, type));
    loops->known = known == Known::kNever || loops->strings.never() ? Known::kNever
                   : loops->strings.always()                        ? Known::kAlways
                                                                    : Known::kNothing;
    return loops;
  }
  VariableStrings test = {condition.comparison, first, second};
  auto loops = std::make_shared<OneByOne<VariableStrings>>(std::move(test), sizeof(const char*));
  loops->known = known;
  return loops;
}

bool IsType(const ElementType& type) {
  const bool is_word = type.size == 2 || type.size == 4 || type.size == 8;
  switch (type.kind) {
    case ElementType::Kind::kSigned:
    case ElementType::Kind::kUnsigned: return type.size == 1 || is_word;
    case ElementType::Kind::kFloat: return is_word || type.size == sizeof(Number);
    case ElementType::Kind::kBrainFloat: return type.size == 2;
    case ElementType::Kind::kFixedString: return type.size > 0;
    case ElementType::Kind::kVariableString: return type.size == sizeof(const char*);
  }
  return false;
}

/// nullptr: nothing wrong.
const char* WrongIn(const Condition& condition, const ElementType& type) {
  if (!IsType(type)) return "elements of this type cannot be compared";
  if (condition.comparison > Comparison::kBetween) return "there is no such comparison";
  const size_t wanted = condition.comparison == Comparison::kBetween ? 2 : 1;
  if (condition.values.size() != wanted) {
    return wanted == 1 ? "one constant is needed" : "two constants are needed";
  }
  for (const Value& value : condition.values) {
    const bool is_string = std::holds_alternative<std::string>(value);
    if (is_string == type.is_string()) continue;
    return is_string ? "numbers cannot be compared with a string"
                     : "strings cannot be compared with a number";
  }
  return nullptr;
}

}  // namespace

std::optional<Matcher> Matcher::Make(const Condition& condition, const ElementType& type,
                                     Constants constants, std::string& why) {
  if (const char* wrong = WrongIn(condition, type); wrong != nullptr) {
    why = wrong;
    return std::nullopt;
  }
  Matcher matcher;
  if (type.is_string()) {
    matcher.loops_ = StringsOf(condition, type);
    return matcher;
  }
  const Bounds bounds = {condition.comparison, std::get<Number>(condition.values.front()),
                         std::get<Number>(condition.values.back())};
  const bool is_long = type.kind == ElementType::Kind::kFloat && type.size == sizeof(Number);
  matcher.loops_ = is_long ? LongDoublesOf(bounds, type) : NumbersOf(bounds, type, constants);
  return matcher;
}

void Matcher::Run(const void* elements, size_t count, Bits& bits) const {
  bits.Reset(count);
  if (never() || count == 0) return;
  if (always()) return bits.SetAll();
  loops_->Run(static_cast<const unsigned char*>(elements), count, bits.words());
}

uint64_t Matcher::Count(const void* elements, size_t count) const {
  if (never() || count == 0) return 0;
  if (always()) return count;
  return loops_->Count(static_cast<const unsigned char*>(elements), count);
}

bool Matcher::never() const { return loops_->known == Known::kNever; }
bool Matcher::always() const { return loops_->known == Known::kAlways; }

}  // namespace tidelane::predicate
