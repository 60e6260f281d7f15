/// \file
/// What a matcher says of numbers is what a comparison of their values as long double says: all values of 8 and 16 bits, others at random,
/// with each set of instructions that the machine has, in both orders of bytes.
#include "predicate/matcher.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <gtest/gtest.h>

#include "predicate/loops.h"

namespace tidelane::predicate {
namespace {

using Kind = ElementType::Kind;

constexpr Number kNan = std::numeric_limits<Number>::quiet_NaN();
constexpr Number kInf = std::numeric_limits<Number>::infinity();
constexpr Comparison kOfOne[] = {Comparison::kEqual,     Comparison::kNotEqual,
                                 Comparison::kLess,      Comparison::kGreater,
                                 Comparison::kLessEqual, Comparison::kGreaterEqual};

ElementType Of(Kind kind, uint32_t size) { return {.kind = kind, .size = size}; }

std::string Name(const ElementType& type) {
  return "kind " + std::to_string(static_cast<int>(type.kind)) + " of " + std::to_string(type.size);
}

template <class T>
T Load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
Number NumberIn(const void* from) {
  return static_cast<Number>(Load<T>(from));
}

Number HalfOf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const Number sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa != 0 ? kNan : sign * kInf;
  if (exponent == 0) return sign * std::ldexp(static_cast<Number>(mantissa), -24);
  return sign * std::ldexp(static_cast<Number>(mantissa + 1024), exponent - 25);
}

Number ValueOf(const ElementType& type, const uint8_t* from) {
  if (type.kind == Kind::kBrainFloat) {
    const uint32_t bits = static_cast<uint32_t>(Load<uint16_t>(from)) << 16;
    return NumberIn<float>(&bits);
  }
  if (type.kind == Kind::kFloat) {
    if (type.size == 2) return HalfOf(Load<uint16_t>(from));
    if (type.size == 4) return NumberIn<float>(from);
    return type.size == 8 ? NumberIn<double>(from) : Load<Number>(from);
  }
  const bool is_signed = type.kind == Kind::kSigned;
  switch (type.size) {
    case 1: return is_signed ? NumberIn<int8_t>(from) : NumberIn<uint8_t>(from);
    case 2: return is_signed ? NumberIn<int16_t>(from) : NumberIn<uint16_t>(from);
    case 4: return is_signed ? NumberIn<int32_t>(from) : NumberIn<uint32_t>(from);
    default: return is_signed ? NumberIn<int64_t>(from) : NumberIn<uint64_t>(from);
  }
}

bool Expected(Comparison comparison, Number element, Number first, Number second) {
  switch (comparison) {
    case Comparison::kEqual: return element == first;
    case Comparison::kNotEqual: return element != first;
    case Comparison::kLess: return element < first;
    case Comparison::kGreater: return element > first;
    case Comparison::kLessEqual: return element <= first;
    case Comparison::kGreaterEqual: return element >= first;
    case Comparison::kBetween: return element >= first && element <= second;
  }
  return false;
}

std::vector<uint8_t> Swapped(std::vector<uint8_t> bytes, size_t size) {
  for (size_t i = 0; i < bytes.size(); i += size) {
    std::reverse(bytes.begin() + static_cast<ptrdiff_t>(i),
                 bytes.begin() + static_cast<ptrdiff_t>(i + size));
  }
  return bytes;
}

/// Elements in both orders, and their values.
struct Elements {
  Elements(const ElementType& of, std::vector<uint8_t> bytes)
      : type(of), native(std::move(bytes)), swapped(Swapped(native, of.size)) {
    for (size_t i = 0; i < native.size(); i += of.size) {
      values.push_back(ValueOf(of, native.data() + i));
    }
  }

  ElementType type;
  std::vector<uint8_t> native;
  std::vector<uint8_t> swapped;
  std::vector<Number> values;
};

Condition With(Comparison comparison, Number first, Number second) {
  if (comparison == Comparison::kBetween) return {comparison, {first, second}};
  return {comparison, {first}};
}

class EveryInstructions {
 public:
  EveryInstructions() = default;
  ~EveryInstructions() { ForceNoInstructions(); }
  EveryInstructions(const EveryInstructions&) = delete;
  EveryInstructions& operator=(const EveryInstructions&) = delete;

