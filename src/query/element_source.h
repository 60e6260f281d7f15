/// \file
/// Where a filter gets elements from: HDF5, for the program's thread (columns.h), or what lanes read (late_scan.h).
///
/// Thread safety: one thread at a time.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "chunk/chunk_grid.h"

namespace tidelane::query {

class ElementSource {
 public:
  virtual ~ElementSource() = default;
  /// The column's elements of a box, one after another; valid until another box of it is loaded.
  virtual Status Load(size_t column, const Box& box, const std::byte*& elements) = 0;
};

}  // namespace tidelane::query
