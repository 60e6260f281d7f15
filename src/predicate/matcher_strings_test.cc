/// \file
/// Strings: where they end, and their order by bytes without sign.
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "predicate/fixed_strings.h"
#include "predicate/matcher.h"

namespace tidelane::predicate {
namespace {

using Kind = ElementType::Kind;
using Pad = ElementType::Pad;
using std::string_literals::operator""s;

std::vector<bool> MatchesOf(const Condition& condition, const ElementType& type,
                            const void* elements, size_t count) {
  std::string why;
  const auto matcher = Matcher::Make(condition, type, Constants::kExact, why);
  EXPECT_TRUE(matcher) << why;
  Bits bits;
  matcher->Run(elements, count, bits);
  EXPECT_EQ(matcher->Count(elements, count), bits.Count());
  std::vector<bool> matches;
  for (size_t i = 0; i < bits.size(); ++i) matches.push_back(bits.At(i));
  return matches;
}

bool RunOne(Comparison comparison, const std::string& element, Pad pad,
            const std::string& constant) {
  const ElementType type = {
      .kind = Kind::kFixedString, .size = static_cast<uint32_t>(element.size()), .pad = pad};
  return MatchesOf({comparison, {constant}}, type, element.data(), 1)[0];
}

TEST(MatcherStringsTest, WhereFixedStringsEnd) {
  const auto equal = [](const std::string& element, Pad pad, const std::string& constant) {
    EXPECT_NE(RunOne(Comparison::kEqual, element, pad, constant),
              RunOne(Comparison::kNotEqual, element, pad, constant));
    return RunOne(Comparison::kEqual, element, pad, constant);
  };
  EXPECT_TRUE(equal("abc\0zz"s, Pad::kNullTerminated, "abc"));
  EXPECT_TRUE(equal("abcdef", Pad::kNullTerminated, "abcdef")) << "no room for a null";
  EXPECT_FALSE(equal("abc\0zz"s, Pad::kNullTerminated, "abc\0zz"s));
  EXPECT_TRUE(equal("abc   ", Pad::kNullTerminated, "abc   "));
  EXPECT_TRUE(equal("abc\0\0\0"s, Pad::kNullPadded, "abc"));
  EXPECT_TRUE(equal("a\0c\0\0\0"s, Pad::kNullPadded, "a\0c"s));
  EXPECT_FALSE(equal("a\0c\0\0\0"s, Pad::kNullPadded, "a"));
  EXPECT_FALSE(equal("abc\0\0\0"s, Pad::kNullPadded, "abc\0"s));
  EXPECT_TRUE(equal("abc   ", Pad::kSpacePadded, "abc"));
  EXPECT_TRUE(equal(" bc   ", Pad::kSpacePadded, " bc"));
  EXPECT_FALSE(equal("abc\0\0\0"s, Pad::kSpacePadded, "abc"));
  EXPECT_TRUE(equal("      ", Pad::kSpacePadded, ""));
  EXPECT_TRUE(equal("\0\0"s, Pad::kNullPadded, ""));
  EXPECT_TRUE(equal("\0x"s, Pad::kNullTerminated, ""));
}

TEST(MatcherStringsTest, BytesHaveNoSign) {
  EXPECT_TRUE(RunOne(Comparison::kGreater, "\xff", Pad::kNullPadded, "a"));
  EXPECT_TRUE(RunOne(Comparison::kLess, "a\0"s, Pad::kNullPadded, "a\x80"));
  EXPECT_TRUE(RunOne(Comparison::kLess, "ab", Pad::kNullPadded, "ab\0"s));
  EXPECT_TRUE(RunOne(Comparison::kGreater, "b", Pad::kNullPadded, "abc"));
}

TEST(MatcherStringsTest, VariableStrings) {
  const char* elements[] = {"", nullptr, "abc", "abd", "\xc3\xa4", "ab"};
  const ElementType type = {.kind = Kind::kVariableString, .size = sizeof(const char*)};
  EXPECT_EQ(MatchesOf({Comparison::kEqual, {""s}}, type, elements, 6),
            (std::vector<bool>{true, true, false, false, false, false}));
  EXPECT_EQ(MatchesOf({Comparison::kGreaterEqual, {"abc"s}}, type, elements, 6),
            (std::vector<bool>{false, false, true, true, true, false}));
  EXPECT_EQ(MatchesOf({Comparison::kBetween, {"ab"s, "abc"s}}, type, elements, 6),
            (std::vector<bool>{false, false, true, false, false, true}));
  EXPECT_EQ(MatchesOf({Comparison::kEqual, {"abc\0"s}}, type, elements, 6), std::vector<bool>(6));
  std::vector<char> bytes(sizeof elements + 1);
  std::memcpy(bytes.data() + 1, elements, sizeof elements);
  EXPECT_EQ(MatchesOf({Comparison::kNotEqual, {"abd"s}}, type, bytes.data() + 1, 6),
            (std::vector<bool>{true, true, true, false, true, true}));
}

TEST(MatcherStringsTest, NothingIsBetweenEndsInTheWrongOrder) {
  const ElementType type = {.kind = Kind::kFixedString, .size = 4};
  std::string why;
  const auto between = [&](const char* first, const char* second) {
    return *Matcher::Make({Comparison::kBetween, {std::string(first), std::string(second)}}, type,
                          Constants::kExact, why);
  };
  EXPECT_TRUE(between("b", "a").never());
  EXPECT_FALSE(between("a", "a").never());
}

bool Expected(Comparison comparison, const std::string& element, const std::string& first,
              const std::string& second) {
  // Of std::string, whose order is that of bytes without sign.
  switch (comparison) {
    case Comparison::kEqual: return element == first;
    case Comparison::kNotEqual: return element != first;
    case Comparison::kLess: return element < first;
    case Comparison::kGreater: return element > first;
    case Comparison::kLessEqual: return element <= first;
    case Comparison::kGreaterEqual: return element >= first;
    default: return element >= first && element <= second;
  }
}

TEST(MatcherStringsTest, RandomOfAFewLetters) {
  std::mt19937 random(3);
  const std::string letters = "\0 a\x80\xff"s;
  const auto any = [&](size_t size) {
    std::string text;
    while (text.size() < size) text += letters[random() % letters.size()];
    return text;
  };
  for (int round = 0; round < 600; ++round) {
    const size_t size = 1 + random() % 4;
    const size_t count = random() % 140;
    const auto pad = static_cast<Pad>(random() % 3);
    const auto comparison = static_cast<Comparison>(random() % 7);
    const std::string first = any(random() % 4);
    const std::string second = any(random() % 4);
    const std::string elements = any(size * count);
    Condition condition = {comparison, {first}};
    if (comparison == Comparison::kBetween) condition.values.emplace_back(second);
    const ElementType type = {
        .kind = Kind::kFixedString, .size = static_cast<uint32_t>(size), .pad = pad};
    const std::vector<bool> matches = MatchesOf(condition, type, elements.data(), count);
    for (size_t i = 0; i < count; ++i) {
      std::string element = elements.substr(i * size, size);
      if (pad == Pad::kNullTerminated) {
        element = element.c_str();
      } else {
        while (!element.empty() && element.back() == (pad == Pad::kNullPadded ? '\0' : ' ')) {
          element.pop_back();
        }
      }
      ASSERT_EQ(matches[i], Expected(comparison, element, first, second));
    }
  }
}

// Elements of which many begin as a constant does, or are nearly equal to it, in memory of exactly their size.
class NearlyEqual {
 public:
  explicit NearlyEqual(unsigned seed) : random_(seed) {}

