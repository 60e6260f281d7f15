// A filter of the program's own: HDF5 has it from the program (H5Zregister), the tools that compare finished files from
// a filter plugin (own_filter.cc).
//
// Its two values: what it does (0: turns bits over, 1: also puts four bytes in front), and whether it refuses each chunk
// whose first byte can be divided by three. Thread safety: no state.
#pragma once

#include <cstddef>
#include <cstring>

#include <hdf5.h>

namespace tidelane::stress {

inline constexpr H5Z_filter_t kOwnFilter = 399;  // from those for testing
inline constexpr size_t kOwnHeader = 4;

inline size_t own_filter(unsigned flags, size_t values, const unsigned* value, size_t bytes,
                         size_t* room, void** buffer) {
  const bool reads = (flags & H5Z_FLAG_REVERSE) != 0;
  const bool longer = values > 0 && value[0] == 1;
  auto* const from = static_cast<unsigned char*>(*buffer);
  if (!reads && values > 1 && value[1] == 1 && bytes > 0 && from[0] % 3 == 0) return 0;
  if (reads && longer && bytes < kOwnHeader) return 0;
  const size_t header = longer ? kOwnHeader : 0;
  const size_t size = reads ? bytes - header : bytes + header;
  auto* const to = static_cast<unsigned char*>(H5allocate_memory(size + 1, false));
  if (to == nullptr) return 0;
  if (!reads) std::memset(to, 0x77, header);
  const size_t skipped = reads ? header : 0;
  const size_t behind = reads ? 0 : header;
  for (size_t i = 0; i + header < (reads ? bytes : size); ++i) {
    to[behind + i] = static_cast<unsigned char>(~from[skipped + i]);
  }
  H5free_memory(*buffer);
  *buffer = to;
  *room = size;
  return size;
}

// Nothing that has no fixed size.
inline htri_t own_filter_can_apply(hid_t, hid_t type, hid_t) {
  return H5Tget_class(type) != H5T_STRING;
}

inline const H5Z_class2_t kOwnFilterClass{H5Z_CLASS_T_VERS,     kOwnFilter, 1,         1, "stress",
                                          own_filter_can_apply, nullptr,    own_filter};

}  // namespace tidelane::stress