  template <class Body>
  void operator()(Body body) const {
    for (Instructions instructions : kAllInstructions) {
      if (ForceInstructions(instructions)) body(instructions);
    }
  }
};

/// `first` and `second` are what is given; `exact_first` and `exact_second` what is compared.
struct Case {
  Comparison comparison;
  Number first;
  Number second;
  Constants constants = Constants::kExact;
  Number exact_first = first;
  Number exact_second = second;
};

std::string NameOf(const Case& test, const ElementType& type, Instructions instructions) {
  std::ostringstream name;
  name.precision(21);
  name << Name(type) << (type.swapped ? " swapped" : "") << ", comparison "
       << static_cast<int>(test.comparison) << " with " << test.first << " " << test.second
       << ", instructions " << static_cast<int>(instructions);
  return name.str();
}

void Check(const Elements& elements, const Case& test) {
  const size_t count = elements.values.size();
  Bits expected(count);
  uint64_t matches = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool match =
        Expected(test.comparison, elements.values[i], test.exact_first, test.exact_second);
    expected.words()[i / 64] |= static_cast<uint64_t>(match) << i % 64;
    matches += match ? 1 : 0;
  }
  const EveryInstructions every;
  every([&](Instructions instructions) {
    for (bool swapped : {false, true}) {
      ElementType type = elements.type;
      type.swapped = swapped;
      std::string why;
      const auto matcher =
          Matcher::Make(With(test.comparison, test.first, test.second), type, test.constants, why);
      ASSERT_TRUE(matcher) << why;
      const std::vector<uint8_t>& bytes = swapped ? elements.swapped : elements.native;
      Bits bits;
      matcher->Run(bytes.data(), count, bits);
      ASSERT_EQ(bits.size(), count);
      for (size_t i = 0; i < bits.word_count(); ++i) {
        ASSERT_EQ(bits.words()[i], expected.words()[i])
            << NameOf(test, type, instructions) << ", word " << i << " from "
            << elements.values[i * 64];
      }
      ASSERT_EQ(matcher->Count(bytes.data(), count), matches) << NameOf(test, type, instructions);
      if (matcher->never()) {
        ASSERT_EQ(matches, 0U) << NameOf(test, type, instructions);
      }
      if (matcher->always()) {
        ASSERT_EQ(matches, count) << NameOf(test, type, instructions);
      }
    }
  });
}

void CheckConstants(const Elements& elements, const std::vector<Number>& constants,
                    const std::vector<Number>& ends) {
  for (Number constant : constants) {
    for (Comparison comparison : kOfOne) Check(elements, {comparison, constant, 0});
  }
  for (Number first : ends) {
    for (Number second : ends) Check(elements, {Comparison::kBetween, first, second});
  }
}

std::vector<uint8_t> AllOf(uint32_t size) {
  std::vector<uint8_t> bytes;
  for (uint32_t i = 0; i < 1U << 8 * size; ++i) {
    const auto two = static_cast<uint16_t>(i);
    const auto one = static_cast<uint8_t>(i);
    const auto* from = size == 1 ? &one : reinterpret_cast<const uint8_t*>(&two);
    bytes.insert(bytes.end(), from, from + size);
  }
  return bytes;
}

std::vector<Number> Beyond() {
  return {kNan, kInf, -kInf, 1e30L, -1e30L, 0x1p63L, -0x1p63L, 0x1p64L, -0x1p64L, -0.0L, 1e-4900L};
}

std::vector<Number> Around(std::vector<Number> of, const std::vector<Number>& apart) {
  std::vector<Number> constants = Beyond();
  for (Number center : of) {
    for (Number distance : apart) {
      constants.push_back(center + distance);
      constants.push_back(center - distance);
    }
  }
  return constants;
}

