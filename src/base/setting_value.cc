#include "base/setting_value.h"

#include <charconv>
#include <span>

namespace tidelane {
namespace {

struct Unit {
  std::string_view suffix;
  uint64_t factor;
};

// The first suffix of each size is the one that is shown.
constexpr Unit kSizes[] = {
    {"G", 1u << 30}, {"M", 1u << 20}, {"k", 1u << 10}, {"", 1},
    {"g", 1u << 30}, {"m", 1u << 20}, {"K", 1u << 10},
};
constexpr Unit kTimes[] = {{"s", 1'000'000}, {"ms", 1000}, {"us", 1}, {"", 1}};

bool ParseWithUnit(std::string_view text, std::span<const Unit> units, uint64_t& result) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return false;
  const std::string_view suffix(rest, static_cast<size_t>(end - rest));
  for (const Unit& unit : units) {
    if (unit.suffix != suffix) continue;
    if (number > std::numeric_limits<uint64_t>::max() / unit.factor) return false;
    result = number * unit.factor;
    return true;
  }
  return false;
}

std::string ShowWithUnit(uint64_t value, std::span<const Unit> units) {
  if (value == 0) return "0";
  for (const Unit& unit : units) {
    if (value % unit.factor == 0) {
      return std::to_string(value / unit.factor) + std::string(unit.suffix);
    }
  }
  return {};
}

}  // namespace

bool ParseSize(std::string_view text, uint64_t& bytes) {
  return ParseWithUnit(text, kSizes, bytes);
}

std::string ShowSize(uint64_t bytes) { return ShowWithUnit(bytes, kSizes); }

bool ParseMicroseconds(std::string_view text, uint64_t& us) {
  return ParseWithUnit(text, kTimes, us);
}

std::string ShowMicroseconds(uint64_t us) { return ShowWithUnit(us, kTimes); }

bool ParseNumber(std::string_view text, uint64_t& number) {
  return ParseWithUnit(text, std::span(kTimes).last(1), number);
}

}  // namespace tidelane
