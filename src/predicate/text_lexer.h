/// \file
/// The words of a query's text, one after another.
///
/// Invariant: Next moves on, or gives the end, or an error; what it gives lies in the text.
/// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "predicate/value.h"

namespace tidelane::predicate {

struct Token {
  enum class Kind : uint8_t {
    kEnd,
    kError,     ///< `name` says why
    kColumn,    ///< `name`
    kConstant,  ///< `value`
    kCompare,   ///< `comparison`
    kAnd,
    kOr,
    kNot,
    kBetween,
    kIn,
    kIsNan,
    kOpen,
    kClose,
    kOpenList,
    kCloseList,
    kComma,
    kOther,  ///< a character that no query has
  };

  Kind kind = Kind::kEnd;
  size_t place = 0;       ///< of its first byte
  std::string_view text;  ///< as it is written
  std::string name;
  Value value;
  Comparison comparison = Comparison::kEqual;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token Next();

 private:
  char At(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  Token Take(Token::Kind kind, size_t size);
  Token Fail(size_t place, std::string why);
  Token Word();
  Token QuotedName();
  Token String();
  /// Returns what is wrong; nullptr: nothing.
  const char* Escape(std::string& to);
  Token Sign();
  Token Number(size_t begin);
  Token Symbol();

  std::string_view text_;
  size_t at_ = 0;
};

/// Whether a byte belongs to names that need no quotes; those of UTF-8 beyond ASCII do.
bool IsNameByte(char c);
/// Whether a word is one of the grammar's, in any case.
bool IsReserved(std::string_view word);
/// Whether all of it is UTF-8.
bool IsUtf8(std::string_view text);
/// A part of a text between quotes, for people: shortened, and bytes that cannot be shown as \xhh.
std::string Shown(std::string_view part);

}  // namespace tidelane::predicate
