#include "vol/selected_box.h"

#include <algorithm>

namespace tidelane::vol {

namespace {

static_assert(sizeof(hsize_t) == sizeof(uint64_t) && H5S_MAX_RANK == kMaxRank);

// Only what is known to succeed is asked: a public function that fails prints it.
bool IsSpace(h5::Library& hdf5, hid_t id) { return hdf5.Iget_type(id) == H5I_DATASPACE; }

bool HyperslabIn(h5::Library& hdf5, hid_t space, SelectedBox& selected) {
  hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
  hsize_t low[H5S_MAX_RANK], high[H5S_MAX_RANK];
  if (hdf5.Sselect_valid(space) <= 0 || hdf5.Sget_select_npoints(space) <= 0 ||
      hdf5.Sis_regular_hyperslab(space) <= 0 ||
      hdf5.Sget_regular_hyperslab(space, start, stride, count, block) < 0 ||
      hdf5.Sget_select_bounds(space, low, high) < 0) {
    return false;
  }
  for (int d = 0; d < selected.rank; ++d) {
    if (count[d] == H5S_UNLIMITED || block[d] == H5S_UNLIMITED) return false;
    if (count[d] != 1 && stride[d] != block[d]) return false;
    selected.box.start[d] = start[d];
    selected.box.size[d] = count[d] * block[d];
    // The bounds know of H5Soffset_simple.
    if (low[d] != start[d] || high[d] - low[d] + 1 != selected.box.size[d]) return false;
  }
  return true;
}

// Whether the box is one run of its array, which begins `before` elements after the array.
bool IsRun(const SelectedBox& selected, uint64_t& before) {
  before = 0;
  bool whole = true;  // dimensions behind this one are covered
  bool run = true;
  uint64_t unit = 1;
  for (int d = selected.rank - 1; d >= 0; --d) {
    run = run && (whole || selected.box.size[d] == 1);
    whole = whole && selected.box.size[d] == selected.extent[d];
    before += selected.box.start[d] * unit;
    unit *= selected.extent[d];
  }
  return run;
}

}  // namespace

uint64_t SelectedBox::points() const {
  uint64_t points = 1;
  for (int d = 0; d < rank; ++d) points *= box.size[d];
  return points;
}

std::optional<SelectedBox> BoxIn(h5::Library& hdf5, hid_t space) {
  if (!IsSpace(hdf5, space)) return std::nullopt;
  SelectedBox selected;
  selected.rank = hdf5.Sget_simple_extent_dims(space, selected.extent.data(), nullptr);
  if (selected.rank <= 0) return std::nullopt;
  const auto end = selected.extent.begin() + selected.rank;
  if (std::find(selected.extent.begin(), end, 0u) != end) return std::nullopt;
  const H5S_sel_type kind = hdf5.Sget_select_type(space);
  if (kind == H5S_SEL_ALL) {
    selected.box.size = selected.extent;
    return selected;
  }
  if (kind != H5S_SEL_HYPERSLABS || !HyperslabIn(hdf5, space, selected)) return std::nullopt;
  return selected;
}

std::optional<MemoryLayout> MemoryFor(h5::Library& hdf5, const SelectedBox& wanted,
                                      hid_t file_space, hid_t memory_space, uint64_t element) {
  const Coordinates& size = wanted.box.size;
  if (memory_space == kBlockSpace) return MemoryLayout::Packed(wanted.rank, size, element);
  if (memory_space ==
      h5::kDefault) {  // as the selection lies in the dataset, or packed if it is all
    if (file_space == h5::kDefault) return MemoryLayout::Packed(wanted.rank, size, element);
    return MemoryLayout::Inside(wanted.rank, wanted.extent, wanted.box.start, element);
  }
  const std::optional<SelectedBox> memory = BoxIn(hdf5, memory_space);
  if (!memory.has_value() || memory->points() != wanted.points()) return std::nullopt;
  uint64_t before = 0;
  if (IsRun(*memory, before)) {
    return MemoryLayout::Packed(wanted.rank, size, element, before * element);
  }
  if (memory->rank != wanted.rank || memory->box.size != size) return std::nullopt;
  return MemoryLayout::Inside(wanted.rank, memory->extent, memory->box.start, element);
}

}  // namespace tidelane::vol
