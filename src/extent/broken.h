/// \file
/// Negative controls: in builds with TIDELANE_BREAK one rule can be switched off by name, and the stress test must then
/// find a difference. In every other build Broken() is constant false and the branches vanish.
///
/// Thread safety: set once, before the first file is opened.
#pragma once

#include <string_view>

namespace tidelane {

#ifdef TIDELANE_BREAK
inline std::string_view broken_rule;  // points into the configuration, which lives for ever
inline bool Broken(std::string_view rule) { return broken_rule == rule; }
#else
constexpr bool Broken(std::string_view) { return false; }
#endif

}  // namespace tidelane
