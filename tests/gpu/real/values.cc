// Types and models: see values.h.
#include "gpu/real/values.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace tidelane::gpu_real {
namespace {

struct Record {  // in memory; the file has no `gap`
  int32_t first;
  float gap;
  int32_t last;
};

template <typename Number>
void put(std::ostream& out, Number number) {
  out.write(reinterpret_cast<const char*>(&number), sizeof number);
}

template <typename Number>
Number get(std::istream& in) {
  Number number{};
  in.read(reinterpret_cast<char*>(&number), sizeof number);
  return number;
}

herr_t append(unsigned, const H5E_error2_t* error, void* text) {
  auto& all = *static_cast<std::string*>(text);
  all += (all.empty() ? "" : " < ") + std::string(error->func_name) + ": " +
         (error->desc == nullptr ? "" : error->desc);
  return 0;
}

}  // namespace

const char* name_of(Type type) {
  static constexpr const char* kNames[] = {
      "float", "float as double", "big-endian", "compound", "byte", "int"};
  return kNames[static_cast<int>(type)];
}

size_t size_of(Type type) {
  if (type == Type::kByte) return 1;
  return type == Type::kLacking ? sizeof(Record) : 4;
}

Hid memory_type(Type type) {
  switch (type) {
    case Type::kFloat:
    case Type::kFloatAsDouble: return Hid(H5Tcopy(H5T_NATIVE_FLOAT));
    case Type::kByte: return Hid(H5Tcopy(H5T_NATIVE_UCHAR));
    case Type::kBigEndian:
    case Type::kInt: return Hid(H5Tcopy(H5T_NATIVE_INT32));
    case Type::kLacking: break;
  }
  Hid made(H5Tcreate(H5T_COMPOUND, sizeof(Record)));
  H5Tinsert(made, "first", offsetof(Record, first), H5T_NATIVE_INT32);
  H5Tinsert(made, "gap", offsetof(Record, gap), H5T_NATIVE_FLOAT);
  H5Tinsert(made, "last", offsetof(Record, last), H5T_NATIVE_INT32);
  return made;
}

Hid file_type(Type type) {
  switch (type) {
    case Type::kFloatAsDouble: return Hid(H5Tcopy(H5T_NATIVE_DOUBLE));
    case Type::kBigEndian: return Hid(H5Tcopy(H5T_STD_I32BE));
    case Type::kLacking: break;
    default: return memory_type(type);
  }
  Hid made(H5Tcreate(H5T_COMPOUND, 8));
  H5Tinsert(made, "first", 0, H5T_NATIVE_INT32);
  H5Tinsert(made, "last", 4, H5T_NATIVE_INT32);
  return made;
}

void store(Type type, int32_t value, char* to) {
  switch (type) {
    case Type::kFloat:
    case Type::kFloatAsDouble: {
      const auto real = static_cast<float>(value);
      std::memcpy(to, &real, sizeof real);
      return;
    }
    case Type::kBigEndian:
    case Type::kInt: std::memcpy(to, &value, sizeof value); return;
    case Type::kByte: *to = static_cast<char>(value); return;
    case Type::kLacking: {
      const int32_t negative = -value;
      std::memcpy(to + offsetof(Record, first), &value, sizeof value);
      std::memcpy(to + offsetof(Record, last), &negative, sizeof negative);
      return;
    }
  }
}

Bytes image(Type type, uint32_t seed, uint64_t count) {
  const size_t size = size_of(type);
  Bytes bytes(count * size);
  for (uint64_t i = 0; i < count; ++i) {
    char* const to = bytes.data() + i * size;
    const int32_t value = number(seed, i);
    store(type, value, to);
    const float gap = static_cast<float>(value) + 0.25F;
    if (type == Type::kLacking) std::memcpy(to + offsetof(Record, gap), &gap, sizeof gap);
  }
  return bytes;
}

Bytes Model::bytes() const {
  const size_t size = size_of(type);
  Bytes all(count * size);
  for (uint64_t i = 0; i < count; ++i) store(type, at(i), all.data() + i * size);
  return all;
}

void save(const std::vector<Model>& models, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  put(out, models.size());
  for (const Model& model : models) {
    put(out, model.name.size());
    out.write(model.name.data(), static_cast<std::streamsize>(model.name.size()));
    put(out, model.type);
    put(out, model.count);
    put(out, model.rule);
    put(out, model.seed);
    put(out, model.step);
    put(out, model.list.size());
    out.write(reinterpret_cast<const char*>(model.list.data()),
              static_cast<std::streamsize>(model.list.size() * sizeof(int32_t)));
  }
  out.flush();
  if (!out.good()) throw std::runtime_error("cannot write " + path);
}

std::vector<Model> load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<Model> models(get<size_t>(in));
  for (Model& model : models) {
    model.name.resize(get<size_t>(in));
    in.read(model.name.data(), static_cast<std::streamsize>(model.name.size()));
    model.type = get<Type>(in);
    model.count = get<uint64_t>(in);
    model.rule = get<Model::Rule>(in);
    model.seed = get<uint32_t>(in);
    model.step = get<uint64_t>(in);
    model.list.resize(get<size_t>(in));
    in.read(reinterpret_cast<char*>(model.list.data()),
            static_cast<std::streamsize>(model.list.size() * sizeof(int32_t)));
  }
  if (!in.good()) throw std::runtime_error("cannot read " + path);
  return models;
}

std::string difference(const Bytes& found, const Bytes& expected, size_t element) {
  if (found == expected) return {};
  const size_t common = std::min(found.size(), expected.size());
  const auto at = static_cast<size_t>(
      std::mismatch(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(common),
                    expected.begin())
          .first -
      found.begin());
  size_t differ = 0;
  for (size_t i = at; i < common; ++i) differ += found[i] != expected[i] ? 1 : 0;
  std::string bytes[2];
  const Bytes* const sides[] = {&found, &expected};
  for (int side = 0; side < 2; ++side) {
    for (size_t i = at; i < std::min(at + 8, common); ++i) {
      char hex[4];
      std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>((*sides[side])[i]));
      bytes[side] += hex;
    }
  }
  return "element " + std::to_string(at / element) + " (byte " + std::to_string(at) + ") of " +
         std::to_string(expected.size() / element) + ": " + bytes[0] + " instead of " + bytes[1] +
         "; " + std::to_string(differ) + " bytes differ";
}

std::string compare(hid_t file, const Model& model) {
  const bool is_attribute = model.name.front() == '@';
  const Hid object(is_attribute ? H5Aopen(file, model.name.c_str(), H5P_DEFAULT)
                                : H5Dopen2(file, model.name.c_str(), H5P_DEFAULT));
  if (!object.valid()) return "cannot be opened: " + error_text();
  const Hid type = memory_type(model.type);
  Bytes found(model.count * size_of(model.type));
  const herr_t result = is_attribute
                            ? H5Aread(object, type, found.data())
                            : H5Dread(object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data());
  if (result < 0) return "cannot be read: " + error_text();
  return difference(found, model.bytes(), size_of(model.type));
}

std::string error_text() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, append, &text);
  return text;
}

}  // namespace tidelane::gpu_real
