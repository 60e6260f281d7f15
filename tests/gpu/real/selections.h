// What a transfer selects, in memory and in the file: for HDF5, and as this program counts it.
//
// Invariant: `at` lists the selected elements in the order in which HDF5 goes through them; both sides of a Selection have as many.
// Thread safety: none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <hdf5.h>

#include "support/hid.h"

namespace tidelane::gpu_real {

struct Side {
  std::vector<hsize_t> extent;
  std::function<void(hid_t)> select;  // none: all of it
  std::vector<size_t> at;

  size_t elements() const;
  testing::Hid space() const;  // not valid: H5S_ALL
};

struct Selection {
  std::string name;
  Side memory;
  Side file;
};

// All, boxes, strided; an irregular union and strided blocks unless `scale`, by which the first extent grows, is large; points
// where it is 1.
std::vector<Selection> selections(size_t scale);
// All elements of an extent.
Selection everything(const std::vector<hsize_t>& extent);

}  // namespace tidelane::gpu_real
