// Property lists with everything a program may put into them, drawn at random (STRESS_LISTS=xafcd; a letter
// for each kind of list). Without that each list is
// what it always was, and so are the sequences of operations.
//
// Invariant: a list depends on its seed alone, and both sides get the same: what is left out here is what native HDF5 does not
// do alike twice. Thread safety: none needed; what the callbacks count belongs to the caller.
#pragma once

#include <cstdint>
#include <string>

#include "stress/op.h"

namespace tidelane::stress::lists {

// What the callbacks of one transfer list have seen.
struct Calls {
  int64_t allocations = 0;
  int64_t conversions = 0;
};

Hid transfer(const Op& op, Calls& calls);     // `calls` must live as long as the list is used
Hid dataset_access(const std::string& path);  // the same for each open of a path
void more_access(hid_t fapl, uint64_t seed);  // seed 0: nothing
void more_creation(hid_t fcpl, uint64_t seed);
void more_dataset_creation(hid_t dcpl, const Dataset& dataset, uint64_t seed);

// H5Dread_chunk, which is two functions in HDF5 2 (this program is run with other libraries than it was linked to).
herr_t read_chunk(hid_t dset, hid_t dxpl, const hsize_t* offset, uint32_t* mask, void* buffer);

}  // namespace tidelane::stress::lists
