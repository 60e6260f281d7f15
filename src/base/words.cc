/// \file
/// Formatting by printf: the compilers we support do not all have std::format.
///
/// Thread safety: as words.h.
#include "base/words.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <iterator>

namespace tidelane {

void Print(std::string& text, const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

std::string BytesInWords(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  unsigned unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  std::string text;
  Print(text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string CountInWords(uint64_t count, const char* thing) {
  std::string text;
  Print(text, "%" PRIu64 " %s%s", count, thing, count == 1 ? "" : "s");
  return text;
}

}  // namespace tidelane