  void Check() {
    const size_t size = 1 + random_() % (Chance(4) ? 70 : 24);
    const ElementType type = {.kind = Kind::kFixedString,
                              .size = static_cast<uint32_t>(size),
                              .pad = static_cast<Pad>(random_() % 3)};
    const std::string seed = Any(size);
    Condition condition = {static_cast<Comparison>(random_() % 7), {Constant(seed)}};
    if (condition.comparison == Comparison::kBetween) condition.values.emplace_back(Constant(seed));
    const size_t count = random_() % 200;
    const auto elements = std::make_unique<unsigned char[]>(size * count);
    for (size_t i = 0; i < count; ++i) {
      std::string element = Changed(seed);
      element.resize(size, type.pad == Pad::kSpacePadded ? ' ' : '\0');
      std::memcpy(elements.get() + i * size, element.data(), size);
    }
    const std::vector<bool> matches = MatchesOf(condition, type, elements.get(), count);
    const FixedStrings exact(condition, type);
    for (size_t i = 0; i < count; ++i) {
      const unsigned char* const element = elements.get() + i * size;
      ASSERT_EQ(matches[i], exact.Matches(element))
          << "size " << size << " pad " << static_cast<int>(type.pad) << " comparison "
          << static_cast<int>(condition.comparison) << " element "
          << testing::PrintToString(std::string(element, element + size)) << " constants "
          << testing::PrintToString(std::get<std::string>(condition.values.front())) << " "
          << testing::PrintToString(std::get<std::string>(condition.values.back()));
    }
  }

