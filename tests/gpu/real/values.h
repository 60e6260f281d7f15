// Elements: what type they have in memory and in the file, and which number each one holds.
//
// Invariant: a number is the same in both types of a kind, so that one list of numbers says what a dataset holds.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <hdf5.h>

#include "support/hid.h"

namespace tidelane::gpu_real {

using Bytes = std::vector<char>;
using testing::Hid;

enum class Type : int { kFloat, kFloatAsDouble, kBigEndian, kLacking, kByte, kInt };
inline constexpr Type kTypes[] = {Type::kFloat, Type::kFloatAsDouble, Type::kBigEndian,
                                  Type::kLacking};
const char* name_of(Type type);
size_t size_of(Type type);  // of an element in memory
Hid memory_type(Type type);
Hid file_type(Type type);

// Small enough for every type but bytes, which hold the lowest eight bits.
inline int32_t number(uint32_t seed, uint64_t index) {
  uint64_t mixed = (index + 1) * 0x9E3779B97F4A7C15u ^ (uint64_t{seed} + 1) * 0xD1B54A32D192ED03u;
  mixed ^= mixed >> 32;
  mixed *= 0xD6E8FEB86659FD93u;
  return static_cast<int32_t>(mixed >> 49);
}
// Puts a number there; a field that the file lacks is left as it is.
void store(Type type, int32_t value, char* to);
// `count` whole elements, index for index.
Bytes image(Type type, uint32_t seed, uint64_t count);

// What a dataset or attribute of the file holds.
struct Model {
  enum class Rule : int {
    kList,    // `list`
    kNumber,  // number(seed, index)
    kSteps,   // seed + index / step, the same for so many elements at a time
  };
  std::string name;  // of an attribute of the root group after '@'
  Type type = Type::kFloat;
  uint64_t count = 0;
  Rule rule = Rule::kList;
  uint32_t seed = 0;
  uint64_t step = 1;
  std::vector<int32_t> list = {};

  int32_t at(uint64_t index) const {
    switch (rule) {
      case Rule::kList: return list[index];
      case Rule::kNumber: return number(seed, index);
      case Rule::kSteps: return static_cast<int32_t>(seed + index / step);
    }
    return 0;
  }
  // As reading all of it into zeroes finds it.
  Bytes bytes() const;
};

void save(const std::vector<Model>& models, const std::string& path);
std::vector<Model> load(const std::string& path);
// Reads all of it into host memory. "": it is as the model says; else where it first differs, or that it cannot be read.
std::string compare(hid_t file, const Model& model);
// "" or the first difference.
std::string difference(const Bytes& found, const Bytes& expected, size_t element);
// What HDF5 says about the call that has just failed.
std::string error_text();

}  // namespace tidelane::gpu_real
