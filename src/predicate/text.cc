/// \file
/// The parser: a function for each production, recursive at most kMostDepth times.
///
/// Invariant: nodes, names and constants are counted before they are kept, so that memory is bounded whatever the text says.
/// Thread safety: text.h.
#include "predicate/text.h"

#include <limits>
#include <utility>
#include <vector>

#include "predicate/text_lexer.h"

namespace tidelane::predicate {
namespace {

using Kind = Token::Kind;

// What the comparison is when its sides are exchanged.
Comparison Turned(Comparison comparison) {
  switch (comparison) {
    case Comparison::kLess: return Comparison::kGreater;
    case Comparison::kGreater: return Comparison::kLess;
    case Comparison::kLessEqual: return Comparison::kGreaterEqual;
    case Comparison::kGreaterEqual: return Comparison::kLessEqual;
    default: return comparison;
  }
}

bool IsLess(Comparison comparison) {
  return comparison == Comparison::kLess || comparison == Comparison::kLessEqual;
}

bool IsGreater(Comparison comparison) {
  return comparison == Comparison::kGreater || comparison == Comparison::kGreaterEqual;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), lexer_(text) {}

  QueryPtr Parse(std::string& why) {
    QueryPtr query;
    if (text_.size() > kMostText) {
      FailAt(kMostText, "a text is at most " + std::to_string(kMostText) + " bytes long");
    } else {
      Next();
      query = Or();
      if (query != nullptr && token_.kind != Kind::kEnd) query = NotTheEnd();
    }
    if (query == nullptr) why = std::move(why_);
    return query;
  }

 private:
  // The first reason counts.
  std::nullptr_t FailAt(size_t place, const std::string& reason) {
    if (!why_.empty()) return nullptr;
    size_t character = 1;
    for (const char c : text_.substr(0, place))
      character += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
    why_ = "at character " + std::to_string(character) + ": " + reason;
    return nullptr;
  }

  std::nullptr_t Fail(const std::string& reason) {
    return token_.kind == Kind::kError ? FailAt(token_.place, token_.name)
                                       : FailAt(token_.place, reason);
  }

  // "..., not 'what stands there'".
  std::nullptr_t Needed(const std::string& what) {
    return Fail(
        what + (token_.kind == Kind::kEnd ? ", but the text ends" : ", not " + Shown(token_.text)));
  }

  QueryPtr NotTheEnd() {
    if (token_.kind == Kind::kClose) return Fail("there is no '(' for this ')'");
    if (token_.kind == Kind::kCompare) {
      return Fail("comparisons follow each other only as in 0 <= x < 3");
    }
    return Needed("'and' or 'or' is needed between conditions");
  }

  void Next() { token_ = lexer_.Next(); }

  bool Accept(Kind kind) {
    if (token_.kind != kind) return false;
    Next();
    return true;
  }

  // "and", "not"; not their signs.
  bool IsInWords(Kind kind) const { return token_.kind == kind && token_.text.size() == 3; }

  // Counts what was made; nullptr: it was not made, or there are too many.
  QueryPtr Made(QueryPtr query) {
    if (query == nullptr) return FailAt(place_, "the query is nested too deeply, or too large");
    nodes_ += 1;
    if (query->kind() == Query::Kind::kCondition) bytes_ += query->encoded_bytes();
    if (nodes_ > kMostNodes) {
      return FailAt(place_, "a query has at most " + std::to_string(kMostNodes) + " parts");
    }
    if (bytes_ > kMostEncoded) {
      return FailAt(place_, "names and constants come to more than " +
                                std::to_string(kMostEncoded) + " bytes");
    }
    return query;
  }

  // Of many parts as flat a tree as there is: a long list is not deep.
  QueryPtr Joined(Query::Kind kind, const std::vector<QueryPtr>& parts, size_t begin, size_t end) {
    if (end - begin == 1) return parts[begin];
    const size_t middle = begin + (end - begin + 1) / 2;
    QueryPtr left = Joined(kind, parts, begin, middle);
    QueryPtr right = left != nullptr ? Joined(kind, parts, middle, end) : nullptr;
    if (right == nullptr) return nullptr;
    return Made(kind == Query::Kind::kAnd ? Query::And(std::move(left), std::move(right))
                                          : Query::Or(std::move(left), std::move(right)));
  }

