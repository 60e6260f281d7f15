/// \file
/// Numbers as texts of queries have them, whatever the locale.
///
/// Invariant: NumberText(x) is read as x.
/// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "predicate/value.h"

namespace tidelane::predicate {

struct NumberRead {
  Number number = 0;
  size_t size = 0;            ///< how much of the text it is
  const char* why = nullptr;  ///< what is wrong with it; nullptr: nothing
};

/// Reads an unsigned number at the text's beginning, which is a digit, or a point before a digit.
NumberRead ReadNumber(std::string_view text);

/// Of a number that FormOf knows (number_form.h).
std::string NumberText(Number number);

}  // namespace tidelane::predicate
