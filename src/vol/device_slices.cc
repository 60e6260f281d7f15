#include "vol/device_slices.h"

#include <algorithm>

#include "h5/error.h"
#include "vol/call_inside.h"
#include "vol/chunked_dataset.h"
#include "vol/dataset_catalogue.h"

namespace tidelane::vol {

namespace {

// Along one dimension; 1 where there are no chunks.
uint64_t ChunkAlong(LibraryState& library, void* dataset, int dimension, hid_t dxpl) {
  const uint64_t chunk = FactsOf(library, dataset, dxpl).grid.chunk[static_cast<size_t>(dimension)];
  return chunk != 0 ? chunk : 1;
}

}  // namespace

std::optional<DeviceSlices> DeviceSlices::Of(LibraryState& library, const Writing& whole,
                                             hid_t dxpl, uint64_t most) {
  h5::Library& hdf5 = library.hdf5();
  // A public function that fails prints it; H5S_BLOCK and H5S_PLIST are no spaces.
  const auto is_space = [&](hid_t id) {
    return id == h5::kDefault || hdf5.Iget_type(id) == H5I_DATASPACE;
  };
  if (!is_space(whole.memory_space)) return std::nullopt;
  if (whole.memory_space != h5::kDefault &&
      static_cast<uint64_t>(std::max<hssize_t>(0, hdf5.Sget_select_npoints(whole.memory_space))) *
              hdf5.Tget_size(whole.memory_type) <=
          most) {
    return std::nullopt;  // as nearly all are: no more is asked of them
  }
  if (!is_space(whole.file_space)) return std::nullopt;
  DeviceSlices slices(library, whole);
  slices.file_space_ = whole.file_space == h5::kDefault
                           ? AskDataset(library, whole.dataset, H5VL_DATASET_GET_SPACE, dxpl)
                           : h5::OwnedId(hdf5, hdf5.Scopy(whole.file_space));
  if (!slices.file_space_.valid()) return std::nullopt;
  slices.memory_space_ =
      h5::OwnedId(hdf5, hdf5.Scopy(whole.memory_space == h5::kDefault ? slices.file_space_.get()
                                                                      : whole.memory_space));
  const std::optional<SelectedBox> in_file = BoxIn(hdf5, slices.file_space_.get());
  const std::optional<SelectedBox> in_memory =
      slices.memory_space_.valid() ? BoxIn(hdf5, slices.memory_space_.get()) : std::nullopt;
  if (!in_file.has_value() || !in_memory.has_value() || in_file->rank != in_memory->rank ||
      in_file->box.size != in_memory->box.size) {
    return std::nullopt;
  }
  const uint64_t bytes = in_file->points() * hdf5.Tget_size(whole.memory_type);
  if (bytes <= most) return std::nullopt;
  slices.in_file_ = *in_file;
  slices.in_memory_ = *in_memory;
  while (slices.along_ + 1 < in_file->rank && in_file->box.size[slices.along_] == 1)
    ++slices.along_;
  slices.rows_ = most / (bytes / in_file->box.size[slices.along_]);
  if (slices.rows_ == 0) return std::nullopt;
  // A slice that ends inside of chunks would have HDF5 filter all of its chunks.
  const uint64_t chunk = ChunkAlong(library, whole.dataset, slices.along_, dxpl);
  if (slices.rows_ >= chunk) slices.rows_ -= slices.rows_ % chunk;
  return slices;
}

bool DeviceSlices::Select(const h5::OwnedId& space, const SelectedBox& box, uint64_t rows) {
  Coordinates start = box.box.start;
  Coordinates size = box.box.size;
  start[along_] += begin_;
  size[along_] = rows;
  return library_.hdf5().Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr,
                                           size.data(), nullptr) >= 0;
}

// Closing ids forgets what has failed.
DeviceSlices::~DeviceSlices() {
  if (!file_space_.valid() && !memory_space_.valid()) return;  // moved from
  const h5::KeepErrorStack keep(library_.hdf5());
  file_space_.Reset();
  memory_space_.Reset();
}

DeviceSlices::Step DeviceSlices::Next(Writing& slice) {
  const uint64_t left = in_file_.box.size[along_] - begin_;
  if (left == 0) return Step::kEnd;
  // All but the first begin where a chunk does.
  const uint64_t rows = std::min(rows_ - (in_file_.box.start[along_] + begin_) % rows_, left);
  if (!Select(file_space_, in_file_, rows) || !Select(memory_space_, in_memory_, rows))
    return Step::kFailed;
  slice = whole_;
  slice.file_space = file_space_.get();
  slice.memory_space = memory_space_.get();
  begin_ += rows;
  return Step::kSlice;
}

EmptyRows::EmptyRows(LibraryState& library, size_t count, void* const datasets[], hid_t dxpl)
    : library_(library), buffers_(count, this) {
  h5::Library& hdf5 = library.hdf5();
  const hsize_t one = 1;
  for (size_t i = 0; i < count; ++i) {
    const hid_t file =
        spaces_.emplace_back(AskDataset(library, datasets[i], H5VL_DATASET_GET_SPACE, dxpl)).get();
    const hid_t memory =
        spaces_.emplace_back(h5::OwnedId(hdf5, hdf5.Screate_simple(1, &one, nullptr))).get();
    hdf5.Sselect_none(file);
    hdf5.Sselect_none(memory);
    file_ids_.push_back(file);
    memory_ids_.push_back(memory);
  }
}

EmptyRows::~EmptyRows() {
  const h5::KeepErrorStack keep(library_.hdf5());
  spaces_.clear();
}

}  // namespace tidelane::vol