TEST(MatcherTest, EveryValueOfEightBits) {
  for (Kind kind : {Kind::kSigned, Kind::kUnsigned}) {
    const Elements elements(Of(kind, 1), AllOf(1));
    std::vector<Number> constants = Beyond();
    for (int quarters = -4 * 140; quarters <= 4 * 270; ++quarters) {
      constants.push_back(static_cast<Number>(quarters) / 4);
    }
    const std::vector<Number> ends = Around({-128, 0, 127, 255}, {0, 0.25L, 1});
    CheckConstants(elements, constants, ends);
  }
}

TEST(MatcherTest, EveryIntegerOfSixteenBits) {
  for (Kind kind : {Kind::kSigned, Kind::kUnsigned}) {
    const Elements elements(Of(kind, 2), AllOf(2));
    CheckConstants(elements, Around({-32768, 0, 1234, 32767, 65535}, {0, 0.25L, 1}),
                   {-40000, -32768, -0.5L, 0, 0.5L, 32767, 65534.5L, 65535, 70000, kNan});
  }
}

/// What a float of 16 bits makes hard: values, the middle between two, beyond the largest.
std::vector<Number> HardForFloats(const Elements& elements) {
  std::vector<Number> constants = Beyond();
  for (uint16_t bits : {0x0000, 0x0001, 0x0002, 0x007f, 0x0080, 0x03ff, 0x0400, 0x3c00, 0x3f80,
                        0x3fff, 0x7bff, 0x7bfe, 0x7f7f, 0x7f7e}) {
    const Number value = elements.values[bits];
    const Number next = elements.values[bits + 1];
    if (std::isnan(value)) continue;
    const Number up = std::isfinite(next) ? next : value + (value - elements.values[bits - 1U]);
    for (Number constant : {value, (value + up) / 2, value + (up - value) * 0.499L,
                            value + (up - value) * 0.501L, up}) {
      constants.push_back(constant);
      constants.push_back(-constant);
    }
  }
  return constants;
}

/// By looking at all: the nearest value, of two the even one, and infinity where the next power of two would be as near.
Number NearestOf(const Elements& elements, uint16_t infinity, Number constant) {
  if (!std::isfinite(constant)) return constant;
  const Number power = elements.values[infinity - 1U] * 2 - elements.values[infinity - 2U];
  const Number after = elements.values[infinity - 1U] +
                       (elements.values[infinity - 1U] - elements.values[infinity - 2U]);
  EXPECT_EQ(power, after);
  Number best = 0;
  Number distance = kInf;
  for (uint16_t bits = 0; bits <= infinity; ++bits) {
    const Number value = bits == infinity ? after : elements.values[bits];
    const Number apart = std::fabs(value - std::fabs(constant));
    const bool beyond = bits == infinity && std::fabs(constant) > after;
    if (beyond || apart < distance || (apart == distance && bits % 2 == 0)) {
      distance = apart;
      best = bits == infinity ? kInf : value;
    }
  }
  return std::copysign(best, constant);
}

TEST(MatcherTest, EveryFloatOfSixteenBits) {
  for (Kind kind : {Kind::kFloat, Kind::kBrainFloat}) {
    const Elements elements(Of(kind, 2), AllOf(2));
    const std::vector<Number> constants = HardForFloats(elements);
    CheckConstants(elements, constants, {-kInf, -1.9L, -1e-9L, 0, 1e-9L, 1, 70000, kInf, kNan});
  }
}

TEST(MatcherTest, ConstantsOfTheElementsTypeInSixteenBits) {
  for (Kind kind : {Kind::kFloat, Kind::kBrainFloat}) {
    const Elements elements(Of(kind, 2), AllOf(2));
    const uint16_t infinity = kind == Kind::kFloat ? 0x7c00 : 0x7f80;
    for (Number constant : HardForFloats(elements)) {
      const Number near = NearestOf(elements, infinity, constant);
      for (Comparison comparison :
           {Comparison::kEqual, Comparison::kLess, Comparison::kGreaterEqual}) {
        Check(elements, {comparison, constant, 0, Constants::kOfElement, near, 0});
      }
    }
  }
}

