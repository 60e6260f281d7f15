#include "base/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace tidelane {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

// Levenshtein's distance, a row at a time.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (Lower(a[i - 1]) == Lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string_view Nearest(std::string_view mistyped, std::span<const std::string_view> words) {
  const auto nearest = std::ranges::min_element(
      words, {}, [mistyped](std::string_view word) { return EditDistance(mistyped, word); });
  return nearest == words.end() ? std::string_view() : *nearest;
}

std::string_view Meant(std::string_view mistyped, std::span<const std::string_view> words) {
  const std::string_view nearest = Nearest(mistyped, words);
  return EditDistance(mistyped, nearest) * 2 <= nearest.size() ? nearest : std::string_view();
}

}  // namespace tidelane
