/// \file
/// A condition made ready for elements of one type, and applied to many of them at once.
///
/// Numbers: every condition is an interval of the element type's own values, both ends included, or what is
/// outside it. So int64 beyond 2^53, uint64 and half precision are compared as they are: `e > 1.9` of
/// integers is `e >= 2`. The loops are compiled for several instruction sets; the processor chooses once.
///
/// Invariant: what Run says of an element is what the exact comparison says of its value.
/// Thread safety: const functions may be called from any thread at once.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "predicate/bits.h"
#include "predicate/element_type.h"
#include "predicate/value.h"

namespace tidelane::predicate {

class Matcher {
 public:
  /// nullopt, with the reason in `why`: a string against numbers or the other way round, a wrong number of constants, a type that
  /// is none of those of ElementType.
  static std::optional<Matcher> Make(const Condition& condition, const ElementType& type,
                                     Constants constants, std::string& why);

  /// Sets `bits` to `count` bits; `elements` need not be aligned.
  void Run(const void* elements, size_t count, Bits& bits) const;
  /// How many match: what Run's bits would count, but quicker where nothing else is wanted.
  uint64_t Count(const void* elements, size_t count) const;

  /// What is known without a look at elements.
  bool never() const;   ///< no element can match
  bool always() const;  ///< each does, NaN included

  /// Defined in matcher.cc.
  struct Loops;

 private:
  Matcher() = default;
  std::shared_ptr<const Loops> loops_;
};

}  // namespace tidelane::predicate
