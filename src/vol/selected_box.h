/// \file
/// Selections as boxes: what of a dataset a read wants, and where in memory that goes.
///
/// Invariant: nothing is said of a selection that is not one box (every element of it once, in row-major
/// order), of one that HDF5 would refuse, and of an empty one.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <optional>

#include "chunk/chunk_grid.h"
#include "h5/library.h"

namespace tidelane::vol {

/// Whether it is the identifier of a dataspace: H5S_ALL, H5S_BLOCK and H5S_PLIST are small numbers, of which a public function that asks
/// for a space prints an error.
inline bool IsDataspace(hid_t space) { return space > 2; }

/// H5S_BLOCK as HDF5's callbacks get it: memory without gaps, as long as it takes. (H5S_ALL is 0, H5S_PLIST 2.)
inline constexpr hid_t kBlockSpace = 1;

struct SelectedBox {
  int rank = 0;
  Coordinates extent{};  ///< of the whole dataspace
  Box box;

  uint64_t points() const;
};

/// What is selected in `space`, an id.
std::optional<SelectedBox> BoxIn(h5::Library& hdf5, hid_t space);

/// Where in memory the elements of `wanted` go, `memory_space` being as H5Dread was given it; `file_space`
/// as well.
std::optional<MemoryLayout> MemoryFor(h5::Library& hdf5, const SelectedBox& wanted,
                                      hid_t file_space, hid_t memory_space, uint64_t element);

}  // namespace tidelane::vol
