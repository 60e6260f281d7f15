/// \file
/// Intervals by exact arithmetic on long double, which has every constant and every element's value.
///
/// Thread safety: any thread.
#include "predicate/interval.h"

#include <cfenv>
#include <cmath>
#include <limits>
#include <numeric>

namespace tidelane::predicate {
namespace {

constexpr Number kInfinity = std::numeric_limits<Number>::infinity();

// A program may round otherwise, trap overflows or flush small numbers to 0.
class DefaultArithmetic {
 public:
  DefaultArithmetic() {
    std::fegetenv(&programs_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&programs_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t programs_;
};

bool BoundsBelow(Comparison comparison) {
  return comparison != Comparison::kLess && comparison != Comparison::kLessEqual;
}

bool BoundsAbove(Comparison comparison) {
  return comparison != Comparison::kGreater && comparison != Comparison::kGreaterEqual;
}

Number UpperConstant(const Bounds& bounds) {
  return bounds.comparison == Comparison::kBetween ? bounds.second : bounds.first;
}

bool HasNan(const Bounds& bounds) {
  return std::isnan(bounds.first) || std::isnan(UpperConstant(bounds));
}

Interval Integers(const Bounds& bounds, unsigned bits, bool is_signed) {
  const Number least = is_signed ? -std::ldexp(Number{1}, static_cast<int>(bits) - 1) : Number{0};
  const Number most = std::ldexp(Number{1}, static_cast<int>(bits) - (is_signed ? 1 : 0)) - 1;
  Number low = least;
  Number high = most;
  // Where adding 1 is not exact, the constant is beyond all elements.
  if (BoundsBelow(bounds.comparison)) {
    low = bounds.comparison == Comparison::kGreater ? std::floor(bounds.first) + 1
                                                    : std::ceil(bounds.first);
  }
  if (BoundsAbove(bounds.comparison)) {
    const Number constant = UpperConstant(bounds);
    high = bounds.comparison == Comparison::kLess ? std::ceil(constant) - 1 : std::floor(constant);
  }
  Interval interval;
  if (low > high || low > most || high < least) {
    interval.empty = true;
    return interval;
  }
  interval.whole = low <= least && high >= most;
  low = std::fmax(low, least);
  high = std::fmin(high, most);
  const auto bits_of = [](Number value) {
    return value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value))
                     : static_cast<uint64_t>(value);
  };
  interval.low = bits_of(low);
  interval.high = bits_of(high);
  return interval;
}

/// The values of a floating type, counted.
class Floats {
 public:
  explicit Floats(FloatFormat format) : format_(format) {}

  int64_t Infinity() const {
    return static_cast<int64_t>(((uint64_t{1} << (format_.bits - 1 - format_.mantissa)) - 1)
                                << format_.mantissa);
  }

  Number Value(int64_t key) const {
    if (key == Infinity()) return kInfinity;
    return key == -Infinity() ? -kInfinity : Finite(key);
  }

  /// The least whose value is `constant` or more; one beyond infinity: none.
  int64_t AtLeast(Number constant) const {
    return First([&](Number value) { return value >= constant; });
  }
  int64_t Beyond(Number constant) const {
    return First([&](Number value) { return value > constant; });
  }

  /// Ties to even; what overflows to infinity.
  Number Nearest(Number constant) const {
    if (std::isnan(constant) || std::isinf(constant)) return constant;
    const int64_t above = AtLeast(constant);
    if (Value(above) == constant) return constant;
    const Number middle = (Finite(above - 1) + Finite(above)) / 2;
    const bool down = constant < middle || (constant == middle && above % 2 != 0);
    return Value(down ? above - 1 : above);
  }

 private:
  /// Infinity's is the power of two that would follow the largest number, as rounding needs it.
  Number Finite(int64_t key) const {
    const auto magnitude = static_cast<uint64_t>(key < 0 ? -key : key);
    const auto exponent = static_cast<int>(magnitude >> format_.mantissa);
    uint64_t mantissa = magnitude & ((uint64_t{1} << format_.mantissa) - 1);
    if (exponent != 0) mantissa |= uint64_t{1} << format_.mantissa;
    const int bias = (1 << (format_.bits - 2 - format_.mantissa)) - 1;
    const int scale = (exponent != 0 ? exponent : 1) - bias - static_cast<int>(format_.mantissa);
    const Number value = std::ldexp(static_cast<Number>(mantissa), scale);
    return key < 0 ? -value : value;
  }

  template <class Holds>
  int64_t First(Holds holds) const {
    int64_t begin = -Infinity();
    int64_t end = Infinity() + 1;
    while (begin < end) {
      const int64_t middle = std::midpoint(begin, end);
      if (holds(Value(middle))) {
        end = middle;
      } else {
        begin = middle + 1;
      }
    }
    return begin;
  }

  FloatFormat format_;
};

Interval FloatsOf(Bounds bounds, FloatFormat format, Constants constants) {
  const Floats floats(format);
  if (constants == Constants::kOfElement) {
    bounds.first = floats.Nearest(bounds.first);
    bounds.second = floats.Nearest(bounds.second);
  }
  int64_t low = -floats.Infinity();
  int64_t high = floats.Infinity();
  if (BoundsBelow(bounds.comparison)) {
    low = bounds.comparison == Comparison::kGreater ? floats.Beyond(bounds.first)
                                                    : floats.AtLeast(bounds.first);
  }
  if (BoundsAbove(bounds.comparison)) {
    const Number constant = UpperConstant(bounds);
    high = (bounds.comparison == Comparison::kLess ? floats.AtLeast(constant)
                                                   : floats.Beyond(constant)) -
           1;
  }
  Interval interval;
  interval.empty = low > high;
  interval.low = static_cast<uint64_t>(low);
  interval.high = static_cast<uint64_t>(high);
  return interval;
}

}  // namespace

FloatFormat FormatOf(const ElementType& type) {
  if (type.kind == ElementType::Kind::kBrainFloat) return {16, 7};
  if (type.size == 2) return {16, 10};
  return type.size == 4 ? FloatFormat{32, 23} : FloatFormat{64, 52};
}

Interval IntervalOf(const Bounds& bounds, const ElementType& type, Constants constants) {
  const DefaultArithmetic arithmetic;
  if (HasNan(bounds)) return {.empty = true};
  if (type.is_float()) return FloatsOf(bounds, FormatOf(type), constants);
  return Integers(bounds, type.size * 8, type.kind == ElementType::Kind::kSigned);
}

LongInterval LongIntervalOf(const Bounds& bounds) {
  const DefaultArithmetic arithmetic;
  constexpr LongInterval kEmpty = {1, 0};
  if (HasNan(bounds)) return kEmpty;
  LongInterval interval = {-kInfinity, kInfinity};
  if (BoundsBelow(bounds.comparison)) interval.low = bounds.first;
  if (BoundsAbove(bounds.comparison)) interval.high = UpperConstant(bounds);
  if (bounds.comparison == Comparison::kGreater) {
    if (bounds.first == kInfinity) return kEmpty;
    interval.low = std::nextafter(bounds.first, kInfinity);
  }
  if (bounds.comparison == Comparison::kLess) {
    if (bounds.first == -kInfinity) return kEmpty;
    interval.high = std::nextafter(bounds.first, -kInfinity);
  }
  return interval;
}

}  // namespace tidelane::predicate
