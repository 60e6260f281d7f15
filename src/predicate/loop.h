/// \file
/// What a loop over numbers is: it says which elements are in an interval, 64 at a time.
///
/// Floats are compared as integers too, which is as fast, and leaves the program's floating-point environment alone: a comparison of
/// NaN may trap in a program that asked for it, and small numbers are 0 in one compiled with -ffast-math.
///
/// Elements are made integers whose order is that of their values. Then `e` is in [low, high] exactly if e - low is at most
/// high - low, both without sign and modulo 2^bits: one comparison. As processors compare with sign, half of the range is
/// subtracted from both sides: e - bias <= limit.
///
/// Invariant: nothing is read beyond the elements; a last word's bits beyond `count` are 0. Thread safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidelane::predicate {

struct Range {
  uint64_t bias = 0;
  uint64_t limit = 0;
  bool inside = true;  ///< else those outside of it match
};

/// How an element becomes an integer.
struct Shape {
  unsigned size = 1;  ///< bytes: 1, 2, 4, 8
  bool swapped = false;
  /// A float: negative ones are sign and magnitude, and become ~magnitude (-0: -1). Otherwise bits as they are.
  bool magnitudes = false;
};

/// `words` gets ceil(count / 64) words; nullptr: only the number of matches is wanted, which is returned.
using Loop = uint64_t (*)(const unsigned char* elements, size_t count, const Range& range,
                          uint64_t* words);

}  // namespace tidelane::predicate
