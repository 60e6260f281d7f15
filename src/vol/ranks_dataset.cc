#include "vol/ranks_dataset.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engine/engine.h"
#include "vol/find_file.h"

namespace tidelane::vol {

class RankDatasets {
 public:
  std::unordered_map<void*, RankDataset> known;
};

namespace {

// Chunks get a place when they are put into the file, and nothing is filled then. Lanes make the bytes that native HDF5
// would: what its own collective writes come to depends on them.
void LookAtFilters(Instance& instance, void* object, hid_t dcpl, hid_t dxpl, RankDataset& dataset) {
  h5::Library& hdf5 = instance.hdf5();
  H5D_alloc_time_t time = H5D_ALLOC_TIME_ERROR;
  const bool native = Engine::Get().config().deflate == DeflateWith::kNative;
  ChunkedDataset filtered;
  filtered.pipeline = PipelineOf(hdf5, dcpl, native ? DeflateWith::kNative : DeflateWith::kZlib);
  if (filtered.pipeline == nullptr || hdf5.Pget_alloc_time(dcpl, &time) < 0 ||
      !FindChunks(instance, object, dcpl, dxpl, filtered)) {
    return;
  }
  dataset.has_space = time == H5D_ALLOC_TIME_INCR;
  const int filters = hdf5.Pget_nfilters(dcpl);
  dataset.all_filters = static_cast<uint32_t>((uint64_t{1} << filters) - 1);
  dataset.filtered = std::make_unique<ChunkedDataset>(std::move(filtered));
}

RankDataset LookAt(Instance& instance, void* object, hid_t dxpl) {
  h5::Library& hdf5 = instance.hdf5();
  RankDataset dataset;
  H5O_info2_t info{};
  const h5::OwnedId dcpl = AskDataset(instance, object, H5VL_DATASET_GET_DCPL, dxpl);
  if (!dcpl.valid() || !InfoOf(instance, object, H5I_DATASET, info)) return dataset;
  std::copy_n(reinterpret_cast<const std::byte*>(&info.token), sizeof dataset.number,
              reinterpret_cast<std::byte*>(&dataset.number));
  const H5D_layout_t layout = hdf5.Pget_layout(dcpl.get());
  if (layout == H5D_CONTIGUOUS) {
    dataset.plain = hdf5.Pget_external_count(dcpl.get()) == 0;
  } else if (layout == H5D_CHUNKED && hdf5.Pget_nfilters(dcpl.get()) == 0) {
    dataset.chunk.resize(H5S_MAX_RANK);
    const int rank = hdf5.Pget_chunk(dcpl.get(), H5S_MAX_RANK, dataset.chunk.data());
    dataset.plain = rank > 0;
    dataset.chunk.resize(static_cast<size_t>(std::max(rank, 0)));
    dataset.has_space =
        true;  // MPI's ranks make all chunks when they create, open or extend a dataset
  } else if (layout == H5D_CHUNKED &&
             Engine::Get().config().parallel_writes == ParallelWrites::kMpi) {
    LookAtFilters(instance, object, dcpl.get(), dxpl, dataset);
  }
  return dataset;
}

}  // namespace

// Space comes with the dataset, or by all ranks' first write; it does not go again.
bool HasSpace(Instance& instance, void* object, RankDataset& dataset, hid_t dxpl) {
  if (dataset.has_space) return true;
  H5D_space_status_t status = H5D_SPACE_STATUS_NOT_ALLOCATED;
  H5VL_dataset_get_args_t get{};
  get.op_type = H5VL_DATASET_GET_SPACE_STATUS;
  get.args.get_space_status.status = &status;
  const auto native = instance.hdf5().native().dataset_cls.get;
  dataset.has_space =
      native(object, &get, dxpl, nullptr) >= 0 && status != H5D_SPACE_STATUS_NOT_ALLOCATED;
  return dataset.has_space;
}

RankDataset& RankDatasetOf(Instance& instance, void* object, hid_t dxpl) {
  if (instance.rank_datasets == nullptr) instance.rank_datasets = new RankDatasets;
  auto& known = instance.rank_datasets->known;
  auto found = known.find(object);
  if (found == known.end()) found = known.emplace(object, LookAt(instance, object, dxpl)).first;
  return found->second;
}

void ForgetRankDataset(Instance& instance, void* dataset) {
  if (instance.rank_datasets != nullptr) instance.rank_datasets->known.erase(dataset);
}

void ForgetRankDatasets(Instance& instance) {
  if (instance.rank_datasets != nullptr) instance.rank_datasets->known.clear();
}

}  // namespace tidelane::vol