/// Bits of all kinds: any, few, and those near the ends of their type's values.
Elements Random(const ElementType& type, size_t count, std::mt19937_64& random) {
  std::vector<uint8_t> bytes(count * type.size);
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = random();
    switch (random() % 5) {
      case 0: bits = random() % 5; break;
      case 1: bits = ~(random() % 5); break;
      case 2: bits = (uint64_t{1} << (std::min(type.size, 8U) * 8 - 1)) + random() % 5 - 2; break;
      case 3: bits >>= random() % 64; break;
      default: break;
    }
    uint8_t* to = bytes.data() + i * type.size;
    const auto number = static_cast<double>(static_cast<int64_t>(random() % 9) - 4) / 2;
    const auto narrow = static_cast<float>(number);
    const auto wide = static_cast<Number>(number);
    if (type.size == sizeof wide) {
      std::memcpy(to, &wide, sizeof wide);
    } else if (type.kind == Kind::kFloat && type.size == 8 && random() % 2 == 0) {
      std::memcpy(to, &number, sizeof number);
    } else if (type.kind == Kind::kFloat && type.size == 4 && random() % 2 == 0) {
      std::memcpy(to, &narrow, sizeof narrow);
    } else {
      std::memcpy(to, &bits, type.size);
    }
  }
  return {type, std::move(bytes)};
}

Number RandomConstant(const Elements& elements, std::mt19937_64& random) {
  const std::vector<Number> beyond = Beyond();
  if (random() % 8 == 0) return beyond[random() % beyond.size()];
  const Number value = elements.values[random() % elements.values.size()];
  switch (random() % 5) {
    case 0: return value + 0.5L;
    case 1: return value - 1;
    case 2: return std::nextafter(value, kInf);
    case 3: return std::nextafter(value, -kInf);
    default: return value;
  }
}

TEST(MatcherTest, RandomOfThirtyTwoAndSixtyFourBits) {
  std::mt19937_64 random(1);
  for (uint32_t size : {4, 8}) {
    for (Kind kind : {Kind::kSigned, Kind::kUnsigned, Kind::kFloat}) {
      for (int round = 0; round < 400; ++round) {
        const Elements elements = Random(Of(kind, size), 400, random);
        const auto comparison = static_cast<Comparison>(random() % 7);
        const Number first = RandomConstant(elements, random);
        const Number second = RandomConstant(elements, random);
        Check(elements, {comparison, first, second});
        if (kind != Kind::kFloat) continue;
        const auto narrow = [size](Number x) {
          return size == 4 ? static_cast<Number>(static_cast<float>(x))
                           : static_cast<Number>(static_cast<double>(x));
        };
        Check(elements,
              {comparison, first, second, Constants::kOfElement, narrow(first), narrow(second)});
      }
    }
  }
}

TEST(MatcherTest, LongDoubles) {
  std::vector<Number> values = Around({0, 1, 1.9L, 0x1p64L}, {0, 1, 0x1p-62L});
  for (Number value : {std::numeric_limits<Number>::max(), std::numeric_limits<Number>::min(),
                       std::numeric_limits<Number>::denorm_min()}) {
    values.push_back(value);
    values.push_back(-value);
    values.push_back(std::nextafter(value, Number{0}));
  }
  std::vector<uint8_t> bytes(values.size() * sizeof(Number));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  const Elements elements(Of(Kind::kFloat, sizeof(Number)), bytes);
  CheckConstants(elements, values, {-kInf, -1, 0, 0x1p-62L, 1.9L, 0x1p64L, kInf, kNan});
}

