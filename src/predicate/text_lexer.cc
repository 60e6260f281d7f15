#include "predicate/text_lexer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "predicate/text_number.h"

namespace tidelane::predicate {
namespace {

constexpr Number kInfinity = std::numeric_limits<Number>::infinity();
constexpr Number kNan = std::numeric_limits<Number>::quiet_NaN();

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool IsWord(std::string_view word, std::string_view lower) {
  return std::equal(word.begin(), word.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return Lower(a) == b; });
}

struct Reserved {
  std::string_view word;
  Token::Kind kind;
  Number number = 0;
};

constexpr std::array<Reserved, 10> kReserved = {{
    {"and", Token::Kind::kAnd},
    {"or", Token::Kind::kOr},
    {"not", Token::Kind::kNot},
    {"between", Token::Kind::kBetween},
    {"in", Token::Kind::kIn},
    {"isnan", Token::Kind::kIsNan},
    {"inf", Token::Kind::kConstant, kInfinity},
    {"nan", Token::Kind::kConstant, kNan},
    {"true", Token::Kind::kConstant, 1},
    {"false", Token::Kind::kConstant, 0},
}};

const Reserved* Find(std::string_view word) {
  for (const Reserved& reserved : kReserved) {
    if (IsWord(word, reserved.word)) return &reserved;
  }
  return nullptr;
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = Lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// How many bytes the character at `i` has in UTF-8; 0: it is none.
size_t Utf8Size(std::string_view text, size_t i) {
  const auto at = [&](size_t k) {
    return i + k < text.size() ? static_cast<uint8_t>(text[i + k]) : uint8_t{0};
  };
  const uint8_t first = at(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (size_t k = 1; k < size; ++k) {
    if ((at(k) & 0xc0) != 0x80) return 0;
  }
  // Longer than needed, halves of pairs, beyond the last character.
  if (first == 0xe0 && at(1) < 0xa0) return 0;
  if (first == 0xed && at(1) >= 0xa0) return 0;
  if (first == 0xf0 && at(1) < 0x90) return 0;
  if (first == 0xf4 && at(1) >= 0x90) return 0;
  return size;
}

}  // namespace

bool IsNameByte(char c) {
  return IsDigit(c) || (Lower(c) >= 'a' && Lower(c) <= 'z') || c == '_' || c == '/' || c == '.' ||
         static_cast<uint8_t>(c) >= 0x80;
}

bool IsReserved(std::string_view word) { return Find(word) != nullptr; }

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t size = Utf8Size(text, i);
    if (size == 0) return false;
    i += size;
  }
  return true;
}

std::string Shown(std::string_view part) {
  constexpr size_t kMost = 24;
  constexpr const char* kHex = "0123456789abcdef";
  std::string shown = "'";
  for (size_t i = 0; i < part.size();) {
    if (i >= kMost) {
      shown += "...";
      break;
    }
    const size_t size = Utf8Size(part, i);
    const auto byte = static_cast<uint8_t>(part[i]);
    if (size == 0 || byte < 0x20 || byte == 0x7f) {
      shown += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      ++i;
    } else {
      shown += part.substr(i, size);
      i += size;
    }
  }
  return shown + "'";
}

Token Lexer::Take(Token::Kind kind, size_t size) {
  Token token;
  token.kind = kind;
  token.place = at_;
  token.text = text_.substr(at_, size);
  at_ += size;
  return token;
}

Token Lexer::Fail(size_t place, std::string why) {
  Token token;
  token.kind = Token::Kind::kError;
  token.place = place;
  token.name = std::move(why);
  return token;
}

Token Lexer::Next() {
  while (at_ < text_.size() && std::string_view(" \t\r\n\v\f").find(text_[at_]) != text_.npos)
    ++at_;
  if (at_ >= text_.size()) return Take(Token::Kind::kEnd, 0);
  const char c = text_[at_];
  if (IsDigit(c) || (c == '.' && IsDigit(At(at_ + 1)))) return Number(at_);
  if (IsNameByte(c)) return Word();
  if (c == '`') return QuotedName();
  if (c == '\'' || c == '"') return String();
  if (c == '+' || c == '-') return Sign();
  return Symbol();
}

Token Lexer::Word() {
  size_t size = 1;
  while (at_ + size < text_.size() && IsNameByte(text_[at_ + size])) ++size;
  const std::string_view word = text_.substr(at_, size);
  if (const Reserved* reserved = Find(word)) {
    Token token = Take(reserved->kind, size);
    token.value = reserved->number;
    return token;
  }
  Token token = Take(Token::Kind::kColumn, size);
  token.name = word;
  return token;
}

Token Lexer::QuotedName() {
  const size_t begin = at_;
  std::string name;
  for (size_t i = at_ + 1; i < text_.size(); ++i) {
    if (text_[i] != '`') {
      name += text_[i];
    } else if (At(i + 1) == '`') {
      name += text_[i++];
    } else {
      Token token = Take(Token::Kind::kColumn, i + 1 - begin);
      token.name = std::move(name);
      return token;
    }
  }
  return Fail(begin, "the backquote is not closed");
}

