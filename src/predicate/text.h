/// \file
/// A query as people write it: `Energy > 1.9 and (x < 3 or not y == 0)`.
///
///     or        = and { ("or" | "||" | "|") and }
///     and       = not { ("and" | "&&" | "&") not }
///     not       = ("not" | "!" | "~") not | "(" or ")" | condition
///     condition = column op constant | constant op column | constant op column op constant     (0 <= x < 3; ops of one direction)
///               | column ["not"] "between" constant "and" constant
///               | column ["not"] "in" ("(" | "[") constant { "," constant } (")" | "]")
///               | "isnan" "(" column ")"
///     op        = "==" "=" "!=" "<>" "<" "<=" ">" ">="
///     column    = letters, digits, "_", "/", "." (first no digit), or anything between backquotes (`` stands for one)
///     constant  = integer (decimal, 0x), decimal number with exponent, [+-] inf, nan, True, False, 'text' or "text" with Python's simple escapes
///
/// Words of the grammar are known in any case (AND, Not), and columns of those names need backquotes. Nothing is evaluated: there is no
/// arithmetic, and no function but isnan, which is what is not between -inf and inf.
///
/// Integers of 64 bits are exact; larger ones are the nearest Number, and an error beyond the doubles. A decimal number is the nearest double, as in
/// Python (infinity or 0 beyond its range), whatever the locale; with an L behind it, the nearest Number. \xhh and \ooo are bytes; any
/// other byte stands for itself.
///
/// Chains of "and" or "or", and lists, become trees as flat as possible. Characters are counted as in UTF-8, from 1 on.
///
/// Invariant: a text is at most kMostText long, a query at most as large as query.h says; any bytes may be given.
/// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "predicate/query.h"

namespace tidelane::predicate {

inline constexpr size_t kMostText = 1u << 20;  // bytes

/// nullptr, with the reason and the place ("at character 7: ...") in `why`.
QueryPtr Parse(std::string_view text, std::string& why);

/// A text that parses to the same query, of those about elements, without types, and if it is not longer than kMostText; else one for people.
std::string Text(const Query& query);

}  // namespace tidelane::predicate
