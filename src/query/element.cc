#include "query/element.h"

#include <bit>
#include <cerrno>
#include <optional>
#include <utility>

namespace tidelane::query {

namespace {

using predicate::ElementType;

Status Refused(const std::string& what) { return Status::Failed(EINVAL, what); }

constexpr H5T_order_t kOther =
    std::endian::native == std::endian::little ? H5T_ORDER_BE : H5T_ORDER_LE;

// Whether all bits belong to the number, in an order that we know.
bool IsWhole(h5::Library& hdf5, hid_t type, bool& swapped) {
  const size_t size = hdf5.Tget_size(type);
  const H5T_order_t order = hdf5.Tget_order(type);
  if (order != H5T_ORDER_LE && order != H5T_ORDER_BE) return false;
  swapped = order == kOther && size > 1;
  return hdf5.Tget_precision(type) == 8 * size && hdf5.Tget_offset(type) == 0;
}

bool PlainInteger(h5::Library& hdf5, hid_t type, bool bits, ElementType& found) {
  found.size = static_cast<uint32_t>(hdf5.Tget_size(type));
  if (found.size > 8 || !std::has_single_bit(found.size)) return false;
  const H5T_sign_t sign = bits ? H5T_SGN_NONE : hdf5.Tget_sign(type);
  found.kind = sign == H5T_SGN_NONE ? ElementType::Kind::kUnsigned : ElementType::Kind::kSigned;
  return IsWhole(hdf5, type, found.swapped);
}

// IEEE 754, or the upper half of a float.
bool PlainFloat(h5::Library& hdf5, hid_t type, ElementType& found) {
  size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  found.size = static_cast<uint32_t>(hdf5.Tget_size(type));
  if (!IsWhole(hdf5, type, found.swapped) || hdf5.Tget_norm(type) != H5T_NORM_IMPLIED ||
      hdf5.Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0) {
    return false;
  }
  if (sign != 8 * found.size - 1 || mantissa != 0 || exponent != mantissa_bits ||
      hdf5.Tget_ebias(type) != (size_t{1} << (exponent_bits - 1)) - 1) {
    return false;
  }
  found.kind = ElementType::Kind::kFloat;
  switch (found.size) {
    case 2:
      if (exponent_bits == 8) found.kind = ElementType::Kind::kBrainFloat;
      return exponent_bits == 5 || exponent_bits == 8;
    case 4: return exponent_bits == 8;
    case 8: return exponent_bits == 11;
    default: return false;
  }
}

// What HDF5 converts to.
bool NativeNumber(h5::Library& hdf5, hid_t native, H5T_class_t of, ElementType& found) {
  if (of != H5T_FLOAT) return PlainInteger(hdf5, native, of == H5T_BITFIELD, found);
  if (PlainFloat(hdf5, native, found)) return true;
  found.kind = ElementType::Kind::kFloat;
  found.size = static_cast<uint32_t>(hdf5.Tget_size(native));
  found.swapped = false;
  return found.size == sizeof(long double);
}

bool FixedString(h5::Library& hdf5, hid_t type, ElementType& found) {
  found.kind = ElementType::Kind::kFixedString;
  found.size = static_cast<uint32_t>(hdf5.Tget_size(type));
  switch (hdf5.Tget_strpad(type)) {
    case H5T_STR_NULLTERM: found.pad = ElementType::Pad::kNullTerminated; return true;
    case H5T_STR_NULLPAD: found.pad = ElementType::Pad::kNullPadded; return true;
    case H5T_STR_SPACEPAD: found.pad = ElementType::Pad::kSpacePadded; return true;
    default: return false;
  }
}

const char* ClassName(H5T_class_t of) {
  switch (of) {
    case H5T_COMPOUND: return "a compound: name one of its fields";
    case H5T_REFERENCE: return "references";
    case H5T_OPAQUE: return "opaque";
    case H5T_VLEN: return "sequences";
    case H5T_ARRAY: return "arrays";
    case H5T_TIME: return "of class time";
    default: return "of a class that is not known";
  }
}

// One element, or a field, by itself: how it is in the file, and what it is converted to if that will not do.
struct Found {
  ElementType type;
  h5::OwnedId converted;  // not valid: it is read as it is
};

// An enumeration is its numbers, those that have no name among them: HDF5 would convert these to -1. Nor is it asked for an enumeration's native
// type: where numbers have fewer bits than their bytes, it writes beyond the end of a buffer.
Status FindNumber(h5::Library& hdf5, hid_t number, H5T_class_t of, Found& found) {
  const bool plain = of == H5T_FLOAT ? PlainFloat(hdf5, number, found.type)
                                     : PlainInteger(hdf5, number, of == H5T_BITFIELD, found.type);
  if (plain) return {};
  h5::OwnedId native(hdf5, hdf5.Tget_native_type(number, H5T_DIR_ASCEND));
  if (!native.valid()) return Refused("find a type of this machine for elements");
  if (!NativeNumber(hdf5, native.get(), of, found.type))
    return Refused("compare elements of this type of number");
  found.converted = std::move(native);
  return {};
}

Status FindSingle(h5::Library& hdf5, hid_t type, Found& found) {
  const H5T_class_t of = hdf5.Tget_class(type);
  switch (of) {
    case H5T_INTEGER:
    case H5T_BITFIELD:
    case H5T_FLOAT: return FindNumber(hdf5, type, of, found);
    case H5T_ENUM: {
      const h5::OwnedId base(hdf5, hdf5.Tget_super(type));
      return FindNumber(hdf5, base.get(), of, found);
    }
    case H5T_STRING:
      if (hdf5.Tis_variable_str(type) > 0) {
        found.type.kind = ElementType::Kind::kVariableString;
        found.type.size = sizeof(char*);
        found.converted = h5::OwnedId(hdf5, hdf5.Tcopy(type));
        return {};
      }
      if (FixedString(hdf5, type, found.type)) return {};
      break;
    default: break;
  }
  return Refused(std::string("compare elements that are ") + ClassName(of));
}

std::string NameOf(const ElementType& type) {
  const std::string bits = std::to_string(8 * type.size);
  const std::string order = !type.swapped                                ? ""
                            : std::endian::native == std::endian::little ? ", big-endian"
                                                                         : ", little-endian";
  switch (type.kind) {
    case ElementType::Kind::kSigned: return "int" + bits + order;
    case ElementType::Kind::kUnsigned: return "uint" + bits + order;
    case ElementType::Kind::kFloat: return "float" + bits + order;
    case ElementType::Kind::kBrainFloat: return "bfloat16" + order;
    case ElementType::Kind::kFixedString:
      return "string of " + std::to_string(type.size) + " bytes";
    case ElementType::Kind::kVariableString: return "string of variable length";
  }
  return {};
}

// The field's own type, and where it is in the record.
Status FindField(h5::Library& hdf5, hid_t record, const std::vector<std::string>& path,
                 h5::OwnedId& field, uint64_t& offset) {
  field = h5::OwnedId(hdf5, hdf5.Tcopy(record));
  offset = 0;
  for (const std::string& name : path) {
    if (!field.valid() || hdf5.Tget_class(field.get()) != H5T_COMPOUND)
      return Refused("find a field '" + name + "' in elements that are no compound");
    const int member = hdf5.Tget_member_index(field.get(), name.c_str());
    if (member < 0) return Refused("find a field '" + name + "'");
    offset += hdf5.Tget_member_offset(field.get(), static_cast<unsigned>(member));
    field = h5::OwnedId(hdf5, hdf5.Tget_member_type(field.get(), static_cast<unsigned>(member)));
  }
  return field.valid() ? Status() : Refused("ask for the type of elements");
}

// A record that has this field alone, at its beginning.
h5::OwnedId Alone(h5::Library& hdf5, hid_t field, const std::vector<std::string>& path) {
  h5::OwnedId type(hdf5, hdf5.Tcopy(field));
  for (auto name = path.rbegin(); name != path.rend() && type.valid(); ++name) {
    h5::OwnedId outer(hdf5, hdf5.Tcreate(H5T_COMPOUND, hdf5.Tget_size(type.get())));
    if (hdf5.Tinsert(outer.get(), name->c_str(), 0, type.get()) < 0) return {};
    type = std::move(outer);
  }
  return type;
}

}  // namespace

std::vector<std::string> FieldPath(std::string_view field) {
  std::vector<std::string> path;
  if (field.empty()) return path;
  path.emplace_back();
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 1 < field.size() && field[i + 1] == '.') {
      path.back() += field[++i];
    } else if (field[i] == '.') {
      path.emplace_back();
    } else {
      path.back() += field[i];
    }
  }
  return path;
}

