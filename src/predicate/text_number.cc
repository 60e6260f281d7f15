#include "predicate/text_number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "predicate/number_form.h"

namespace tidelane::predicate {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

template <typename Is>
size_t Span(std::string_view text, size_t from, Is is) {
  while (from < text.size() && is(text[from])) ++from;
  return from;
}

// The form of a decimal number, and where it ends.
struct Shape {
  size_t size = 0;
  bool integer = true;
};

Shape ShapeOf(std::string_view text) {
  Shape shape;
  shape.size = Span(text, 0, IsDigit);
  if (shape.size < text.size() && text[shape.size] == '.') {
    shape.integer = false;
    shape.size = Span(text, shape.size + 1, IsDigit);
  }
  if (shape.size < text.size() && (text[shape.size] == 'e' || text[shape.size] == 'E')) {
    size_t exponent = shape.size + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    const size_t end = Span(text, exponent, IsDigit);
    if (end > exponent) {
      shape.integer = false;
      shape.size = end;
    }
  }
  return shape;
}

// Whether a number that is out of a type's range is too large rather than too small.
bool IsLarge(std::string_view text) {
  const size_t end = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, end);
  const size_t point = std::min(digits.find('.'), digits.size());
  const size_t first = digits.find_first_not_of("0.");
  if (first == std::string_view::npos) return false;
  long long exponent = 0;
  if (end < text.size()) {
    const char* begin = text.data() + end + 1;
    if (*begin == '+') ++begin;
    if (std::from_chars(begin, text.data() + text.size(), exponent).ec != std::errc()) {
      return *begin != '-';
    }
  }
  const long long before = first < point ? static_cast<long long>(point - first)
                                         : -static_cast<long long>(first - point - 1);
  return exponent > -before;
}

// The nearest of a type, as strtod in the C locale gives it: infinity or 0 beyond its range.
template <typename Float>
Number Nearest(std::string_view digits, std::chars_format format) {
  Float number = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number, format);
  if (result.ec == std::errc::result_out_of_range) {
    const bool large = format == std::chars_format::hex || IsLarge(digits);
    return large ? std::numeric_limits<Number>::infinity() : 0;
  }
  return static_cast<Number>(number);
}

Number Integer(std::string_view digits, int base) {
  uint64_t number = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (result.ec == std::errc()) return static_cast<Number>(number);
  return Nearest<Number>(digits, base == 16 ? std::chars_format::hex : std::chars_format::fixed);
}

}  // namespace

NumberRead ReadNumber(std::string_view text) {
  constexpr const char* kTooLarge = "the number is larger than any double";
  NumberRead read;
  bool exact = true;
  if (text.size() >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    read.size = Span(text, 2, IsHexDigit);
    if (read.size == 2) {
      read.why = "a digit is needed after '0x'";
      return read;
    }
    read.number = Integer(text.substr(2, read.size - 2), 16);
  } else {
    const Shape shape = ShapeOf(text);
    const std::string_view digits = text.substr(0, shape.size);
    read.size = shape.size;
    if (read.size < text.size() && (text[read.size] == 'L' || text[read.size] == 'l')) {
      ++read.size;
      read.number = Nearest<Number>(digits, std::chars_format::general);
    } else if (shape.integer) {
      read.number = Integer(digits, 10);
    } else {
      read.number = Nearest<double>(digits, std::chars_format::general);
      exact = false;
    }
  }
  if (exact && read.number > static_cast<Number>(std::numeric_limits<double>::max())) {
    read.why = kTooLarge;
  } else if (FormOf(read.number) == NumberForm::kNone) {
    read.why = "the number is too small to be kept exactly";
  }
  return read;
}

std::string NumberText(Number number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::array<char, 512> text;  // the largest integer has 309 digits
  char* const end = text.data() + text.size();
  const NumberForm form = FormOf(number);
  std::to_chars_result result{};
  if (form == NumberForm::kInt64) {
    result = std::to_chars(text.data(), end, static_cast<int64_t>(number));
  } else if (form == NumberForm::kUint64) {
    result = std::to_chars(text.data(), end, static_cast<uint64_t>(number));
  } else if (form != NumberForm::kDouble && std::trunc(number) == number) {
    result = std::to_chars(text.data(), end, number, std::chars_format::fixed, 0);
  } else if (form == NumberForm::kDouble) {
    result = std::to_chars(text.data(), end, static_cast<double>(number));
  } else {
    result = std::to_chars(text.data(), end, number);
  }
  std::string written(text.data(), result.ptr);
  const bool integer = form == NumberForm::kInt64 || form == NumberForm::kUint64;
  if (form == NumberForm::kDouble && written.find_first_of(".e") == std::string::npos) {
    written += ".0";  // also -0.0, which is no integer
  } else if (!integer && form != NumberForm::kDouble && std::trunc(number) != number) {
    written += 'L';
  }
  return written;
}

}  // namespace tidelane::predicate
