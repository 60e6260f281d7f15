/// \file
/// The arrays of H5Dwrite_multi and H5Dread_multi, and some of their rows.
///
/// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <vector>

#include "h5/hdf5.h"

namespace tidelane::vol {

/// `Buffer` is `void*` or `const void*`.
template <typename Buffer>
struct Transfers {
  size_t count;
  void** datasets;
  hid_t* memory_types;
  hid_t* memory_spaces;
  hid_t* file_spaces;
  Buffer* buffers;
};

/// Rows that were picked: HDF5's arrays are not ours to change.
template <typename Buffer>
class Rest {
 public:
  void Add(const Transfers<Buffer>& all, size_t i) {
    Add(all, i, all.memory_spaces[i], all.buffers[i]);
  }
  /// The row, with other memory.
  void Add(const Transfers<Buffer>& all, size_t i, hid_t memory_space, Buffer buffer) {
    datasets_.push_back(all.datasets[i]);
    memory_types_.push_back(all.memory_types[i]);
    memory_spaces_.push_back(memory_space);
    file_spaces_.push_back(all.file_spaces[i]);
    buffers_.push_back(buffer);
  }
  Transfers<Buffer> rows() {
    return {datasets_.size(),      datasets_.data(),    memory_types_.data(),
            memory_spaces_.data(), file_spaces_.data(), buffers_.data()};
  }

 private:
  std::vector<void*> datasets_;
  std::vector<hid_t> memory_types_, memory_spaces_, file_spaces_;
  std::vector<Buffer> buffers_;
};

}  // namespace tidelane::vol
