// Datasets with a model in memory, which follows every transfer by HDF5's own functions for memory alone: H5Dgather,
// H5Dscatter and H5Tconvert, given host memory. What a file must hold natively is then known for any selection and type.
//
// Invariant: after a transfer that succeeded, the model is the dataset and a memory's contents() are the memory.
// Thread safety: none.
#pragma once

#include <string>
#include <vector>

#include "conformance/fixture.h"
#include "gpu/gpu.h"

namespace tidelane::testing {

using Extent = std::vector<hsize_t>;

inline Hid simple(const Extent& extent, const Extent& limits = {}) {
  return Hid(H5Screate_simple(static_cast<int>(extent.size()), extent.data(),
                              limits.empty() ? nullptr : limits.data()));
}
inline Hid select(Hid space, const Extent& start, const Extent& stride, const Extent& count,
                  const Extent& block = {}, H5S_seloper_t how = H5S_SELECT_SET) {
  EXPECT_GE(H5Sselect_hyperslab(space, how, start.data(), stride.empty() ? nullptr : stride.data(),
                                count.data(), block.empty() ? nullptr : block.data()),
            0);
  return space;
}

class Twin {
 public:
  struct Options {
    hid_t type = H5T_NATIVE_INT;
    Extent limits = {};
    hid_t creation = H5P_DEFAULT;
    hid_t access = H5P_DEFAULT;
  };
  Twin(hid_t location, const std::string& name, const Extent& extent, const Options& options);
  Twin(hid_t location, const std::string& name, const Extent& extent)
      : Twin(location, name, extent, Options()) {}

  hid_t dataset() const { return dataset_; }
  const std::string& name() const { return name_; }
  hid_t type() const { return type_; }
  const Extent& extent() const { return extent_; }
  size_t bytes() const { return model_.size(); }
  Hid space() const { return simple(extent_); }

  // As H5Dwrite and H5Dread, and the same of the model; where the call fails, the model stays as it is.
  herr_t write(const Memory& memory, hid_t memory_space = H5S_ALL, hid_t file_space = H5S_ALL,
               hid_t memory_type = H5I_INVALID_HID, hid_t list = H5P_DEFAULT);
  herr_t read(Memory& memory, hid_t memory_space = H5S_ALL, hid_t file_space = H5S_ALL,
              hid_t memory_type = H5I_INVALID_HID, hid_t list = H5P_DEFAULT);
  // The model's half alone, for transfers that the test makes in another way.
  void model_write(const Bytes& memory, hid_t memory_space = H5S_ALL, hid_t file_space = H5S_ALL,
                   hid_t memory_type = H5I_INVALID_HID);
  void model_read(Bytes& memory, hid_t memory_space = H5S_ALL, hid_t file_space = H5S_ALL,
                  hid_t memory_type = H5I_INVALID_HID);
  // Grows (or shrinks) the first dimension; new elements are zero.
  void resize(hsize_t rows);
  void reopen(hid_t location);
  void close() { dataset_.reset(); }
  // Leaves the model in a folder, for compare_with_models() in another process.
  void leave(const std::string& folder) const;

 private:
  hid_t memory_type(hid_t given) const { return given == H5I_INVALID_HID ? type_.get() : given; }

  std::string name_;
  Hid type_;
  Extent extent_;
  Bytes model_;
  Hid dataset_;
};

// Compares the file's datasets with the models that were left in the folder; at least one.
void compare_with_models(const std::string& path, const std::string& folder);

}  // namespace tidelane::testing
