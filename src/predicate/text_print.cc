/// \file
/// A query's text.
///
/// Invariant: parentheses stand where the parser would have built another tree without them.
/// Thread safety: text.h.
#include <cmath>
#include <cstdint>

#include "predicate/text.h"
#include "predicate/text_lexer.h"
#include "predicate/text_number.h"

namespace tidelane::predicate {
namespace {

using Kind = Query::Kind;

const char* Sign(Comparison comparison) {
  switch (comparison) {
    case Comparison::kEqual: return " == ";
    case Comparison::kNotEqual: return " != ";
    case Comparison::kLess: return " < ";
    case Comparison::kGreater: return " > ";
    case Comparison::kLessEqual: return " <= ";
    case Comparison::kGreaterEqual: return " >= ";
    default: return " between ";
  }
}

std::string Quoted(const std::string& bytes) {
  constexpr const char* kHex = "0123456789abcdef";
  const bool utf8 = IsUtf8(bytes);
  std::string text = "'";
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !utf8)) {
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      if (c == '\'' || c == '\\') text += '\\';
      text += c;
    }
  }
  return text + "'";
}

std::string ConstantText(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return Quoted(*text);
  return NumberText(std::get<Number>(value));
}

std::string ColumnText(const std::string& name) {
  bool plain = !name.empty() && !IsReserved(name) && !(name[0] >= '0' && name[0] <= '9');
  if (name.size() > 1 && name[0] == '.' && name[1] >= '0' && name[1] <= '9') plain = false;
  for (const char c : name) plain = plain && IsNameByte(c);
  if (plain) return name;
  std::string text = "`";
  for (const char c : name) text.append(c == '`' ? 2 : 1, c);
  return text + '`';
}

std::string SubjectText(const Query& query) {
  switch (query.subject()) {
    case Subject::kAttributeValue: return "attribute " + ColumnText(query.name());
    case Subject::kAttributeName: return "attribute name";
    case Subject::kLinkName: return "link name";
    default: return ColumnText(query.name());
  }
}

// What isnan(x) is the opposite of.
bool IsAnyNumber(const Query& query) {
  if (query.kind() != Kind::kCondition || query.subject() != Subject::kElement) return false;
  const auto& [comparison, values] = query.condition();
  if (comparison != Comparison::kBetween) return false;
  const auto* low = std::get_if<Number>(values.data());
  const auto* high = std::get_if<Number>(&values[1]);
  return low != nullptr && high != nullptr && std::isinf(*low) && *low < 0 && std::isinf(*high) &&
         *high > 0;
}

// How many parts of "a and b and c" a tree has that the parser made of such a text; 0: it would have made another one.
size_t FlatParts(const Query& query, Kind kind) {
  if (query.kind() != kind) return 1;
  const size_t left = FlatParts(*query.left(), kind);
  const size_t right = left != 0 ? FlatParts(*query.right(), kind) : 0;
  return right != 0 && (left == right || left == right + 1) ? left + right : 0;
}

void Print(const Query& query, std::string& to);

void PrintPart(const Query& query, bool parentheses, std::string& to) {
  if (parentheses) to += '(';
  Print(query, to);
  if (parentheses) to += ')';
}

// `flat`: parts of the same kind need no parentheses.
void PrintJoined(const Query& query, bool flat, std::string& to) {
  const Kind kind = query.kind();
  const auto part = [&](const Query& of) {
    if (of.kind() == kind && flat) {
      PrintJoined(of, true, to);
    } else {
      PrintPart(of, of.kind() == kind || (kind == Kind::kAnd && of.kind() == Kind::kOr), to);
    }
  };
  part(*query.left());
  to += kind == Kind::kAnd ? " and " : " or ";
  part(*query.right());
}

void Print(const Query& query, std::string& to) {
  switch (query.kind()) {
    case Kind::kCondition: {
      const Condition& condition = query.condition();
      to += SubjectText(query) + Sign(condition.comparison) + ConstantText(condition.values[0]);
      if (condition.values.size() > 1) to += " and " + ConstantText(condition.values[1]);
      return;
    }
    case Kind::kNot: {
      const Query& of = *query.left();
      if (IsAnyNumber(of)) {
        to += "isnan(" + ColumnText(of.name()) + ")";
        return;
      }
      to += "not ";
      PrintPart(of, of.kind() == Kind::kAnd || of.kind() == Kind::kOr, to);
      return;
    }
    default: PrintJoined(query, FlatParts(query, query.kind()) != 0, to);
  }
}

}  // namespace

std::string Text(const Query& query) {
  std::string text;
  Print(query, text);
  return text;
}

}  // namespace tidelane::predicate
