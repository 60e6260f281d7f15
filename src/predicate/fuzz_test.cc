/// \file
/// Random texts and bytes, with fixed seeds: what is read comes back as it was, and what cannot be read is refused.
#include <random>

#include <gtest/gtest.h>

#include "predicate/encoding.h"
#include "predicate/text.h"

namespace tidelane::predicate {
namespace {

using Random = std::mt19937_64;

size_t Below(Random& random, size_t bound) { return random() % bound; }

template <size_t N>
std::string OneOf(Random& random, const char* const (&words)[N]) {
  return words[Below(random, N)];
}

std::string RandomConstant(Random& random) {
  static constexpr const char* kConstants[] = {"0",
                                               "1",
                                               "-1",
                                               "0x7f",
                                               "1.5",
                                               "-0.0",
                                               "1e300",
                                               "1e-310",
                                               ".5",
                                               "inf",
                                               "-inf",
                                               "nan",
                                               "True",
                                               "18446744073709551615",
                                               "-9223372036854775808",
                                               "36893488147419103230",
                                               "0.1L",
                                               "1e19"};
  if (Below(random, 4) == 0) return std::to_string(static_cast<int64_t>(random()));
  return OneOf(random, kConstants);
}

std::string RandomString(Random& random) {
  static constexpr const char* kStrings[] = {"'a'",        "\"b c\"",    "''",
                                             "'\\n\\x00'", "'\xc3\xbc'", "'\\xff'"};
  return OneOf(random, kStrings);
}

// A condition of the grammar.
std::string RandomCondition(Random& random) {
  static constexpr const char* kColumns[] = {"x",  "Energy",   "`a b`", "/g/y.z",
                                             "``", "\xc3\xbc", "`in`"};
  static constexpr const char* kSigns[] = {"==", "=", "!=", "<>", "<", ">", "<=", ">="};
  static constexpr const char* kBelow[] = {"<", "<="};
  const bool texts = Below(random, 4) == 0;
  const auto constant = [&] { return texts ? RandomString(random) : RandomConstant(random); };
  const std::string column = OneOf(random, kColumns);
  switch (Below(random, 6)) {
    case 0: return column + " " + OneOf(random, kSigns) + " " + constant();
    case 1: return constant() + OneOf(random, kSigns) + column;
    case 2: return constant() + OneOf(random, kBelow) + column + OneOf(random, kBelow) + constant();
    case 3:
      return column + (Below(random, 2) ? " not" : "") + " between " + constant() + " and " +
             constant();
    case 4: {
      std::string list = column + (Below(random, 2) ? " NOT in [" : " in [") + constant();
      for (size_t i = Below(random, 5); i > 0; --i) list += ", " + constant();
      return list + "]";
    }
    default: return "isnan(" + column + ")";
  }
}

std::string RandomText(Random& random, int depth) {
  static constexpr const char* kJoins[] = {" and ", " or ", " && ", "|", " & ", " OR "};
  static constexpr const char* kNots[] = {"not ", "!", "~"};
  const size_t kind = depth == 0 ? 0 : Below(random, 5);
  if (kind == 0) return RandomCondition(random);
  if (kind == 1) return OneOf(random, kNots) + RandomText(random, depth - 1);
  if (kind == 2) return "( " + RandomText(random, depth - 1) + ")";
  return RandomText(random, depth - 1) + OneOf(random, kJoins) + RandomText(random, depth - 1);
}

void Mutate(Random& random, std::string& bytes) {
  for (size_t i = 1 + Below(random, 3); i > 0; --i) {
    const size_t at = Below(random, bytes.size() + 1);
    switch (Below(random, 4)) {
      case 0: bytes.insert(at, 1, static_cast<char>(random())); break;
      case 1: bytes.erase(at, Below(random, 4)); break;
      case 2:
        bytes.insert(at, bytes.substr(Below(random, bytes.size() + 1), Below(random, 12)));
        break;
      default:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << Below(random, 8));
    }
  }
}

// What any query promises of its text and its bytes.
void ComesBack(const QueryPtr& query) {
  std::string why;
  const std::string bytes = Encode(*query);
  ASSERT_EQ(bytes.size(), query->encoded_bytes());
  const QueryPtr decoded = Decode(std::as_bytes(std::span(bytes)), why);
  ASSERT_NE(decoded, nullptr) << why;
  ASSERT_EQ(Encode(*decoded), bytes);
  const std::string text = Text(*query);
  if (query->Subjects() != 1) return;
  const QueryPtr parsed = Parse(text, why);
  ASSERT_NE(parsed, nullptr) << text << ": " << why;
  ASSERT_EQ(Text(*parsed), text);
}

TEST(FuzzTest, RandomTextsComeBack) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::string text = RandomText(random, 4);
    std::string why;
    const QueryPtr query = Parse(text, why);
    ASSERT_NE(query, nullptr) << text << ": " << why;
    ASSERT_NO_FATAL_FAILURE(ComesBack(query)) << text;
    ASSERT_EQ(Encode(*Parse(Text(*query), why)), Encode(*query)) << text;
  }
}

TEST(FuzzTest, SpoiltTextsAreReadOrRefused) {
  Random random(2);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = RandomText(random, 3);
    Mutate(random, text);
    std::string why;
    const QueryPtr query = Parse(text, why);
    if (query != nullptr) {
      ASSERT_NO_FATAL_FAILURE(ComesBack(query)) << text;
    } else {
      ++refused;
      ASSERT_TRUE(why.starts_with("at character ")) << text;
    }
  }
  EXPECT_GT(refused, 600);
  EXPECT_LT(refused, 2900);
}

TEST(FuzzTest, SpoiltBytesAreReadOrRefused) {
  Random random(3);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string why;
    std::string bytes = Encode(*Parse(RandomText(random, 3), why));
    Mutate(random, bytes);
    const QueryPtr query = Decode(std::as_bytes(std::span(bytes)), why);
    if (query != nullptr) {
      ASSERT_EQ(Encode(*query), bytes) << "what Encode did not make was read";
      ASSERT_NO_FATAL_FAILURE(ComesBack(query));
    } else {
      ++refused;
      ASSERT_TRUE(why.starts_with("at byte "));
    }
  }
  EXPECT_GT(refused, 600);
  EXPECT_LT(refused, 2970);
}

TEST(FuzzTest, NoiseIsReadOrRefused) {
  Random random(4);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(Below(random, 200), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    std::string why;
    const QueryPtr parsed = Parse(bytes, why);
    if (parsed != nullptr) {
      ASSERT_NO_FATAL_FAILURE(ComesBack(parsed));
    }
    bytes.insert(0, std::string("H5Q1\3\0\0\0", 8));
    const QueryPtr decoded = Decode(std::as_bytes(std::span(bytes)), why);
    if (decoded != nullptr) {
      ASSERT_NO_FATAL_FAILURE(ComesBack(decoded));
    }
  }
}

}  // namespace
}  // namespace tidelane::predicate
