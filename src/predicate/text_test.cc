/// \file
/// Queries as people write them: what each production means, each error with its place, and texts of queries.
#include "predicate/text.h"

#include <cmath>
#include <limits>
#include <locale>

#include <gtest/gtest.h>

#include "predicate/encoding.h"

namespace tidelane::predicate {
namespace {

QueryPtr Parsed(const std::string& text) {
  std::string why;
  QueryPtr query = Parse(text, why);
  EXPECT_NE(query, nullptr) << text << ": " << why;
  return query;
}

std::string Bytes(const std::string& text) {
  const QueryPtr query = Parsed(text);
  return query == nullptr ? text : Encode(*query);
}

std::string WhyNot(const std::string& text) {
  std::string why;
  EXPECT_EQ(Parse(text, why), nullptr) << text;
  return why;
}

// Of the text "x == <number>".
long double Number_(const std::string& number) {
  const QueryPtr query = Parsed("x == " + number);
  if (query == nullptr) return -1;
  const auto* value = std::get_if<Number>(&query->condition().values[0]);
  return value == nullptr ? -1 : *value;
}

std::string String_(const std::string& literal) {
  const QueryPtr query = Parsed("x == " + literal);
  if (query == nullptr) return "?";
  const auto* value = std::get_if<std::string>(&query->condition().values[0]);
  return value == nullptr ? "?" : *value;
}

// What a text is read as, in the plainest words.
void IsReadAs(const std::string& text, const std::string& plain) {
  EXPECT_EQ(Bytes(text), Bytes(plain)) << text;
  EXPECT_EQ(Text(*Parsed(text)), plain);
}

TEST(TextTest, Comparisons) {
  const std::vector<std::pair<const char*, Comparison>> signs = {
      {"==", Comparison::kEqual},     {"=", Comparison::kEqual},
      {"!=", Comparison::kNotEqual},  {"<>", Comparison::kNotEqual},
      {"<", Comparison::kLess},       {">", Comparison::kGreater},
      {"<=", Comparison::kLessEqual}, {">=", Comparison::kGreaterEqual}};
  for (const auto& [sign, comparison] : signs) {
    const QueryPtr query = Parsed(std::string("Energy") + sign + "3");
    ASSERT_NE(query, nullptr);
    EXPECT_EQ(query->kind(), Query::Kind::kCondition);
    EXPECT_EQ(query->subject(), Subject::kElement);
    EXPECT_EQ(query->name(), "Energy");
    EXPECT_EQ(query->condition().comparison, comparison) << sign;
    EXPECT_EQ(std::get<Number>(query->condition().values.at(0)), 3);
  }
  IsReadAs("3<x", "x > 3");
  IsReadAs("3 >= x", "x <= 3");
  IsReadAs("'a' = x", "x == 'a'");
  IsReadAs("3 <> x", "x != 3");
}

TEST(TextTest, RangesAndLists) {
  IsReadAs("0 <= x < 3", "x >= 0 and x < 3");
  IsReadAs("3 > x > 0", "x < 3 and x > 0");
  IsReadAs("0 <= x <= 3", "x between 0 and 3");
  IsReadAs("3 >= x >= 0", "x between 0 and 3");
  IsReadAs("x BETWEEN 'a' AND \"b\"", "x between 'a' and 'b'");
  IsReadAs("x not between 1 and 2 and y < 3", "not x between 1 and 2 and y < 3");
  IsReadAs("x in (1, 2.5, -3)", "x == 1 or x == 2.5 or x == -3");
  IsReadAs("x in ['a']", "x == 'a'");
  IsReadAs("x not in (1, 2)", "not (x == 1 or x == 2)");
  IsReadAs("isnan(x)", "isnan(x)");
  IsReadAs("not IsNaN ( `a b` )", "not isnan(`a b`)");
  EXPECT_EQ(Bytes("isnan(x)"), Bytes("not x between -inf and inf"));
}

TEST(TextTest, CombinationsAndPrecedence) {
  IsReadAs("a<1 or b<2 and not c<3", "a < 1 or b < 2 and not c < 3");
  IsReadAs("(a<1 or b<2) and not (c<3)", "(a < 1 or b < 2) and not c < 3");
  IsReadAs("a<1 || b<2 && !c<3", "a < 1 or b < 2 and not c < 3");
  IsReadAs("a<1 | b<2 & ~c<3", "a < 1 or b < 2 and not c < 3");
  IsReadAs("a<1 OR b<2 And NOT c<3", "a < 1 or b < 2 and not c < 3");
  IsReadAs("not not (((a < 1)))", "not not a < 1");
  IsReadAs("!(a<1|b<2)", "not (a < 1 or b < 2)");
  const QueryPtr query = Parsed("a<1 or b<2 and not c<3");
  EXPECT_EQ(query->kind(), Query::Kind::kOr);
  EXPECT_EQ(query->left()->name(), "a");
  EXPECT_EQ(query->right()->kind(), Query::Kind::kAnd);
  EXPECT_EQ(query->right()->right()->kind(), Query::Kind::kNot);
}

TEST(TextTest, Names) {
  const auto name = [](const std::string& text) { return Parsed(text + " > 1")->name(); };
  EXPECT_EQ(name("_a9"), "_a9");
  EXPECT_EQ(name("/group/x.y"), "/group/x.y");
  EXPECT_EQ(name(".x"), ".x");
  EXPECT_EQ(name("µ"), "µ");
  EXPECT_EQ(name("`a b'\"\n`"), "a b'\"\n");
  EXPECT_EQ(name("`a``b`"), "a`b");
  EXPECT_EQ(name("````"), "`");
  EXPECT_EQ(name("``"), "");
  EXPECT_EQ(name("`and`"), "and");
  EXPECT_EQ(name("android"), "android");
  for (const char* odd : {"", "and", "NaN", "1x", ".5", "a b", "`", "a`", "true", "x-y", "\n"}) {
    const QueryPtr query = Query::Of(Subject::kElement, odd, {Comparison::kLess, {Value(1.0L)}});
    EXPECT_EQ(Bytes(Text(*query)), Encode(*query)) << odd;
  }
}

TEST(TextTest, IntegersAreExact) {
  EXPECT_EQ(Number_("9007199254740993"), 9007199254740993.0L);
  EXPECT_EQ(Number_("9223372036854775807"), 9223372036854775807.0L);
  EXPECT_EQ(Number_("-9223372036854775808"), -9223372036854775808.0L);
  EXPECT_EQ(Number_("18446744073709551615"), 18446744073709551615.0L);
  EXPECT_EQ(Number_("18446744073709551616"), 18446744073709551616.0L);
  EXPECT_EQ(Number_("36893488147419103230"), 36893488147419103230.0L);
  EXPECT_EQ(Number_("36893488147419103231"), 36893488147419103232.0L) << "the nearest";
  EXPECT_EQ(Number_("0xFf"), 255);
  EXPECT_EQ(Number_("-0X10"), -16);
  EXPECT_EQ(Number_("0xffffffffffffffff"), 18446744073709551615.0L);
  EXPECT_EQ(Number_("0x1fffffffffffffffe"), 36893488147419103230.0L);
  EXPECT_EQ(Number_("007"), 7);
  EXPECT_EQ(Number_("+ 7"), 7);
  EXPECT_EQ(Number_("1" + std::string(300, '0')), 1e300L);
  EXPECT_FALSE(std::signbit(Number_("-0")));
  EXPECT_FALSE(std::signbit(Number_("-0x0")));
  EXPECT_EQ(Number_("True"), 1);
  EXPECT_EQ(Number_("FALSE"), 0);
}

TEST(TextTest, DecimalsAreTheNearestDouble) {
  EXPECT_EQ(Number_("0.1"), static_cast<long double>(0.1));
  EXPECT_NE(Number_("0.1"), 0.1L);
  EXPECT_EQ(Number_("0.1L"), 0.1L);
  EXPECT_EQ(Number_("1."), 1);
  EXPECT_EQ(Number_(".5"), 0.5L);
  EXPECT_EQ(Number_("-1.5e+3"), -1500);
  EXPECT_EQ(Number_("1E-2"), static_cast<long double>(0.01));
  EXPECT_EQ(Number_("9007199254740993.0"), 9007199254740992.0L);
  EXPECT_EQ(Number_("5e-324"), 5e-324);
  EXPECT_EQ(Number_("2e-324"), 0);
  EXPECT_EQ(Number_("1e-99999999999999999999"), 0);
  EXPECT_EQ(Number_("0e99999999999999999999"), 0);
  EXPECT_EQ(Number_("0.00001e-400"), 0);
  EXPECT_EQ(Number_("1e400"), std::numeric_limits<long double>::infinity());
  EXPECT_EQ(Number_("-1e400"), -std::numeric_limits<long double>::infinity());
  EXPECT_EQ(Number_("1e99999999999999999999"), std::numeric_limits<long double>::infinity());
  EXPECT_EQ(Number_("1" + std::string(400, '0') + ".0"),
            std::numeric_limits<long double>::infinity());
  EXPECT_EQ(Number_("0." + std::string(400, '0') + "1e401"), 1);
  EXPECT_TRUE(std::signbit(Number_("-0.0")));
  EXPECT_EQ(Number_("-inf"), -std::numeric_limits<long double>::infinity());
  EXPECT_EQ(Number_("+INF"), std::numeric_limits<long double>::infinity());
  EXPECT_TRUE(std::isnan(Number_("nan")));
  EXPECT_TRUE(std::isnan(Number_("-nan")));
}

// The locale's decimal point, and its grouping, are not the text's.
TEST(TextTest, TheLocaleDoesNotMatter) {
  const std::string before = setlocale(LC_ALL, nullptr);
  if (setlocale(LC_ALL, "de_DE.UTF-8") == nullptr) GTEST_SKIP() << "no German locale here";
  EXPECT_EQ(Number_("1.5"), 1.5L);
  EXPECT_EQ(Text(*Parsed("x > 1.5 and x < 0.1L")), "x > 1.5 and x < 0.1L");
  setlocale(LC_ALL, before.c_str());
}

TEST(TextTest, Strings) {
  using namespace std::string_literals;
  EXPECT_EQ(String_("\"it's\""), "it's");
  EXPECT_EQ(String_("'it\\'s'"), "it's");
  EXPECT_EQ(String_(R"('\a\b\f\n\r\t\v\\\"')"), "\a\b\f\n\r\t\v\\\"");
  EXPECT_EQ(String_(R"('\x41\xfF\0\101\3777')"), "A\xff\0A\3777"s);
  EXPECT_EQ(String_("'ü\n'"), "ü\n");
  EXPECT_EQ(String_("''"), "");
  for (const std::string& bytes :
       {""s, "'"s, "\\"s, "\0"s, "ü"s, "\xfc"s, "\xfc\xc3\xbc"s, "a\nb\tc\x7f"s, "\xed\xa0\x80"s}) {
    const QueryPtr query = Query::Of(Subject::kElement, "x", {Comparison::kLess, {Value(bytes)}});
    EXPECT_EQ(Bytes(Text(*query)), Encode(*query)) << Text(*query);
  }
  EXPECT_EQ(Text(*Parsed("x == 'ü\\n\\x01'")), "x == 'ü\\n\\x01'");
  EXPECT_EQ(Text(*Parsed("x == 'ü\\xff'")), "x == '\\xc3\\xbc\\xff'")
      << "what is no UTF-8 is not printed as if it were";
}

TEST(TextTest, NumbersOfTextsAreReadAsThemselves) {
  const std::vector<long double> numbers = {0,
                                            -0.0L,
                                            1,
                                            -1,
                                            0.1,
                                            0.1L,
                                            -1e-300L,
                                            1e20,
                                            1e22,
                                            1e300,
                                            18446744073709551615.0L,
                                            18446744073709551616.0L,
                                            36893488147419103230.0L,
                                            -36893488147419103230.0L,
                                            5e-324,
                                            std::numeric_limits<double>::max(),
                                            std::numeric_limits<double>::min(),
                                            1.0L / 3,
                                            1e15 + 0.5,
                                            std::numeric_limits<long double>::infinity()};
  for (const long double number : numbers) {
    const QueryPtr query = Query::Of(Subject::kElement, "x", {Comparison::kLess, {Value(number)}});
    ASSERT_NE(query, nullptr);
    EXPECT_EQ(Bytes(Text(*query)), Encode(*query)) << Text(*query);
  }
}

TEST(TextTest, ErrorsSayWhereAndWhatIsNeeded) {
  const std::vector<std::pair<std::string, std::string>> errors = {
      {"", "1: a condition is needed, such as x > 3, but the text ends"},
      {"   ", "4: a condition is needed, such as x > 3, but the text ends"},
      {"x >", "4: a number or a text in quotes is needed after '>', but the text ends"},
      {"x    > y", "8: a number or a text in quotes is needed after '>', not 'y'"},
      {"x", "2: a comparison is needed after 'x', but the text ends"},
      {"x and y > 1", "3: a comparison is needed after 'x', not 'and'"},
      {"µ > 'é' and", "12: a condition is needed, such as x > 3, but the text ends"},
      {"x > 1 y > 2", "7: 'and' or 'or' is needed between conditions, not 'y'"},
      {"x > 1 > 2", "7: comparisons follow each other only as in 0 <= x < 3"},
      {"(x > 1 > 2)", "8: comparisons follow each other only as in 0 <= x < 3"},
      {"0 < x > 2", "7: two comparisons of a column are of one direction, as in 0 <= x < 3"},
      {"0 == x == 2", "8: two comparisons of a column are of one direction, as in 0 <= x < 3"},
      {"0 < x < 'a'", "9: numbers and texts are not compared with each other"},
      {"1 < 2", "5: a column is needed after '<': constants are not compared with each other"},
      {"1 < (x)", "5: a column is needed after '<', not '('"},
      {"1", "2: a comparison is needed after '1', but the text ends"},
      {"(x > 1", "1: the '(' is not closed"},
      {"(x > 1 y", "8: 'and' or 'or' is needed between conditions, not 'y'"},
      {"x > 1)", "6: there is no '(' for this ')'"},
      {"()", "2: a condition is needed, such as x > 3, not ')'"},
      {"x == 'a", "6: the quote is not closed"},
      {"x == 'it''", "10: the quote is not closed"},
      {"x == 'a\\", "6: the quote is not closed"},
      {"`x == 1", "1: the backquote is not closed"},
      {"x == 'a\\q'", "8: after a backslash comes one of \\ ' \" a b f n r t v x 0-7"},
      {"x == '\\x4'", "7: two hexadecimal digits are needed after '\\x'"},
      {"x == '\\400'", "7: a byte is at most \\377"},
      {"x between 1",
       "12: 'and' and a second constant are needed after 'between', but the text ends"},
      {"x between 1 & 2", "13: 'and' and a second constant are needed after 'between', not '&'"},
      {"x between y", "11: a number or a text in quotes is needed after 'between', not 'y'"},
      {"x between 1 and 'b'", "17: numbers and texts are not compared with each other"},
      {"x in 3", "6: a list is needed after 'in', such as (1, 2, 3), not '3'"},
      {"x in ()", "7: a number or a text in quotes is needed after '(', not ')'"},
      {"x in (1, )", "10: a number or a text in quotes is needed after ',', not ')'"},
      {"x in (1 2)", "9: ',' or ')' is needed in a list, not '2'"},
      {"x in [1)", "8: ',' or ']' is needed in a list, not ')'"},
      {"x in (1, 'b')", "10: numbers and texts are not compared with each other"},
      {"x not > 3", "7: 'between' or 'in' is needed after 'not', not '>'"},
      {"isnan x", "7: '(' is needed after 'isnan', not 'x'"},
      {"isnan(1)", "7: a column is needed in isnan(...), not '1'"},
      {"isnan(x", "8: ')' is needed after the column of isnan, but the text ends"},
      {"sin(x) > 1", "4: there is no function 'sin': the only one is isnan"},
      {"x * 2 > 1", "3: there is no arithmetic in queries"},
      {"x - 2 > 1", "3: there is no arithmetic in queries"},
      {"x > 2 + y", "7: a number is needed after '+': there is no arithmetic in queries"},
      {"x > -y", "5: a number is needed after '-': there is no arithmetic in queries"},
      {"x > 3y", "5: '3y' is no number (and a name that begins with a digit needs backquotes)"},
      {"x > 1.2.3",
       "5: '1.2.3' is no number (and a name that begins with a digit needs backquotes)"},
      {"x > 1e", "5: '1e' is no number (and a name that begins with a digit needs backquotes)"},
      {"x > 0x", "5: a digit is needed after '0x'"},
      {"x > 1" + std::string(400, '0'), "5: the number is larger than any double"},
      {"x > 0x1" + std::string(5000, '0'), "5: the number is larger than any double"},
      {"x > 1e400L", "5: the number is larger than any double"},
      {"x > 1e-4000L", "5: the number is too small to be kept exactly"},
      {"in > 3",
       "1: a condition is needed, such as x > 3, not 'in' (a column of that name goes in "
       "backquotes)"},
      {"x > $", "5: a number or a text in quotes is needed after '>', not '$'"},
      {"x > \x01", "5: a number or a text in quotes is needed after '>', not '\\x01'"},
      {"x > 3 and a_name_of_more_than_twenty_four_letters",
       "50: a comparison is needed after 'a_name_of_more_than_twen...', but the text ends"},
  };
  for (const auto& [text, why] : errors) EXPECT_EQ(WhyNot(text), "at character " + why) << text;
}

std::string Repeated(const std::string& part, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += part;
  return text;
}

TEST(TextTest, NestingIsLimited) {
  EXPECT_NE(Parsed(Repeated("(", 256) + "x > 1" + Repeated(")", 256)), nullptr);
  EXPECT_EQ(WhyNot(Repeated("(", 257) + "x > 1"), "at character 257: nested deeper than 256");
  EXPECT_NE(Parsed(Repeated("not ", 255) + "x > 1"), nullptr);
  EXPECT_EQ(WhyNot(Repeated("not ", 256) + "x > 1"),
            "at character 1025: the query is nested too deeply, or too large");
  for (const char* part : {"(", "not ", "!", "~(", "(x > 1 and (", "not(a<1 or "}) {
    EXPECT_NE(WhyNot(Repeated(part, kMostText / std::string(part).size())).find("nested"),
              std::string::npos)
        << part;
  }
}

TEST(TextTest, LongListsAreNotDeep) {
  std::string list = "x in (0";
  for (int i = 1; i < 32768; ++i) list += "," + std::to_string(i);
  const QueryPtr query = Parsed(list + ")");
  ASSERT_NE(query, nullptr);
  EXPECT_EQ(query->nodes(), 65535u);
  EXPECT_EQ(query->depth(), 16u);
  EXPECT_EQ(Bytes(Text(*query)), Encode(*query));
  EXPECT_NE(WhyNot(list + ",1,2)").find("a query has at most 65536 parts"), std::string::npos);
  EXPECT_NE(WhyNot(Repeated("x<1 or ", 66000) + "x<1").find("a query has at most 65536 parts"),
            std::string::npos);
}

TEST(TextTest, WhatIsLargeIsRefusedBeforeItIsMade) {
  EXPECT_EQ(WhyNot(std::string(kMostText, ' ') + "x"),
            "at character 1048577: a text is at most 1048576 bytes long");
  EXPECT_EQ(WhyNot("`" + std::string(kMostName + 1, 'n') + "` > 1"),
            "at character 1: a name is at most 65535 bytes long");
  const std::string name(kMostName, 'n');
  EXPECT_EQ(WhyNot(name + " in (" + Repeated("1,", 1000) + "1)"),
            "at character 1: names and constants come to more than 16777216 bytes");
}

// The tree that a program combined one by one has parentheses where the parser would have joined otherwise.
TEST(TextTest, TextsKeepTheShapeOfTheTree) {
  const auto leaf = [](char name) {
    return Query::Of(Subject::kElement, std::string(1, name), {Comparison::kLess, {Value(1.0L)}});
  };
  const auto text_of = [](const QueryPtr& query) {
    EXPECT_EQ(Bytes(Text(*query)), Encode(*query)) << Text(*query);
    return Text(*query);
  };
  const QueryPtr ab = Query::And(leaf('a'), leaf('b'));
  EXPECT_EQ(text_of(Query::And(ab, leaf('c'))), "a < 1 and b < 1 and c < 1");
  EXPECT_EQ(text_of(Query::And(leaf('c'), ab)), "c < 1 and (a < 1 and b < 1)");
  EXPECT_EQ(text_of(Query::Or(Query::Or(leaf('a'), leaf('b')), ab)),
            "a < 1 or b < 1 or a < 1 and b < 1");
  QueryPtr left = leaf('a');
  QueryPtr right = leaf('a');
  for (size_t i = 1; i < kMostDepth; ++i) {
    left = Query::Or(left, leaf('b'));
    right = Query::Not(Query::And(leaf('b'), right));
    if (right == nullptr) right = leaf('c');
    if (i % 50 == 0) text_of(left), text_of(right);
  }
  EXPECT_EQ(left->depth(), kMostDepth);
}

TEST(TextTest, OfOtherSubjectsThereIsATextForPeople) {
  const auto of = [](Subject subject, const char* name) {
    return Text(*Query::Of(subject, name, {Comparison::kEqual, {"x"}}));
  };
  EXPECT_EQ(of(Subject::kAttributeValue, "unit"), "attribute unit == 'x'");
  EXPECT_EQ(of(Subject::kAttributeName, ""), "attribute name == 'x'");
  EXPECT_EQ(of(Subject::kLinkName, ""), "link name == 'x'");
  EXPECT_NE(WhyNot("attribute unit == 'x'"), "");
}

}  // namespace
}  // namespace tidelane::predicate
