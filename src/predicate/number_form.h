/// \file
/// Which types hold a number exactly: what texts and bytes of queries are made of.
///
/// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "predicate/value.h"

namespace tidelane::predicate {

/// The first of these that holds it. The numbers are those of the encoding (encoding.h), for ever.
enum class NumberForm : uint8_t {
  kNone = 0,    ///< beyond the doubles, or with bits so far below that no double has them
  kInt64 = 1,   ///< not -0
  kUint64 = 2,  ///< above INT64_MAX
  kDouble = 3,  ///< -0, infinities and NaN, too
  kTwoDoubles = 4,
};

struct TwoDoubles {
  double nearest = 0;
  double rest = 0;
};

NumberForm FormOf(Number number);
/// Of one that is finite and not beyond the doubles.
TwoDoubles Split(Number number);

}  // namespace tidelane::predicate
