#include "stress/types.h"

#include <cstring>

#include "stress/rng.h"

namespace tidelane::stress {
namespace {

struct Pair {
  int32_t a;
  double b;
};

Hid compound(hid_t first, hid_t second, size_t size, size_t offset) {
  Hid type(H5Tcreate(H5T_COMPOUND, size));
  H5Tinsert(type, "a", 0, first);
  H5Tinsert(type, "b", offset, second);
  return type;
}

Hid field(const char* name, hid_t type) {
  Hid compound(H5Tcreate(H5T_COMPOUND, H5Tget_size(type)));
  H5Tinsert(compound, name, 0, type);
  return compound;
}

Hid variable_string() {
  Hid type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type, H5T_VARIABLE);
  return type;
}

template <class T>
void fill_numbers(std::vector<uint8_t>& raw, size_t n, Rng& rng) {
  auto* out = reinterpret_cast<T*>(raw.data());
  uint64_t bits = 0;
  for (size_t i = 0; i < n; ++i, bits >>= 7) {
    if (i % 8 == 0) bits = rng.next();
    out[i] = static_cast<T>(bits & 0x7f);
  }
}

}  // namespace

const char* name(Kind kind) {
  static const char* const names[kKinds] = {"i32le", "i32be", "i16le",    "u8",   "i64be",
                                            "f32be", "f64le", "compound", "vlstr"};
  return names[static_cast<int>(kind)];
}

Hid file_type(Kind kind) {
  switch (kind) {
    case Kind::I32LE: return Hid(H5Tcopy(H5T_STD_I32LE));
    case Kind::I32BE: return Hid(H5Tcopy(H5T_STD_I32BE));
    case Kind::I16LE: return Hid(H5Tcopy(H5T_STD_I16LE));
    case Kind::U8: return Hid(H5Tcopy(H5T_STD_U8LE));
    case Kind::I64BE: return Hid(H5Tcopy(H5T_STD_I64BE));
    case Kind::F32BE: return Hid(H5Tcopy(H5T_IEEE_F32BE));
    case Kind::F64LE: return Hid(H5Tcopy(H5T_IEEE_F64LE));
    case Kind::Compound: return compound(H5T_STD_I32BE, H5T_IEEE_F64LE, 12, 4);
    case Kind::VlString: return variable_string();
  }
  return Hid();
}

Hid memory_type(Mem mem) {
  switch (mem) {
    case Mem::I16: return Hid(H5Tcopy(H5T_NATIVE_SHORT));
    case Mem::I32: return Hid(H5Tcopy(H5T_NATIVE_INT));
    case Mem::I64: return Hid(H5Tcopy(H5T_NATIVE_LLONG));
    case Mem::F64: return Hid(H5Tcopy(H5T_NATIVE_DOUBLE));
    case Mem::Compound:
      return compound(H5T_NATIVE_INT, H5T_NATIVE_DOUBLE, sizeof(Pair), offsetof(Pair, b));
    case Mem::FieldA: return field("a", H5T_NATIVE_INT);
    case Mem::FieldB: return field("b", H5T_NATIVE_DOUBLE);
    case Mem::VlString: return variable_string();
  }
  return Hid();
}

size_t memory_size(Mem mem) {
  switch (mem) {
    case Mem::I16: return 2;
    case Mem::I32: return 4;
    case Mem::I64: return 8;
    case Mem::F64: return 8;
    case Mem::Compound: return sizeof(Pair);
    case Mem::FieldA: return sizeof(Pair::a);
    case Mem::FieldB: return sizeof(Pair::b);
    case Mem::VlString: return sizeof(char*);
  }
  return 0;
}

Mem memory_for(Kind kind, uint64_t pick) {
  if (kind == Kind::Compound) return Mem::Compound;
  if (kind == Kind::VlString) return Mem::VlString;
  static constexpr Mem numeric[] = {Mem::I32, Mem::F64, Mem::I64, Mem::I16, Mem::I32};
  return numeric[pick % 5];
}

void Buffer::fill(uint64_t seed) {
  Rng rng(seed);
  if (mem_ == Mem::VlString) {
    strings_.resize(n_);
    for (auto& s : strings_) s.assign(rng.below(40), static_cast<char>('a' + rng.below(26)));
    pointers_.clear();
    for (const auto& s : strings_) pointers_.push_back(s.c_str());
    return;
  }
  raw_.assign(n_ * memory_size(mem_) + 1,
              0);  // never empty: HDF5 wants a pointer even for 0 elements
  switch (mem_) {
    case Mem::I16: fill_numbers<int16_t>(raw_, n_, rng); break;
    case Mem::FieldA:
    case Mem::I32: fill_numbers<int32_t>(raw_, n_, rng); break;
    case Mem::I64: fill_numbers<int64_t>(raw_, n_, rng); break;
    case Mem::FieldB:
    case Mem::F64: fill_numbers<double>(raw_, n_, rng); break;
    default:
      for (size_t i = 0; i < n_; ++i) {
        const Pair pair{static_cast<int32_t>(rng.below(100)), static_cast<double>(rng.below(100))};
        std::memcpy(&raw_[i * sizeof(Pair)], &pair, sizeof pair);
      }
  }
}

void Buffer::add_extremes() {
  const auto at_each = [&]<class T>(T small, T large) {
    auto* const out = reinterpret_cast<T*>(raw_.data());
    for (size_t i = 0; i < n_; i += 13) out[i] = i % 2 == 0 ? small : large;
  };
  switch (mem_) {
    case Mem::I16: at_each(int16_t{-5}, int16_t{30000}); break;
    case Mem::I32: at_each(int32_t{-5}, int32_t{70000}); break;
    case Mem::I64: at_each(int64_t{-5}, int64_t{1} << 40); break;
    case Mem::F64: at_each(-2.5, 1e6); break;
    default: break;
  }
}

void Buffer::prepare_for_read() {
  if (mem_ == Mem::VlString) {
    pointers_.assign(n_ + 1, nullptr);
  } else {
    raw_.assign(n_ * memory_size(mem_) + 1, 0xa5);
  }
}

void Buffer::scribble() {
  std::fill(raw_.begin(), raw_.end(), 0x5a);
  for (auto& s : strings_) std::fill(s.begin(), s.end(), 'X');
  std::fill(pointers_.begin(), pointers_.end(), nullptr);
}

std::string Buffer::take() {
  if (mem_ != Mem::VlString) return std::string(raw_.begin(), raw_.end());
  std::string out;
  for (const char*& p : pointers_) {
    out += p == nullptr ? "<null>" : p;
    out += '\n';
    if (p != nullptr) H5free_memory(const_cast<char*>(p));
    p = nullptr;
  }
  return out;
}

}  // namespace tidelane::stress
