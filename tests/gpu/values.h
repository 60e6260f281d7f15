// Types, and elements of them that a conversion may be asked to convert.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <hdf5.h>

#include "gpu/gpu.h"
#include "support/hid.h"

namespace tidelane::testing {

// Members one behind the other, between halves of the padding.
inline Hid compound(const std::vector<std::pair<const char*, hid_t>>& members, size_t padding = 0) {
  size_t size = padding;
  for (const auto& [name, type] : members) size += H5Tget_size(type);
  Hid made(H5Tcreate(H5T_COMPOUND, size));
  size_t at = padding / 2;
  for (const auto& [name, type] : members) {
    EXPECT_GE(H5Tinsert(made, name, at, type), 0);
    at += H5Tget_size(type);
  }
  return made;
}

// Valid elements: numbers come from small whole ones.
inline Bytes elements_of(hid_t type, size_t count, unsigned seed) {
  const size_t size = H5Tget_size(type);
  Bytes bytes = pattern(count * size, seed);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_FLOAT || kind == H5T_ENUM) {
    Bytes wide(count * std::max(size, sizeof(int)));
    for (size_t i = 0; i < count; ++i) {
      const int value = static_cast<int>((i * 7 + seed) % (kind == H5T_ENUM ? 4 : 1000));
      if (kind == H5T_ENUM) {
        std::memcpy(bytes.data() + i * size, &value, std::min(size, sizeof value));
      } else {
        std::memcpy(wide.data() + i * sizeof value, &value, sizeof value);
      }
    }
    if (kind == H5T_ENUM) return bytes;
    EXPECT_GE(H5Tconvert(H5T_NATIVE_INT, type, count, wide.data(), nullptr, H5P_DEFAULT), 0);
    wide.resize(count * size);
    return wide;
  }
  if (kind == H5T_STRING) {
    for (char& byte : bytes) byte = static_cast<char>('a' + static_cast<unsigned char>(byte) % 26);
  }
  return bytes;
}

}  // namespace tidelane::testing
