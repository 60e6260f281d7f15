#include "predicate/number_form.h"

#include <cmath>
#include <limits>

namespace tidelane::predicate {

TwoDoubles Split(Number number) {
  TwoDoubles two;
  two.nearest = static_cast<double>(number);
  two.rest = static_cast<double>(number - static_cast<Number>(two.nearest));
  return two;
}

NumberForm FormOf(Number number) {
  constexpr Number kTwoTo63 = 9223372036854775808.0L;
  if (!std::isfinite(number)) return NumberForm::kDouble;
  if (std::trunc(number) == number && !(number == 0 && std::signbit(number))) {
    if (number >= -kTwoTo63 && number < kTwoTo63) return NumberForm::kInt64;
    if (number >= kTwoTo63 && number < 2 * kTwoTo63) return NumberForm::kUint64;
  }
  if (std::fabs(number) > static_cast<Number>(std::numeric_limits<double>::max())) {
    return NumberForm::kNone;
  }
  const TwoDoubles two = Split(number);
  if (static_cast<Number>(two.nearest) == number) return NumberForm::kDouble;
  if (static_cast<Number>(two.nearest) + static_cast<Number>(two.rest) == number) {
    return NumberForm::kTwoDoubles;
  }
  return NumberForm::kNone;
}

}  // namespace tidelane::predicate
