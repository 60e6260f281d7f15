#include "tools/query_cells.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/words.h"

namespace tidelane::tools {
namespace {

using predicate::ElementType;
using Kind = ElementType::Kind;

template <class Number>
Number Loaded(const std::byte* from) {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

template <class Number>
void Append(std::string& out, Number number) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, number);
  out.append(text, end.ptr);
}

// IEEE 754's half, which C++20 has no type for.
float OfHalf(uint16_t bits) {
  constexpr int kMantissa = 10;
  constexpr int kBias = 15;
  const unsigned exponent = (bits >> kMantissa) & 0x1f;
  const unsigned mantissa = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0x1f) {
    return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * std::numeric_limits<float>::infinity();
  }
  const float whole = static_cast<float>(exponent == 0 ? mantissa : mantissa | 0x400);
  return sign *
         std::ldexp(whole, (exponent == 0 ? 1 : static_cast<int>(exponent)) - kBias - kMantissa);
}

// The fewest digits that read back as the same number, written as Python does. "nan" whatever its sign.
template <class Number>
void AppendFloat(std::string& out, Number number) {
  if (std::isnan(number)) {
    out += "nan";
    return;
  }
  const Number size = std::abs(number);
  const Number most = sizeof(Number) == sizeof(float) ? Number(1e7) : Number(1e16);
  const bool plain = size == 0 || (size >= Number(1e-4) && size < most);
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  const std::string_view written(text, static_cast<size_t>(end.ptr - text));
  out += written;
  if (plain && written.find('.') == std::string_view::npos) out += ".0";
}

void AppendFloat(std::string& out, const ElementType& type, const std::byte* element) {
  switch (type.size) {
    case 2: {
      const auto bits = Loaded<uint16_t>(element);
      AppendFloat(out, type.kind == Kind::kBrainFloat
                           ? std::bit_cast<float>(static_cast<uint32_t>(bits) << 16)
                           : OfHalf(bits));
      break;
    }
    case 4: AppendFloat(out, Loaded<float>(element)); break;
    case 8: AppendFloat(out, Loaded<double>(element)); break;
    default: AppendFloat(out, Loaded<long double>(element)); break;
  }
}

void AppendInteger(std::string& out, const ElementType& type, const std::byte* element) {
  const bool is_signed = type.kind == Kind::kSigned;
  switch (type.size) {
    case 1:
      is_signed ? Append(out, int{Loaded<int8_t>(element)})
                : Append(out, unsigned{Loaded<uint8_t>(element)});
      break;
    case 2:
      is_signed ? Append(out, Loaded<int16_t>(element)) : Append(out, Loaded<uint16_t>(element));
      break;
    case 4:
      is_signed ? Append(out, Loaded<int32_t>(element)) : Append(out, Loaded<uint32_t>(element));
      break;
    default:
      is_signed ? Append(out, Loaded<int64_t>(element)) : Append(out, Loaded<uint64_t>(element));
  }
}

bool IsTruth(const Hdf5& hdf5, hid_t type) {
  return hdf5.types.members(type) == 2 && hdf5.types.member_index(type, "FALSE") == 0 &&
         hdf5.types.member_index(type, "TRUE") == 1;
}

bool IsBrainFloat(const Hdf5& hdf5, hid_t type) {
  constexpr size_t kExponentBits = 8;
  size_t sign = 0;
  size_t exponent = 0;
  size_t exponent_bits = 0;
  size_t mantissa = 0;
  size_t mantissa_bits = 0;
  return hdf5.types.fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >=
             0 &&
         exponent_bits == kExponentBits;
}

// Of the UTF-8 sequence at the beginning; 0: there is none.
size_t SequenceSize(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const size_t size = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (size == 0 || size > text.size() || lead > 0xf4) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((static_cast<uint8_t>(text[i]) & 0xc0) != 0x80) return 0;
  }
  if (size < 3) return size;
  // Too long for what it says, half of a pair of UTF-16, or beyond Unicode.
  const auto next = static_cast<uint8_t>(text[1]);
  const bool overlong = (lead == 0xe0 && next < 0xa0) || (lead == 0xf0 && next < 0x90);
  const bool half = lead == 0xed && next > 0x9f;
  const bool beyond = lead == 0xf4 && next > 0x8f;
  return overlong || half || beyond ? 0 : size;
}

bool IsControl(std::string_view sequence) {
  const auto first = static_cast<uint8_t>(sequence[0]);
  const bool c1 = sequence.size() == 2 && first == 0xc2 && static_cast<uint8_t>(sequence[1]) < 0xa0;
  return first < 0x20 || first == 0x7f || c1;
}

}  // namespace

CellType CellTypeOf(const Hdf5& hdf5, hid_t type, size_t size) {
  CellType found;
  found.element.size = static_cast<uint32_t>(size);
  const Hdf5Class of = hdf5.types.of(type);
  const Id base(hdf5, of == Hdf5Class::kEnum ? hdf5.types.base(type) : -1);
  const hid_t number = base.valid() ? base.get() : type;
  switch (of) {
    case Hdf5Class::kString: {
      static constexpr ElementType::Pad kPads[] = {ElementType::Pad::kNullTerminated,
                                                   ElementType::Pad::kNullPadded,
                                                   ElementType::Pad::kSpacePadded};
      const int padding = hdf5.types.padding(type);
      if (padding >= 0 && padding < 3) found.element.pad = kPads[padding];
      found.element.kind =
          hdf5.types.is_variable(type) > 0 ? Kind::kVariableString : Kind::kFixedString;
      break;
    }
    case Hdf5Class::kFloat:
      found.element.kind = size == 2 && IsBrainFloat(hdf5, type) ? Kind::kBrainFloat : Kind::kFloat;
      break;
    default:
      found.truth = of == Hdf5Class::kEnum && IsTruth(hdf5, type);
      found.element.kind = of != Hdf5Class::kBitfield && hdf5.types.sign(number) > 0
                               ? Kind::kSigned
                               : Kind::kUnsigned;
  }
  return found;
}

void AppendNumber(std::string& out, const CellType& type, const std::byte* element) {
  if (type.element.is_float()) return AppendFloat(out, type.element, element);
  if (type.truth) {
    const auto value = std::to_integer<unsigned>(element[0]);
    if (value <= 1) {
      out += value == 1 ? "True" : "False";
      return;
    }
  }
  AppendInteger(out, type.element, element);
}

std::string_view TextOf(const CellType& type, const std::byte* element) {
  const std::string_view all(reinterpret_cast<const char*>(element), type.element.size);
  switch (type.element.pad) {
    case ElementType::Pad::kNullTerminated: return all.substr(0, all.find('\0'));
    case ElementType::Pad::kNullPadded: return all.substr(0, all.find_last_not_of('\0') + 1);
    case ElementType::Pad::kSpacePadded: return all.substr(0, all.find_last_not_of(' ') + 1);
  }
  return all;
}

void AppendField(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

std::string Shown(std::string_view text, size_t most) {
  std::string out;
  size_t characters = 0;
  while (!text.empty()) {
    if (characters++ == most) return out + "…";
    const size_t size = SequenceSize(text);
    if (size == 0 || IsControl(text.substr(0, size))) {
      text[0] == '\n' ? void(out += "\\n") : Print(out, "\\x%02x", static_cast<uint8_t>(text[0]));
      text.remove_prefix(1);
    } else {
      out += text.substr(0, size);
      text.remove_prefix(size);
    }
  }
  return out;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = SequenceSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

size_t Characters(std::string_view text) {
  size_t characters = 0;
  for (const char c : text) characters += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  return characters;
}

}  // namespace tidelane::tools
