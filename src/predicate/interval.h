/// \file
/// The numbers that fulfil a condition, as an interval of the integers that stand for an element type's values.
///
/// An integer stands for itself. A float stands for the integer that counts the values from 0 to it: 0 and -0 are 0, the smallest
/// positive number is 1, and so on to infinity; negative numbers likewise below 0. NaN is beyond both infinities.
/// long double has no such integers here.
///
/// Invariant: exact; the program's floating-point environment neither matters nor changes. Thread safety: any thread.
#pragma once

#include <cstdint>

#include "predicate/element_type.h"
#include "predicate/value.h"

namespace tidelane::predicate {

struct Interval {
  uint64_t low = 0;   ///< two's complement, of signed integers and floats
  uint64_t high = 0;  ///< belongs to it
  bool empty = false;
  bool whole = false;  ///< every element is in it, NaN included
};

/// As Interval, of the machine's long double; empty: low is not below or equal to high.
struct LongInterval {
  Number low = 0;
  Number high = 0;
};

/// A comparison with one constant, or with the two ends of kBetween. That of kNotEqual is what does not match.
struct Bounds {
  Comparison comparison = Comparison::kEqual;
  Number first = 0;
  Number second = 0;  ///< of kBetween
};

Interval IntervalOf(const Bounds& bounds, const ElementType& type, Constants constants);
LongInterval LongIntervalOf(const Bounds& bounds);

/// Bits of an element's value, mantissa without its hidden bit, of a floating type.
struct FloatFormat {
  unsigned bits = 0;
  unsigned mantissa = 0;
};
FloatFormat FormatOf(const ElementType& type);

}  // namespace tidelane::predicate
