/// \file
/// What H5Dwrite and H5Dwrite_multi were asked for.
///
/// Thread safety: values that point to the caller's arrays.
#pragma once

#include <cstddef>

#include "h5/hdf5.h"
#include "vol/transfers.h"

namespace tidelane::vol {

/// Of one dataset.
struct Writing {
  void* dataset;
  hid_t memory_type;
  hid_t memory_space;
  hid_t file_space;
  const void* buffer;
};

/// Of several.
using Writes = Transfers<const void*>;

inline Writing At(const Writes& writes, size_t i) {
  return {writes.datasets[i], writes.memory_types[i], writes.memory_spaces[i],
          writes.file_spaces[i], writes.buffers[i]};
}

}  // namespace tidelane::vol
