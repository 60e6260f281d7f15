/// \file
/// What a query's view has: regions of datasets, each with the row-major positions of its elements.
///
/// Thread safety: none.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/fixture.h"
#include "tidelane_query.h"

namespace tidelane::testing {

/// Ascending.
inline std::vector<hsize_t> selected(hid_t space) {
  const auto count = static_cast<hsize_t>(H5Sget_select_npoints(space));
  const int rank = H5Sget_simple_extent_ndims(space);
  hsize_t extent[H5S_MAX_RANK];
  H5Sget_simple_extent_dims(space, extent, nullptr);
  std::vector<hsize_t> found;
  const auto note = [&](const hsize_t* at) {
    hsize_t position = 0;
    for (int d = 0; d < rank; ++d) position = position * extent[d] + at[d];
    found.push_back(position);
  };
  if (H5Sget_select_type(space) == H5S_SEL_ALL) {
    for (hsize_t i = 0; i < count; ++i) found.push_back(i);
    return found;
  }
  const auto coordinates = static_cast<hsize_t>(rank);
  if (H5Sget_select_type(space) == H5S_SEL_POINTS) {
    std::vector<hsize_t> points(count * coordinates);
    EXPECT_GE(H5Sget_select_elem_pointlist(space, 0, count, points.data()), 0);
    for (hsize_t i = 0; i < count; ++i) note(&points[i * coordinates]);
    return found;
  }
  const auto blocks = static_cast<hsize_t>(H5Sget_select_hyper_nblocks(space));
  std::vector<hsize_t> corners(2 * coordinates * blocks);
  EXPECT_GE(H5Sget_select_hyper_blocklist(space, 0, blocks, corners.data()), 0);
  for (hsize_t i = 0; i < blocks; ++i) {
    const hsize_t* const first = &corners[2 * coordinates * i];
    std::vector<hsize_t> at(first, first + rank);
    for (int d = rank - 1; d >= 0;) {
      note(at.data());
      for (d = rank - 1; d >= 0 && ++at[d] > first[rank + d]; --d) at[d] = first[d];
    }
  }
  std::ranges::sort(found);
  return found;
}

struct Region {
  std::string name;
  std::vector<hsize_t> positions;
  bool operator==(const Region&) const = default;
};

/// How many regions a view has, wherever they lead to.
inline hssize_t references_in(hid_t view) {
  const Hid dataset(H5Dopen2(view, H5Q_VIEW_REF_REG_NAME, H5P_DEFAULT));
  return H5Sget_simple_extent_npoints(Hid(H5Dget_space(dataset)));
}

/// In their order; none where the view has none.
inline std::vector<Region> regions(hid_t view) {
  if (H5Lexists(view, H5Q_VIEW_REF_REG_NAME, H5P_DEFAULT) <= 0) return {};
  const Hid dataset(H5Dopen2(view, H5Q_VIEW_REF_REG_NAME, H5P_DEFAULT));
  std::vector<H5R_ref_t> references(
      static_cast<size_t>(H5Sget_simple_extent_npoints(Hid(H5Dget_space(dataset)))));
  EXPECT_GE(H5Dread(dataset, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, references.data()), 0);
  std::vector<Region> found;
  for (H5R_ref_t& reference : references) {
    char name[256] = "";
    EXPECT_GE(H5Rget_obj_name(&reference, H5P_DEFAULT, name, sizeof name), 0) << error_text();
    found.push_back({name, selected(Hid(H5Ropen_region(&reference, H5P_DEFAULT, H5P_DEFAULT)))});
    H5Rdestroy(&reference);
  }
  return found;
}

}  // namespace tidelane::testing