/// One element more or less than a word, from any address, and no byte beyond them is read (the address sanitizer tells).
TEST(MatcherTest, EveryCountAndAddress) {
  std::mt19937_64 random(2);
  std::vector<ElementType> types;
  for (uint32_t size : {1, 2, 4, 8}) {
    types.push_back(Of(Kind::kSigned, size));
    if (size > 1) types.push_back(Of(Kind::kFloat, size));
  }
  types.push_back(Of(Kind::kFloat, sizeof(Number)));
  const EveryInstructions every;
  for (ElementType type : types) {
    Elements all = Random(type, 200, random);
    for (Number& value : all.values) value = value > 0 ? 1 : 0;
    every([&](Instructions) {
      std::string why;
      const auto matcher =
          Matcher::Make({Comparison::kGreater, {Number{0}}}, type, Constants::kExact, why);
      for (size_t count = 0; count <= 200; ++count) {
        const size_t apart = count % 16;
        std::vector<uint8_t> copy(apart + count * type.size);
        if (count > 0) std::memcpy(copy.data() + apart, all.native.data(), count * type.size);
        Bits bits(1000);
        bits.SetAll();
        matcher->Run(copy.data() + apart, count, bits);
        ASSERT_EQ(bits.size(), count);
        uint64_t matches = 0;
        for (size_t i = 0; i < count; ++i) {
          ASSERT_EQ(bits.At(i), all.values[i] > 0) << Name(type) << " " << i << " of " << count;
          matches += bits.At(i) ? 1 : 0;
        }
        ASSERT_EQ(bits.Count(), matches) << "bits beyond the last";
        ASSERT_EQ(matcher->Count(copy.data() + apart, count), matches);
      }
    });
  }
}

std::optional<Matcher> Make(Comparison comparison, std::vector<Value> values,
                            const ElementType& type) {
  std::string why;
  auto matcher = Matcher::Make({comparison, std::move(values)}, type, Constants::kExact, why);
  EXPECT_EQ(matcher.has_value(), why.empty());
  return matcher;
}

TEST(MatcherTest, WhatNoElementTells) {
  const ElementType byte = Of(Kind::kUnsigned, 1);
  const ElementType real = Of(Kind::kFloat, 4);
  EXPECT_TRUE(Make(Comparison::kLess, {Number{0}}, byte)->never());
  EXPECT_TRUE(Make(Comparison::kGreater, {Number{255}}, byte)->never());
  EXPECT_TRUE(Make(Comparison::kEqual, {Number{1.5}}, byte)->never());
  EXPECT_TRUE(Make(Comparison::kBetween, {Number{3}, Number{2}}, byte)->never());
  EXPECT_TRUE(Make(Comparison::kEqual, {Number{0.1L}}, real)->never());
  EXPECT_TRUE(Make(Comparison::kLessEqual, {kNan}, real)->never());
  EXPECT_TRUE(Make(Comparison::kNotEqual, {Number{256}}, byte)->always());
  EXPECT_TRUE(Make(Comparison::kGreaterEqual, {Number{-0.5}}, byte)->always());
  EXPECT_TRUE(Make(Comparison::kNotEqual, {kNan}, real)->always());
  EXPECT_FALSE(Make(Comparison::kLessEqual, {kInf}, real)->always()) << "NaN is not";
  EXPECT_FALSE(Make(Comparison::kEqual, {Number{1}}, byte)->never());
  EXPECT_FALSE(Make(Comparison::kEqual, {Number{1}}, byte)->always());
  Bits bits;
  Make(Comparison::kNotEqual, {kNan}, real)->Run(nullptr, 70, bits);
  EXPECT_EQ(bits.Count(), 70U);
  EXPECT_EQ(bits.words()[1], 63U);
}