const char* Lexer::Escape(std::string& to) {
  constexpr std::string_view kLetters = "abfnrtv\\'\"";
  constexpr std::string_view kBytes = "\a\b\f\n\r\t\v\\'\"";
  const char c = At(at_ + 1);
  if (const size_t letter = kLetters.find(c); letter != kLetters.npos && at_ + 1 < text_.size()) {
    to += kBytes[letter];
    at_ += 2;
    return nullptr;
  }
  if (c == 'x') {
    const int high = HexDigit(At(at_ + 2));
    const int low = HexDigit(At(at_ + 3));
    if (high < 0 || low < 0) return "two hexadecimal digits are needed after '\\x'";
    to += static_cast<char>(high * 16 + low);
    at_ += 4;
    return nullptr;
  }
  if (c < '0' || c > '7') return "after a backslash comes one of \\ ' \" a b f n r t v x 0-7";
  int byte = 0;
  ++at_;
  for (int digits = 0; digits < 3 && At(at_) >= '0' && At(at_) <= '7'; ++digits) {
    byte = byte * 8 + (text_[at_++] - '0');
  }
  if (byte > 255) return "a byte is at most \\377";
  to += static_cast<char>(byte);
  return nullptr;
}

Token Lexer::String() {
  const size_t begin = at_;
  const char quote = text_[at_++];
  std::string value;
  while (at_ < text_.size() && text_[at_] != quote) {
    if (text_[at_] != '\\') {
      value += text_[at_++];
      continue;
    }
    const size_t place = at_;
    if (at_ + 1 == text_.size()) break;
    if (const char* why = Escape(value)) return Fail(place, why);
  }
  if (at_ >= text_.size() || text_[at_] != quote) return Fail(begin, "the quote is not closed");
  const size_t size = at_ + 1 - begin;
  at_ = begin;
  Token token = Take(Token::Kind::kConstant, size);
  token.value = std::move(value);
  return token;
}

Token Lexer::Sign() {
  const size_t begin = at_;
  const bool minus = text_[at_] == '-';
  size_t after = at_ + 1;
  while (At(after) == ' ' || At(after) == '\t') ++after;
  if (IsDigit(At(after)) || (At(after) == '.' && IsDigit(At(after + 1)))) return Number(after);
  at_ = after;
  if (IsNameByte(At(after))) {
    Token token = Word();
    const Reserved* reserved = Find(token.text);
    if (reserved != nullptr && (reserved->word == "inf" || reserved->word == "nan")) {
      token.value = minus ? -reserved->number : reserved->number;
      token.place = begin;
      token.text = text_.substr(begin, at_ - begin);
      return token;
    }
  }
  return Fail(begin, minus ? "a number is needed after '-': there is no arithmetic in queries"
                           : "a number is needed after '+': there is no arithmetic in queries");
}

Token Lexer::Number(size_t begin) {
  const size_t sign = at_;
  const NumberRead read = ReadNumber(text_.substr(begin));
  if (read.why != nullptr) return Fail(begin, read.why);
  const size_t end = begin + read.size;
  if (IsNameByte(At(end)) && end < text_.size()) {
    size_t rest = end;
    while (rest < text_.size() && IsNameByte(text_[rest])) ++rest;
    return Fail(begin, Shown(text_.substr(begin, rest - begin)) +
                           " is no number (and a name that begins with a digit needs backquotes)");
  }
  Token token = Take(Token::Kind::kConstant, end - at_);
  const bool minus = text_[sign] == '-';
  // An integer has no negative zero.
  const bool integer =
      token.text.find('.') == token.text.npos && token.text.find_first_of("eE") == token.text.npos;
  const bool zero =
      read.number == 0 && (integer || token.text.find_first_of("xX") != token.text.npos);
  token.value = minus && !zero ? -read.number : read.number;
  return token;
}

Token Lexer::Symbol() {
  struct Spelling {
    std::string_view text;
    Token::Kind kind;
    Comparison comparison = Comparison::kEqual;
  };
  // The longest first.
  static constexpr std::array<Spelling, 19> kSpellings = {{
      {"==", Token::Kind::kCompare, Comparison::kEqual},
      {"!=", Token::Kind::kCompare, Comparison::kNotEqual},
      {"<>", Token::Kind::kCompare, Comparison::kNotEqual},
      {"<=", Token::Kind::kCompare, Comparison::kLessEqual},
      {">=", Token::Kind::kCompare, Comparison::kGreaterEqual},
      {"&&", Token::Kind::kAnd},
      {"||", Token::Kind::kOr},
      {"=", Token::Kind::kCompare, Comparison::kEqual},
      {"<", Token::Kind::kCompare, Comparison::kLess},
      {">", Token::Kind::kCompare, Comparison::kGreater},
      {"&", Token::Kind::kAnd},
      {"|", Token::Kind::kOr},
      {"!", Token::Kind::kNot},
      {"~", Token::Kind::kNot},
      {"(", Token::Kind::kOpen},
      {")", Token::Kind::kClose},
      {"[", Token::Kind::kOpenList},
      {"]", Token::Kind::kCloseList},
      {",", Token::Kind::kComma},
  }};
  const std::string_view rest = text_.substr(at_);
  for (const Spelling& spelling : kSpellings) {
    if (rest.starts_with(spelling.text)) {
      Token token = Take(spelling.kind, spelling.text.size());
      token.comparison = spelling.comparison;
      return token;
    }
  }
  return Take(Token::Kind::kOther, 1);
}

}  // namespace tidelane::predicate
