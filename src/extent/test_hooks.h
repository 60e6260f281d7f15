/// \file
/// Negative controls: in builds with TIDELANE_BREAK rules can be switched off by name, and the stress test must then
/// find a difference. In every other build MutationEnabled() is constant false and the branches vanish.
/// `whims` breaks nothing: what clocks decide (in mode=auto; whether lanes have prepared a chunk when a call comes by) is then drawn, and the
/// stress test must find no difference.
/// Nor do `log_small_segments`, a log's segments are moved when they have 32 KiB, and `log_small_reuse`, 4 KiB of them are used again.
///
/// Thread safety: the rule is set once, before the first file is opened; Randomized may be called from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ranges>
#include <string_view>

namespace tidelane {

#ifdef TIDELANE_BREAK
inline std::string_view
    enabled_mutations;  // as a+b; points into the configuration, which lives for ever
inline bool MutationEnabled(std::string_view rule) {
  return std::ranges::any_of(std::views::split(enabled_mutations, '+'), [&](const auto& name) {
    return std::string_view(name.begin(), name.end()) == rule;
  });
}
inline std::atomic<uint64_t> whims{0};
/// `measured`, or what is drawn in its place.
inline bool Randomized(bool measured) {
  if (!MutationEnabled("whims")) return measured;
  uint64_t bits = ++whims * 0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 32) * 0xd6e8feb86659fd93;
  return (bits >> 63) != 0;
}
#else
constexpr bool MutationEnabled(std::string_view) { return false; }
constexpr bool Randomized(bool measured) { return measured; }
#endif

}  // namespace tidelane