Status FindElement(h5::Library& hdf5, hid_t type, std::string_view field, Element& found) {
  const std::vector<std::string> path = FieldPath(field);
  h5::OwnedId own;
  uint64_t offset = 0;
  if (Status status = FindField(hdf5, type, path, own, offset); !status.ok()) return status;
  Found single;
  if (Status status = FindSingle(hdf5, own.get(), single); !status.ok()) return status;
  found.type = single.type;
  found.name = NameOf(single.type);
  // A record with something of variable length in it would be memory to be given back for nothing.
  found.whole_record = !single.converted.valid() && hdf5.Tdetect_class(type, H5T_VLEN) <= 0 &&
                       hdf5.Tdetect_class(type, H5T_STRING) <= 0;
  if (path.empty()) found.whole_record = !single.converted.valid();
  if (found.whole_record) {
    found.offset = offset;
    found.memory_type = h5::OwnedId(hdf5, hdf5.Tcopy(type));
  } else {
    found.offset = 0;
    found.memory_type =
        Alone(hdf5, single.converted.valid() ? single.converted.get() : own.get(), path);
  }
  if (!found.memory_type.valid()) return Refused("make a type of memory for elements");
  found.record = hdf5.Tget_size(found.memory_type.get());
  return {};
}

}  // namespace tidelane::query