  QueryPtr Or() {
    std::vector<QueryPtr> parts;
    do {
      parts.push_back(And());
      if (parts.back() == nullptr) return nullptr;
    } while (Accept(Kind::kOr));
    return Joined(Query::Kind::kOr, parts, 0, parts.size());
  }

  QueryPtr And() {
    std::vector<QueryPtr> parts;
    do {
      parts.push_back(Not());
      if (parts.back() == nullptr) return nullptr;
    } while (Accept(Kind::kAnd));
    return Joined(Query::Kind::kAnd, parts, 0, parts.size());
  }

  bool Nest() {
    if (++nesting_ <= kMostDepth) return true;
    Fail("nested deeper than " + std::to_string(kMostDepth));
    return false;
  }

  QueryPtr Not() {
    size_t times = 0;
    for (; token_.kind == Kind::kNot; Next(), ++times) {
      if (!Nest()) return nullptr;
    }
    QueryPtr query = token_.kind == Kind::kOpen ? Group() : Atom();
    for (size_t i = 0; i < times && query != nullptr; ++i)
      query = Made(Query::Not(std::move(query)));
    nesting_ -= times;
    return query;
  }

  QueryPtr Group() {
    if (!Nest()) return nullptr;
    const size_t open = token_.place;
    Next();
    QueryPtr query = Or();
    if (query == nullptr) return nullptr;
    if (token_.kind == Kind::kEnd) return FailAt(open, "the '(' is not closed");
    if (token_.kind != Kind::kClose) return NotTheEnd();
    Next();
    --nesting_;
    return query;
  }

  QueryPtr Atom() {
    place_ = token_.place;
    switch (token_.kind) {
      case Kind::kColumn: return OfColumn();
      case Kind::kConstant: return OfConstant();
      case Kind::kIsNan: return IsNan();
      case Kind::kBetween:
      case Kind::kIn:
        return Fail("a condition is needed, such as x > 3, not " + Shown(token_.text) +
                    " (a column of that name goes in backquotes)");
      default: return Needed("a condition is needed, such as x > 3");
    }
  }

  QueryPtr Of(const std::string& column, Comparison comparison, std::vector<Value> values) {
    if (column.size() > kMostName) {
      return FailAt(place_, "a name is at most " + std::to_string(kMostName) + " bytes long");
    }
    return Made(Query::Of(Subject::kElement, column, {comparison, std::move(values)}));
  }

  // Takes a constant; false: there is none, or one of the other sort than `like`.
  bool Constant(Value& to, const std::string& after, const Value* like = nullptr) {
    if (token_.kind != Kind::kConstant) {
      Needed("a number or a text in quotes is needed after " + after);
      return false;
    }
    if (like != nullptr && like->index() != token_.value.index()) {
      Fail("numbers and texts are not compared with each other");
      return false;
    }
    to = std::move(token_.value);
    Next();
    return true;
  }

  QueryPtr OfColumn() {
    const std::string column = std::move(token_.name);
    const std::string_view written = token_.text;
    Next();
    if (token_.kind == Kind::kCompare) {
      const Comparison comparison = token_.comparison;
      const std::string after = Shown(token_.text);
      Next();
      std::vector<Value> values(1);
      if (!Constant(values[0], after)) return nullptr;
      return Of(column, comparison, std::move(values));
    }
    const bool negated = IsInWords(Kind::kNot);
    if (negated) Next();
    QueryPtr query;
    if (token_.kind == Kind::kBetween) {
      query = Between(column);
    } else if (token_.kind == Kind::kIn) {
      query = In(column);
    } else if (negated) {
      return Needed("'between' or 'in' is needed after 'not'");
    } else {
      return NoComparison(written);
    }
    return negated && query != nullptr ? Made(Query::Not(std::move(query))) : query;
  }

  QueryPtr NoComparison(std::string_view column) {
    if (token_.kind == Kind::kOpen) {
      return Fail("there is no function " + Shown(column) + ": the only one is isnan");
    }
    const bool arithmetic = !token_.text.empty() && std::string_view("+-*/%^").find(
                                                        token_.text[0]) != std::string_view::npos;
    if (arithmetic && token_.kind != Kind::kError) return Fail("there is no arithmetic in queries");
    return Needed("a comparison is needed after " + Shown(column));
  }

