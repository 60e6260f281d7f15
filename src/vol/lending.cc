#include "vol/lending.h"

#include "h5/owned_id.h"
#include "vol/find_file.h"

namespace tidelane::vol {

namespace {

h5::OwnedId SpaceOf(LibraryState& library, void* dataset) {
  H5VL_dataset_get_args_t get{};
  get.op_type = H5VL_DATASET_GET_SPACE;
  const auto native = library.hdf5().native().dataset_cls.get;
  if (native(dataset, &get, library.default_dxpl, nullptr) < 0) return {};
  return {library.hdf5(), get.args.get_space.space_id};
}

// From the first selected element to the last.
std::span<const std::byte> Selected(LibraryState& library, hid_t space, const Writing& writing) {
  h5::Library& hdf5 = library.hdf5();
  // Asked for its bounds a space that selects nothing fails.
  if (hdf5.Sget_select_npoints(space) <= 0) return {};
  hsize_t extent[H5S_MAX_RANK];
  hsize_t low[H5S_MAX_RANK];
  hsize_t high[H5S_MAX_RANK];
  const int rank = hdf5.Sget_simple_extent_dims(space, extent, nullptr);
  if (rank <= 0 || hdf5.Sget_select_bounds(space, low, high) < 0) return {};
  uint64_t first = 0;
  uint64_t last = 0;
  for (int i = 0; i < rank; ++i) {
    first = first * extent[i] + low[i];
    last = last * extent[i] + high[i];
  }
  const size_t size = hdf5.Tget_size(writing.memory_type);
  return {static_cast<const std::byte*>(writing.buffer) + first * size, (last - first + 1) * size};
}

uint64_t CopyLimit(LibraryState& library, const Writing& writing, const Transfer& transfer) {
  if (transfer.copy_limit.has_value()) return *transfer.copy_limit;
  if (!library.limits_copies) return UINT64_MAX;
  const std::shared_ptr<File> file = FileOf(library, writing.dataset, H5I_DATASET);
  return file == nullptr ? UINT64_MAX : file->settings().copy_limit;
}

}  // namespace

std::span<const std::byte> SelectedMemory(LibraryState& library, const Writing& writing) {
  hid_t space = writing.memory_space == h5::kDefault ? writing.file_space : writing.memory_space;
  h5::OwnedId own;
  if (space == h5::kDefault) {
    own = SpaceOf(library, writing.dataset);
    space = own.get();
  }
  // H5S_BLOCK and H5S_PLIST are small numbers, too: no extent says how long such a buffer is.
  constexpr hid_t kSpecialIds = 2;
  if (space <= kSpecialIds) return {};
  return Selected(library, space, writing);
}

std::span<const std::byte> BufferToLend(LibraryState& library, const Writing& writing,
                                        const Transfer& transfer) {
  if (library.requests.any_failed()) return {};
  const uint64_t limit = CopyLimit(library, writing, transfer);
  if (limit == UINT64_MAX) return {};
  const std::span<const std::byte> selected = SelectedMemory(library, writing);
  return selected.size() > limit ? selected : std::span<const std::byte>();
}

}  // namespace tidelane::vol
