#include "vol/read_dataset.h"

#include <algorithm>
#include <utility>

#include "base/counters.h"
#include "h5/driver.h"
#include "vol/enter.h"
#include "vol/find_file.h"

namespace tidelane::vol {

namespace {

// Chunks in all maps together, which have 16 bytes for each.
constexpr uint64_t kMostMapped = 4u << 20;
// A worker holds one chunk and what is stored of it.
constexpr uint64_t kMostChunkBytes = 64u << 20;

// HDF5 reads plain elements one to one from our driver, or not at all.
bool IsDirect(h5::Library& hdf5, hid_t dcpl) {
  const H5D_layout_t layout = hdf5.Pget_layout(dcpl);
  return (layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED) && hdf5.Pget_external_count(dcpl) == 0;
}

// HDF5 finds the chunks of a dataset with one unlimited dimension with an extensible array, in which that dimension is the
// slowest. What lists chunks (H5Dchunk_iter, H5Dget_chunk_info_by_coord) takes them in order as if it were the first
// (H5Dearray.c, H5D__earray_idx_iterate_cb; seen with 1.14.6 and 2.0), and names another chunk's address where it is not.
bool ListIsFalse(Instance& instance, void* dataset) {
  const h5::OwnedId space =
      AskDataset(instance, dataset, H5VL_DATASET_GET_SPACE, instance.default_dxpl);
  if (!space.valid()) return true;
  hsize_t extent[H5S_MAX_RANK], most[H5S_MAX_RANK];
  const int rank = instance.hdf5().Sget_simple_extent_dims(space.get(), extent, most);
  return rank > 0 && most[0] != H5S_UNLIMITED && std::count(most, most + rank, H5S_UNLIMITED) == 1;
}

bool HasChunks(Instance& instance, const Reading& reading, hid_t type, hid_t dcpl,
               ReadDataset& known) {
  h5::Library& hdf5 = instance.hdf5();
  if (hdf5.Pget_layout(dcpl) != H5D_CHUNKED) return false;
  const int filters = hdf5.Pget_nfilters(dcpl);
  if (filters > 0) {
    known.pipeline = PipelineOf(hdf5, dcpl, DeflateWith::kLibdeflate, Pipeline::Use::kDecode);
  }
  if (filters < 0 || (filters > 0 && known.pipeline == nullptr) ||
      !FindChunks(hdf5, type, dcpl, known) || known.grid.ChunkBytes() > kMostChunkBytes) {
    Count(Fallback::kReadFilter);
    return false;
  }
  if (ListIsFalse(instance, reading.dataset)) {
    Count(Fallback::kReadIndex);
    return false;
  }
  const std::optional<uint64_t> cache =
      ChunkCacheOf(instance, reading.dataset, instance.default_dxpl);
  known.cache_bytes = cache.value_or(0);
  return cache.has_value();
}

void Look(Instance& instance, const Reading& reading, hid_t type, ReadDataset& known) {
  const std::shared_ptr<File> file = FileOf(instance, reading.dataset, H5I_DATASET);
  if (file == nullptr) return;
  known.file = file;
  const h5::OwnedId dcpl = CreationListOf(instance, reading.dataset, type, instance.default_dxpl);
  if (!dcpl.valid()) return;
  const bool chunks = HasChunks(instance, reading, type, dcpl.get(), known);
  const h5::AboveDriver above = h5::Driver().above(instance.slot, *file);
  if (above.page_buffer) return;
  known.direct = IsDirect(instance.hdf5(), dcpl.get());
  known.chunks =
      known.direct && chunks && ChunkAddressesAreTheFiles(instance.hdf5(), above.base_address);
}

}  // namespace

ReadDatasets& ReadDatasets::Of(Instance& instance) {
  if (instance.read_datasets == nullptr) instance.read_datasets = new ReadDatasets;
  return *instance.read_datasets;
}

ReadDataset& ReadDatasets::Know(Instance& instance, const Reading& reading) {
  const auto [at, added] = known_.try_emplace(reading.dataset);
  if (added) {
    at->second.number = ++numbers_;
    const h5::OwnedId type =
        AskDataset(instance, reading.dataset, H5VL_DATASET_GET_TYPE, reading.dxpl);
    const auto look = [&] { Look(instance, reading, type.get(), at->second); };
    static_cast<void>(Aside(instance, reading.dxpl, look));  // not looked at: HDF5 reads it
  }
  return at->second;
}

void ReadDatasets::MakeRoom(uint64_t chunks) {
  for (const auto& [dataset, known] : known_) {
    if (known.map != nullptr) chunks += known.map->size();
  }
  if (chunks <= kMostMapped) return;
  for (auto& [dataset, known] : known_) known.map = nullptr;
}

}  // namespace tidelane::vol
