// A reader for the two flat objects of the summary that tests need. The summary's schema is fixed
// ("counters" and "fallbacks" hold only numbers), so a scanner of that shape is enough here.
#include "support/summary.h"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace tidelane::testing {
namespace {

std::map<std::string, int64_t> numbers_of(const std::string& text, const std::string& object) {
  std::map<std::string, int64_t> found;
  size_t at = text.find('"' + object + '"');
  if (at == std::string::npos) return found;
  at = text.find('{', at);
  const size_t end = text.find('}', at);
  while (at != std::string::npos && at < end) {
    const size_t open = text.find('"', at);
    if (open == std::string::npos || open > end) break;
    const size_t close = text.find('"', open + 1);
    const size_t colon = text.find(':', close);
    if (close == std::string::npos || colon == std::string::npos) break;
    found[text.substr(open + 1, close - open - 1)] = std::strtoll(&text[colon + 1], nullptr, 10);
    at = text.find(',', colon);
  }
  return found;
}

int64_t value_or_zero(const std::map<std::string, int64_t>& map, const std::string& name) {
  const auto it = map.find(name);
  return it == map.end() ? 0 : it->second;
}

}  // namespace

int64_t Summary::counter(const std::string& name) const { return value_or_zero(counters, name); }
int64_t Summary::fallback(const std::string& reason) const {
  return value_or_zero(fallbacks, reason);
}

std::optional<Summary> Summary::load(std::string path) {
  if (const size_t at = path.find("%p"); at != std::string::npos) {
    path.replace(at, 2, std::to_string(::getpid()));
  }
  std::ifstream in(path);
  if (!in) return std::nullopt;
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Summary summary;
  summary.counters = numbers_of(text, "counters");
  summary.fallbacks = numbers_of(text, "fallbacks");
  if (summary.counters.empty()) return std::nullopt;
  return summary;
}

}  // namespace tidelane::testing
