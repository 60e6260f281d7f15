/// \file
/// Constants that elements are compared with, and the comparisons.
///
/// Invariant: a number is exact, whichever integer or floating type it was given in: a `long double` has
/// at least 64 bits of mantissa. Thread safety: values.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace tidelane::predicate {

using Number = long double;
static_assert(std::numeric_limits<Number>::digits >= 64, "int64 and uint64 must be exact");

/// Strings are compared byte by byte, as strcmp does but for null bytes, which count.
using Value = std::variant<Number, std::string>;

/// The numbers are those of the encoding (encoding.h), for ever.
enum class Comparison : uint8_t {
  kEqual = 0,
  kNotEqual = 1,
  kLess = 2,
  kGreater = 3,
  kLessEqual = 4,
  kGreaterEqual = 5,
  kBetween = 6,  ///< both ends belong to it
};

/// An element against constants: one; two for kBetween.
///
/// NaN is unequal to everything, and neither smaller nor greater; -0 equals 0.
struct Condition {
  Comparison comparison = Comparison::kEqual;
  std::vector<Value> values;
};

/// What a number stands for that elements of a narrower floating type are compared with.
enum class Constants : uint8_t {
  kExact,      ///< itself: no float equals 0.1
  kOfElement,  ///< the nearest number of the element's type, as for NumPy and a Python number (0.1 finds what was stored as 0.1)
};

}  // namespace tidelane::predicate
