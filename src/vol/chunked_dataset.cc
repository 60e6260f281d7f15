#include "vol/chunked_dataset.h"

#include <algorithm>
#include <utility>

#include "vol/transfer_outcome.h"

namespace tidelane::vol {

std::shared_ptr<const Pipeline> PipelineOf(const DatasetFacts& facts, DeflateWith deflate,
                                           Pipeline::Use use) {
  if (!facts.filters.has_value() || facts.filters->empty()) return nullptr;
  std::optional<Pipeline> pipeline = Pipeline::Make(*facts.filters, deflate, use);
  if (!pipeline.has_value()) return nullptr;
  return std::make_shared<const Pipeline>(*std::move(pipeline));
}

bool FindChunks(const DatasetFacts& facts, ChunkedDataset& found) {
  if (!facts.has_plain_chunks()) return false;
  found.grid = facts.grid;
  found.fill = facts.fill;
  return true;
}

bool FindExtent(LibraryState& library, void* dataset, hid_t dxpl, ChunkGrid& grid) {
  const h5::OwnedId space = AskDataset(library, dataset, H5VL_DATASET_GET_SPACE, dxpl);
  if (!space.valid() || library.hdf5().Sget_simple_extent_dims(space.get(), grid.extent.data(),
                                                               nullptr) != grid.rank) {
    return false;
  }
  const auto end = grid.extent.begin() + grid.rank;
  return std::find(grid.extent.begin(), end, 0u) == end;
}

std::optional<SelectedBox> BoxOf(h5::Library& hdf5, const ChunkGrid& grid, hid_t file_space) {
  if (file_space == h5::kDefault) {
    return SelectedBox{.rank = grid.rank, .extent = grid.extent, .box = {{}, grid.extent}};
  }
  std::optional<SelectedBox> wanted = BoxIn(hdf5, file_space);
  if (!wanted.has_value() || wanted->rank != grid.rank) return std::nullopt;
  const auto end = grid.extent.begin() + grid.rank;
  const bool same = std::equal(grid.extent.begin(), end, wanted->extent.begin());
  return same ? wanted : std::nullopt;
}

bool ChunkAddressesAreTheFiles(h5::Library& hdf5, uint64_t user_block) {
  unsigned major = 0, minor = 0, release = 0;
  if (user_block == 0) return true;
  if (hdf5.get_libversion(&major, &minor, &release) < 0) return false;
  return major > 1 || minor > 14 || release >= 4;
}

bool IsUnconverted(LibraryState& library, void* dataset, hid_t memory_type, hid_t dxpl) {
  h5::Library& hdf5 = library.hdf5();
  if (hdf5.Iget_type(memory_type) != H5I_DATATYPE) return false;
  const h5::OwnedId type = AskDataset(library, dataset, H5VL_DATASET_GET_TYPE, dxpl);
  return type.valid() && hdf5.Tequal(type.get(), memory_type) > 0;
}

bool IsPlainTransfer(LibraryState& library, hid_t dxpl) {
  return dxpl == library.default_dxpl || AsksForDefaults(library, dxpl);
}

}  // namespace tidelane::vol
