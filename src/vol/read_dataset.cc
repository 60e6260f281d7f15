#include "vol/read_dataset.h"

#include <algorithm>
#include <utility>

#include "base/counters.h"
#include "vol/call_inside.h"

namespace tidelane::vol {

namespace {

// Chunks in all maps together, which have 16 bytes for each.
constexpr uint64_t kMostMapped = 4u << 20;
// A worker holds one chunk and what is stored of it.
constexpr uint64_t kMostChunkBytes = 64u << 20;

// HDF5 reads plain elements one to one from our driver, or not at all.
bool IsDirect(const DatasetFacts& facts) {
  return (facts.layout == H5D_CONTIGUOUS || facts.layout == H5D_CHUNKED) && !facts.external;
}

// HDF5 finds the chunks of a dataset with one unlimited dimension with an extensible array, in which that dimension is the
// slowest. What lists chunks (H5Dchunk_iter, H5Dget_chunk_info_by_coord) takes them in order as if it were the first
// (H5Dearray.c, H5D__earray_idx_iterate_cb; seen with 1.14.6 and 2.0), and names another chunk's address where it is not.
bool ListIsFalse(LibraryState& library, void* dataset) {
  const h5::OwnedId space =
      AskDataset(library, dataset, H5VL_DATASET_GET_SPACE, library.default_dxpl);
  if (!space.valid()) return true;
  hsize_t extent[H5S_MAX_RANK], most[H5S_MAX_RANK];
  const int rank = library.hdf5().Sget_simple_extent_dims(space.get(), extent, most);
  return rank > 0 && most[0] != H5S_UNLIMITED && std::count(most, most + rank, H5S_UNLIMITED) == 1;
}

bool HasChunks(LibraryState& library, void* dataset, const DatasetFacts& facts,
               ReadDataset& known) {
  if (facts.layout != H5D_CHUNKED) return false;
  const bool filtered = !facts.filters.has_value() || !facts.filters->empty();
  if (filtered)
    known.pipeline = PipelineOf(facts, DeflateWith::kLibdeflate, Pipeline::Use::kDecode);
  if ((filtered && known.pipeline == nullptr) || !FindChunks(facts, known) ||
      known.grid.ChunkBytes() > kMostChunkBytes) {
    Count(Fallback::kReadFilter);
    return false;
  }
  if (ListIsFalse(library, dataset)) {
    Count(Fallback::kReadIndex);
    return false;
  }
  known.cache_bytes = facts.cache_bytes.value_or(0);
  return facts.cache_bytes.has_value();
}

void Look(LibraryState& library, void* dataset, const DatasetFacts& facts, ReadDataset& known) {
  known.file = facts.file;
  if ((facts.open == nullptr && !facts.of_ranks) || facts.layout == H5D_LAYOUT_ERROR) return;
  // Where chunks are is metadata.
  const bool chunks = !facts.metadata_together && HasChunks(library, dataset, facts, known);
  if (facts.page_buffer) return;
  known.direct = IsDirect(facts);
  known.chunks =
      known.direct && chunks && ChunkAddressesAreTheFiles(library.hdf5(), facts.user_block);
}

}  // namespace

ReadDataset& ReadDatasetOf(LibraryState& library, const Reading& reading) {
  DatasetEntry& entry = DatasetCatalogue::Of(library).At(reading.dataset);
  if (entry.Find<ReadDataset>() == nullptr) {
    const DatasetFacts& facts = FactsOf(library, reading.dataset, reading.dxpl);
    ReadDataset& known = entry.Get<ReadDataset>();
    const auto look = [&] { Look(library, reading.dataset, facts, known); };
    static_cast<void>(Aside(library, reading.dxpl, look));  // not looked at: HDF5 reads it
  }
  return entry.Get<ReadDataset>();
}

void MakeRoomForMap(LibraryState& library, uint64_t chunks) {
  DatasetCatalogue& datasets = DatasetCatalogue::Of(library);
  datasets.ForEach<ReadDataset>([&](void*, const ReadDataset& known) {
    if (known.map != nullptr) chunks += known.map->size();
  });
  if (chunks <= kMostMapped) return;
  datasets.ForEach<ReadDataset>([](void*, ReadDataset& known) { known.map = nullptr; });
}

}  // namespace tidelane::vol
