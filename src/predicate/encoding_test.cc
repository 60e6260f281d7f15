/// \file
/// Queries as bytes, also as bytes that no query has.
#include "predicate/encoding.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "predicate/text.h"

namespace tidelane::predicate {
namespace {

using namespace std::string_literals;

QueryPtr DecodeText(const std::string& bytes, std::string& why) {
  return Decode(std::as_bytes(std::span(bytes)), why);
}

std::string WhyNot(const std::string& bytes) {
  std::string why;
  EXPECT_EQ(DecodeText(bytes, why), nullptr);
  return why;
}

QueryPtr Parsed(const std::string& text) {
  std::string why;
  QueryPtr query = Parse(text, why);
  EXPECT_NE(query, nullptr) << text << ": " << why;
  return query;
}

// The one number of the query after its way through bytes.
long double Through(long double number) {
  const QueryPtr query =
      Query::Of(Subject::kElement, "x", {Comparison::kEqual, {Value(number)}}, "type");
  if (query == nullptr) return -1;
  std::string why;
  const std::string bytes = Encode(*query);
  EXPECT_EQ(bytes.size(), query->encoded_bytes());
  const QueryPtr again = DecodeText(bytes, why);
  EXPECT_NE(again, nullptr) << why;
  return again == nullptr ? -1 : std::get<Number>(again->condition().values[0]);
}

const std::string kHead = "H5Q1\1\0\0\0"s;
const std::string kXLess = "\1\0\2\1\0x"s;  // a condition on elements of x: less than

TEST(EncodingTest, BytesAreAsDescribed) {
  EXPECT_EQ(Encode(*Parsed("x < 3")), kHead + kXLess + "\1\1\3\0\0\0\0\0\0\0\0\0\0\0"s);
  EXPECT_EQ(Encode(*Parsed("x < 0.5")), kHead + kXLess + "\1\3\0\0\0\0\0\0\xe0\x3f\0\0\0\0"s);
  EXPECT_EQ(Encode(*Parsed("x < 'ab'")), kHead + kXLess + "\1\5\2\0\0\0ab\0\0\0\0"s);
  EXPECT_EQ(Encode(*Parsed("not x < -1")),
            "H5Q1\2\0\0\0\4"s + kXLess + "\1\1\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0"s);
  EXPECT_EQ(Encode(*Parsed("y between 1 and 18446744073709551615")),
            kHead + "\1\0\6\1\0y\2\1\1\0\0\0\0\0\0\0\2\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0"s);
  const std::string one = kXLess + "\1\1\1\0\0\0\0\0\0\0\0\0\0\0"s;
  EXPECT_EQ(Encode(*Parsed("x < 1 and x < 1")), "H5Q1\3\0\0\0\2"s + one + one);
  EXPECT_EQ(Encode(*Parsed("x < 1 or x < 1")), "H5Q1\3\0\0\0\3"s + one + one);
  EXPECT_EQ(Encode(*Query::Of(Subject::kLinkName, "", {Comparison::kEqual, {"u"}}, "T")),
            kHead + "\1\3\0\0\0\1\5\1\0\0\0u\1\0\0\0T"s);
  EXPECT_EQ(Encode(*Parsed("x < nan")), kHead + kXLess + "\1\3\0\0\0\0\0\0\xf8\x7f\0\0\0\0"s);
}

TEST(EncodingTest, NumbersStayWhatTheyAre) {
  const std::vector<long double> numbers = {0.0L,
                                            1.0L,
                                            -1.0L,
                                            0.1,
                                            0.1L,
                                            -0.3L,
                                            1e300,
                                            9007199254740993.0L,
                                            9223372036854775807.0L,
                                            -9223372036854775808.0L,
                                            9223372036854775808.0L,
                                            18446744073709551615.0L,
                                            18446744073709551616.0L,
                                            36893488147419103230.0L,
                                            -18446744073709551615.0L,
                                            5e-324,
                                            std::numeric_limits<double>::max(),
                                            std::numeric_limits<long double>::infinity(),
                                            -std::numeric_limits<long double>::infinity()};
  for (const long double number : numbers) EXPECT_EQ(Through(number), number);
  EXPECT_TRUE(std::signbit(Through(-0.0L)));
  EXPECT_FALSE(std::signbit(Through(0.0L)));
  EXPECT_TRUE(std::isnan(Through(std::numeric_limits<long double>::quiet_NaN())));
}

TEST(EncodingTest, QueriesComeBackWhole) {
  const auto text = [](Subject subject, const char* name, std::string value) {
    return Query::Of(subject, name, {Comparison::kGreaterEqual, {Value(std::move(value))}},
                     "bytes\0of a type"s);
  };
  const QueryPtr query =
      Query::Or(Query::Not(Query::And(text(Subject::kAttributeValue, "a b", "\0\xff"s),
                                      text(Subject::kAttributeName, "", ""))),
                text(Subject::kElement, "", "x"));
  std::string why;
  const QueryPtr again = DecodeText(Encode(*query), why);
  ASSERT_NE(again, nullptr) << why;
  EXPECT_EQ(Encode(*again), Encode(*query));
  EXPECT_EQ(again->kind(), Query::Kind::kOr);
  const Query& first = *again->left()->left()->left();
  EXPECT_EQ(first.subject(), Subject::kAttributeValue);
  EXPECT_EQ(first.name(), "a b");
  EXPECT_EQ(first.condition().comparison, Comparison::kGreaterEqual);
  EXPECT_EQ(std::get<std::string>(first.condition().values[0]), "\0\xff"s);
  EXPECT_EQ(first.type(), "bytes\0of a type"s);
}

TEST(EncodingTest, EveryPrefixIsRefused) {
  const std::string bytes =
      Encode(*Parsed("not (x < 1 and s == 'text') or 0.1L <= y <= 3 or z in (1, 1.5)"));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(WhyNot(bytes.substr(0, size)).find("at byte "), std::string::npos) << size;
  }
  EXPECT_EQ(WhyNot(bytes + '\0'),
            "at byte " + std::to_string(bytes.size()) + ": bytes after the query's end");
}

TEST(EncodingTest, WhatEncodeDoesNotMakeIsRefusedWithThePlace) {
  const std::string one = "\1\1\1\0\0\0\0\0\0\0\0\0\0\0"s;  // the constant 1, no type
  EXPECT_EQ(WhyNot("H5Q2\1\0\0\0"s + kXLess + one),
            "at byte 0: no encoded query, or one of a version that is not known here");
  EXPECT_EQ(WhyNot("H5Q1\0\0\0\0"s + kXLess + one),
            "at byte 8: a number of nodes that no query has");
  EXPECT_EQ(WhyNot("H5Q1\xff\xff\xff\xff"s + kXLess + one),
            "at byte 8: a number of nodes that no query has");
  EXPECT_EQ(WhyNot("H5Q1\2\0\0\0"s + kXLess + one), "at byte 28: fewer nodes than were announced");
  EXPECT_EQ(WhyNot("H5Q1\1\0\0\0\4"s + kXLess + one), "at byte 9: more nodes than were announced");
  EXPECT_EQ(WhyNot(kHead + "\5"s), "at byte 9: a node of unknown kind");
  EXPECT_EQ(WhyNot(kHead + "\1\4\2\1\0x"s + one), "at byte 11: an unknown subject");
  EXPECT_EQ(WhyNot(kHead + "\1\0\7\1\0x"s + one), "at byte 11: an unknown comparison");
  EXPECT_EQ(WhyNot(kHead + kXLess + "\3"s),
            "at byte 15: a number of constants that no comparison has");
  EXPECT_EQ(WhyNot(kHead + "\1\0\6\1\0x"s + one), "at byte 28: no condition that a query can have");
  EXPECT_EQ(WhyNot(kHead + "\1\2\0\1\0x"s + one), "at byte 28: no condition that a query can have");
  EXPECT_EQ(WhyNot(kHead + kXLess + "\1\6"s), "at byte 16: a constant of unknown kind");
  EXPECT_EQ(WhyNot(kHead + kXLess + "\1\3\0\0\0\0\0\0\xf0\x3f\0\0\0\0"s),
            "at byte 24: a number in another form than its own")
      << "1 as a double";
  EXPECT_EQ(WhyNot(kHead + kXLess + "\1\3\1\0\0\0\0\0\xf8\x7f\0\0\0\0"s),
            "at byte 24: a number in another form than its own")
      << "another NaN";
  EXPECT_EQ(WhyNot(kHead + kXLess + "\1\5\xff\xff\xff\xff"s),
            "at byte 20: the bytes end too early");
  EXPECT_EQ(WhyNot(std::string(kMostEncoded + 1, 'H')),
            "at byte 0: more bytes than a query has at most");
}

TEST(EncodingTest, DepthIsLimited) {
  const std::string condition = kXLess + "\1\1\1\0\0\0\0\0\0\0\0\0\0\0"s;
  const auto nots = [&](size_t count) {
    const size_t nodes = count + 1;
    return "H5Q1"s + static_cast<char>(nodes & 255) + static_cast<char>(nodes >> 8) + "\0\0"s +
           std::string(count, '\4') + condition;
  };
  std::string why;
  EXPECT_NE(DecodeText(nots(kMostDepth - 1), why), nullptr) << why;
  EXPECT_EQ(WhyNot(nots(kMostDepth)), "at byte 264: deeper than a query is at most");
  EXPECT_EQ(WhyNot(nots(60000)), "at byte 264: deeper than a query is at most");
}

}  // namespace
}  // namespace tidelane::predicate