 private:
  bool Chance(unsigned of) { return random_() % of == 0; }

  char Letter() {
    static const std::string letters = "\0 \x01\x1f!aab\x7f\x80\xff\xff"s;
    return letters[random_() % letters.size()];
  }

  std::string Any(size_t size) {
    std::string text(size, Chance(4) ? Letter() : 'a');
    for (char& c : text) {
      if (Chance(4)) c = Letter();
    }
    return text;
  }

  std::string Changed(std::string text) {
    for (unsigned changes = random_() % 3; changes > 0; --changes)
      text[random_() % text.size()] = Letter();
    if (Chance(3)) text.resize(random_() % (text.size() + 1));
    return text;
  }

  // Also longer than an element, and one that ends as padding does.
  std::string Constant(const std::string& seed) {
    std::string text = Changed(seed);
    if (Chance(4)) text.append(random_() % 3, Letter());
    if (Chance(8)) text = Any(random_() % 80);
    return text;
  }

  std::mt19937 random_;
};

TEST(MatcherStringsTest, AsOneByOneForEveryLengthAndPadding) {
  NearlyEqual nearly(11);
  for (int round = 0; round < 6000 && !testing::Test::HasFatalFailure(); ++round) nearly.Check();
}

TEST(MatcherStringsTest, WhatNoPaddedElementCanBeIsKnown) {
  const auto of = [](Comparison comparison, const std::string& constant, Pad pad) {
    std::string why;
    const ElementType type = {.kind = Kind::kFixedString, .size = 4, .pad = pad};
    return *Matcher::Make({comparison, {constant}}, type, Constants::kExact, why);
  };
  EXPECT_TRUE(of(Comparison::kEqual, "abcde", Pad::kNullPadded).never());
  EXPECT_TRUE(of(Comparison::kNotEqual, "abcde", Pad::kNullPadded).always());
  EXPECT_TRUE(of(Comparison::kEqual, "abc ", Pad::kSpacePadded).never());
  EXPECT_TRUE(of(Comparison::kEqual, "a\0b"s, Pad::kNullTerminated).never());
  EXPECT_FALSE(of(Comparison::kEqual, "a\0b"s, Pad::kNullPadded).never());
  EXPECT_TRUE(of(Comparison::kLess, "", Pad::kNullTerminated).never());
  EXPECT_TRUE(of(Comparison::kGreaterEqual, "", Pad::kNullTerminated).always());
}

}  // namespace
}  // namespace tidelane::predicate
