/// \file
/// Hits as a selection of a dataspace: what region references are made of, and what H5Dread takes.
///
/// HDF5 keeps a selection in memory, so this is the one result that is not bounded: 16 bytes a run of hits here, and what HDF5 has for it.
/// Runs are united pair by pair (one after the other would take time with the square of their number); where most hits are alone they
/// are given as points.
///
/// Thread safety: under HDF5's lock.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"
#include "h5/owned_id.h"
#include "predicate/bits.h"
#include "query/box_reader.h"

namespace tidelane::query {

class Scan;

class Selection {
 public:
  /// Of an array of that shape.
  explicit Selection(const Layout& layout) : layout_(layout) {}
  /// Adds the hits of a block, whose first element is at that row-major position.
  void Add(uint64_t first, const predicate::Bits& bits);
  uint64_t hits() const { return hits_; }
  /// Selects them in `space`, of that extent, in row-major order; all of it where everything is a hit.
  Status Select(h5::Library& hdf5, h5::OwnedId& space) const;

 private:
  Status Points(h5::Library& hdf5, hid_t space) const;
  h5::OwnedId Runs(h5::Library& hdf5, hid_t extent, size_t first, size_t last) const;

  Layout layout_;
  std::vector<std::pair<uint64_t, uint64_t>> runs_;  // {first, one past the last}
  uint64_t hits_ = 0;
};

/// Goes through all of a scan at once: `space` gets its columns' dataspace with what was found selected, and stays as it is if that is nothing.
Status Search(Scan& scan, h5::OwnedId& space);

}  // namespace tidelane::query