TEST(MatcherTest, WhatCannotBeCompared) {
  const ElementType byte = Of(Kind::kUnsigned, 1);
  const ElementType text = Of(Kind::kFixedString, 3);
  EXPECT_FALSE(Make(Comparison::kEqual, {std::string("1")}, byte));
  EXPECT_FALSE(Make(Comparison::kEqual, {Number{1}}, text));
  EXPECT_FALSE(Make(Comparison::kBetween, {std::string("a"), Number{1}}, text));
  EXPECT_FALSE(Make(Comparison::kEqual, {}, byte));
  EXPECT_FALSE(Make(Comparison::kEqual, {Number{1}, Number{2}}, byte));
  EXPECT_FALSE(Make(Comparison::kBetween, {Number{1}}, byte));
  EXPECT_FALSE(Make(static_cast<Comparison>(7), {Number{1}}, byte));
  EXPECT_FALSE(Make(Comparison::kEqual, {Number{1}}, Of(Kind::kSigned, 3)));
  EXPECT_FALSE(Make(Comparison::kEqual, {Number{1}}, Of(Kind::kSigned, 16)));
  EXPECT_FALSE(Make(Comparison::kEqual, {Number{1}}, Of(Kind::kFloat, 1)));
  EXPECT_FALSE(Make(Comparison::kEqual, {Number{1}}, Of(Kind::kBrainFloat, 4)));
  EXPECT_FALSE(Make(Comparison::kEqual, {std::string()}, Of(Kind::kFixedString, 0)));
}

// A program may have set other rules for its own arithmetic, and looks at its flags.
TEST(MatcherTest, TheProgramsArithmeticIsItsOwn) {
  std::fenv_t before;
  std::fegetenv(&before);
  std::fesetround(FE_UPWARD);
#ifdef __SSE2__
  _mm_setcsr(_mm_getcsr() | 0x8040);  // small numbers are 0
#endif
  std::feclearexcept(FE_ALL_EXCEPT);
#ifdef __GLIBC__
  feenableexcept(FE_INVALID | FE_OVERFLOW);
#endif
  std::vector<uint64_t> counts;
  const EveryInstructions every;
  const float reals[] = {std::numeric_limits<float>::signaling_NaN(), 1e-40F, -1e-40F, 0.1F, 0.0F};
  const Number longs[] = {kNan, 1, std::numeric_limits<Number>::signaling_NaN()};
  every([&](Instructions) {
    std::string why;
    const auto count = [&](Comparison comparison, Number constant) {
      const auto matcher =
          Matcher::Make({comparison, {constant}}, Of(Kind::kFloat, 4), Constants::kOfElement, why);
      counts.push_back(matcher->Count(reals, 5));
    };
    count(Comparison::kGreater, 0);
    count(Comparison::kLess, 0);
    count(Comparison::kEqual, 0);
    count(Comparison::kEqual, 0.1L);
    count(Comparison::kGreater, 1e300L);
    const auto matcher = Matcher::Make({Comparison::kGreater, {Number{0}}},
                                       Of(Kind::kFloat, sizeof(Number)), Constants::kExact, why);
    counts.push_back(matcher->Count(longs, 3));
    // What follows the largest number overflows, and would trap.
    const auto beyond = Matcher::Make({Comparison::kGreater, {std::numeric_limits<Number>::max()}},
                                      Of(Kind::kFloat, sizeof(Number)), Constants::kExact, why);
    counts.push_back(beyond->Count(longs, 3));
  });
  const int flags = std::fetestexcept(FE_ALL_EXCEPT);
  const int rounding = std::fegetround();
  std::fesetenv(&before);
  EXPECT_EQ(flags, 0);
  EXPECT_EQ(rounding, FE_UPWARD);
  ASSERT_EQ(counts.size() % 7, 0U);
  for (size_t i = 0; i < counts.size(); i += 7) {
    EXPECT_EQ(std::vector<uint64_t>(counts.begin() + static_cast<ptrdiff_t>(i),
                                    counts.begin() + static_cast<ptrdiff_t>(i + 6)),
              (std::vector<uint64_t>{2, 1, 1, 1, 0, 1}));
  }
}

TEST(MatcherTest, InstructionsThatTheMachineHasNotAreNotForced) {
  EXPECT_TRUE(ForceInstructions(Instructions::kBaseline));
  for (Instructions instructions : kAllInstructions) {
    EXPECT_EQ(ForceInstructions(instructions), Has(instructions));
  }
  ForceNoInstructions();
}

}  // namespace
}  // namespace tidelane::predicate
