// Parts of a dataset: all, regular hyperslabs (stride, block), a union of two, or points, with a
// dense or strided memory buffer. Drawn once, applied on both sides.
//
// Thread safety: plain values.
#pragma once

#include <string>
#include <vector>

#include "stress/catalog.h"
#include "stress/rng.h"

namespace tidelane::stress {

struct Selection {
  enum class Shape : uint8_t { All, Hyperslab, Union, Points };
  Shape shape = Shape::All;
  int rank = 1;
  Dims start{}, stride{1, 1, 1}, count{1, 1, 1}, block{1, 1, 1};
  Dims start2{}, count2{1, 1, 1};
  std::vector<hsize_t> points;  // rank coordinates for each
  bool strided_memory = false;  // every second element of a buffer of twice the size

  // A block of whole chunks; memory without gaps.
  static Selection draw_chunks(Rng& rng, const Dataset& dataset);
  static Selection draw(Rng& rng, const Dataset& dataset);

  // Applies itself to the dataset's real dataspace; false when it does not fit (stale catalog).
  bool apply(hid_t file_space) const;
  // A memory dataspace for `selected` elements, and the elements its buffer needs.
  Hid memory_space(size_t selected, size_t* buffer_elements) const;
  std::string text() const;
};

}  // namespace tidelane::stress
