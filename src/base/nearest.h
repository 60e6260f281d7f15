/// \file
/// Which known word a mistyped one probably was meant to be.
///
/// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tidelane {

/// How many letters must be put in, left out or changed to make one of the other; upper and lower
/// case are the same.
size_t EditDistance(std::string_view a, std::string_view b);

/// The word nearest to `mistyped`; empty only when there are no words.
std::string_view Nearest(std::string_view mistyped, std::span<const std::string_view> words);

/// The same, but empty when the nearest is so far away that it was hardly meant.
std::string_view Meant(std::string_view mistyped, std::span<const std::string_view> words);

}  // namespace tidelane