  QueryPtr Between(const std::string& column) {
    std::vector<Value> values(2);
    Next();
    if (!Constant(values[0], "'between'")) return nullptr;
    if (!IsInWords(Kind::kAnd))
      return Needed("'and' and a second constant are needed after 'between'");
    const std::string after = Shown(token_.text);
    Next();
    if (!Constant(values[1], after, &values[0])) return nullptr;
    return Of(column, Comparison::kBetween, std::move(values));
  }

  QueryPtr In(const std::string& column) {
    Next();
    if (token_.kind != Kind::kOpen && token_.kind != Kind::kOpenList) {
      return Needed("a list is needed after 'in', such as (1, 2, 3)");
    }
    const Kind close = token_.kind == Kind::kOpen ? Kind::kClose : Kind::kCloseList;
    std::string after = Shown(token_.text);
    Next();
    std::vector<QueryPtr> parts;
    std::vector<Value> values(1);
    Value like;
    do {
      if (!Constant(values[0], after, parts.empty() ? nullptr : &like)) return nullptr;
      if (parts.empty()) like = values[0];
      parts.push_back(Of(column, Comparison::kEqual, values));
      if (parts.back() == nullptr) return nullptr;
      after = "','";
    } while (Accept(Kind::kComma));
    if (token_.kind != close) {
      return Needed(close == Kind::kClose ? "',' or ')' is needed in a list"
                                          : "',' or ']' is needed in a list");
    }
    Next();
    return Joined(Query::Kind::kOr, parts, 0, parts.size());
  }

  QueryPtr OfConstant() {
    Value first = std::move(token_.value);
    const std::string written = Shown(token_.text);
    Next();
    if (token_.kind != Kind::kCompare) return Needed("a comparison is needed after " + written);
    const Comparison before = token_.comparison;
    std::string after = Shown(token_.text);
    Next();
    if (token_.kind == Kind::kConstant) {
      return Fail("a column is needed after " + after +
                  ": constants are not compared with each other");
    }
    if (token_.kind != Kind::kColumn) return Needed("a column is needed after " + after);
    const std::string column = std::move(token_.name);
    Next();
    if (token_.kind != Kind::kCompare) return Of(column, Turned(before), {std::move(first)});
    const Comparison behind = token_.comparison;
    if (!(IsLess(before) && IsLess(behind)) && !(IsGreater(before) && IsGreater(behind))) {
      return Fail("two comparisons of a column are of one direction, as in 0 <= x < 3");
    }
    after = Shown(token_.text);
    Next();
    Value second;
    if (!Constant(second, after, &first)) return nullptr;
    return Range(column, before, std::move(first), behind, std::move(second));
  }

  QueryPtr Range(const std::string& column, Comparison before, Value first, Comparison behind,
                 Value second) {
    if (before == Comparison::kLessEqual && behind == before) {
      return Of(column, Comparison::kBetween, {std::move(first), std::move(second)});
    }
    if (before == Comparison::kGreaterEqual && behind == before) {
      return Of(column, Comparison::kBetween, {std::move(second), std::move(first)});
    }
    QueryPtr left = Of(column, Turned(before), {std::move(first)});
    QueryPtr right = left != nullptr ? Of(column, behind, {std::move(second)}) : nullptr;
    return right != nullptr ? Made(Query::And(std::move(left), std::move(right))) : nullptr;
  }

  // What is not between the infinities, which are numbers here.
  QueryPtr IsNan() {
    constexpr Number kInfinity = std::numeric_limits<Number>::infinity();
    Next();
    if (token_.kind != Kind::kOpen) return Needed("'(' is needed after 'isnan'");
    Next();
    if (token_.kind != Kind::kColumn) return Needed("a column is needed in isnan(...)");
    const std::string column = std::move(token_.name);
    Next();
    if (token_.kind != Kind::kClose) return Needed("')' is needed after the column of isnan");
    Next();
    QueryPtr numbers = Of(column, Comparison::kBetween, {-kInfinity, kInfinity});
    return numbers != nullptr ? Made(Query::Not(std::move(numbers))) : nullptr;
  }

  const std::string_view text_;
  Lexer lexer_;
  Token token_;
  size_t place_ = 0;  // of the condition
  size_t nodes_ = 0;
  size_t bytes_ = 0;
  size_t nesting_ = 0;
  std::string why_;
};

}  // namespace

QueryPtr Parse(std::string_view text, std::string& why) { return Parser(text).Parse(why); }

}  // namespace tidelane::predicate
