/// \file
/// What elements of a column are in memory, as far as comparing them needs to know.
///
/// Invariant: `size` is in bytes, and fits `kind`. Thread safety: a value.
#pragma once

#include <cstdint>

namespace tidelane::predicate {

struct ElementType {
  enum class Kind : uint8_t {
    kSigned,          ///< two's complement; 1, 2, 4 or 8 bytes
    kUnsigned,        ///< likewise
    kFloat,           ///< IEEE 754 of 2, 4 or 8 bytes; sizeof(long double): the machine's own
    kBrainFloat,      ///< 2 bytes: the upper half of a float
    kFixedString,     ///< `size` bytes, padded as `pad` says
    kVariableString,  ///< a `const char*` each, as HDF5 reads them; nullptr is the empty string
  };
  /// How a fixed string ends: at the first null, before the nulls or the spaces at its end, or with its bytes.
  enum class Pad : uint8_t { kNullTerminated, kNullPadded, kSpacePadded };

  Kind kind = Kind::kSigned;
  uint32_t size = 0;
  bool swapped = false;  ///< bytes of numbers in the other order than the machine's
  Pad pad = Pad::kNullTerminated;

  bool is_string() const { return kind == Kind::kFixedString || kind == Kind::kVariableString; }
  bool is_float() const { return kind == Kind::kFloat || kind == Kind::kBrainFloat; }
};

}  // namespace tidelane::predicate
