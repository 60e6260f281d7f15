#include "vol/ranks_dataset.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "engine/engine.h"
#include "extent/broken.h"
#include "h5/error.h"
#include "h5/parallel_driver.h"
#include "h5/parallel_file.h"
#include "vol/find_file.h"

namespace tidelane::vol {

class RankDatasets {
 public:
  std::unordered_map<void*, RankDataset> known;
  uint64_t groups_unlinked = 0;  // what is in them may have lost its only link, too
};

namespace {

RankDatasets& DatasetsOf(Instance& instance) {
  if (instance.rank_datasets == nullptr) instance.rank_datasets = new RankDatasets;
  return *instance.rank_datasets;
}

uint64_t NumberOf(const H5O_info2_t& info) {
  uint64_t number = 0;
  std::memcpy(&number, &info.token, sizeof number);
  return number;
}

bool LookAtHeader(Instance& instance, void* object, RankDataset& dataset) {
  H5O_info2_t info{};
  if (!InfoOf(instance, object, H5I_DATASET, info)) return false;
  dataset.serial = info.fileno;
  dataset.number = NumberOf(info);
  dataset.linked = info.rc != 0;
  dataset.asked_at = DatasetsOf(instance).groups_unlinked;
  return true;
}

// Chunks get a place when they are put into the file, and nothing is filled then. Lanes make the bytes that native HDF5
// would: what its own collective writes come to depends on them.
void LookAtFilters(Instance& instance, hid_t type, hid_t dcpl, RankDataset& dataset) {
  h5::Library& hdf5 = instance.hdf5();
  H5D_alloc_time_t time = H5D_ALLOC_TIME_ERROR;
  const bool native = Engine::Get().config().deflate == DeflateWith::kNative;
  ChunkedDataset filtered;
  filtered.pipeline = PipelineOf(hdf5, dcpl, native ? DeflateWith::kNative : DeflateWith::kZlib);
  if (filtered.pipeline == nullptr || hdf5.Pget_alloc_time(dcpl, &time) < 0 ||
      !FindChunks(hdf5, type, dcpl, filtered)) {
    return;
  }
  dataset.has_space = time == H5D_ALLOC_TIME_INCR;
  const int filters = hdf5.Pget_nfilters(dcpl);
  dataset.all_filters = static_cast<uint32_t>((uint64_t{1} << filters) - 1);
  dataset.filtered = std::make_unique<ChunkedDataset>(std::move(filtered));
}

void LookAtLayout(Instance& instance, void* object, RankDataset& dataset) {
  h5::Library& hdf5 = instance.hdf5();
  const h5::OwnedId type =
      AskDataset(instance, object, H5VL_DATASET_GET_TYPE, instance.default_dxpl);
  const h5::OwnedId dcpl = CreationListOf(instance, object, type.get(), instance.default_dxpl);
  if (!dcpl.valid()) return;
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
    LookAtFilters(instance, type.get(), dcpl.get(), dataset);
  }
}

}  // namespace

void NoteRankDataset(Instance& instance, void* dataset) {
  if (!instance.parallel_files) return;
  const h5::KeepErrorStack keep(instance.hdf5());
  ForgetRankDataset(instance, dataset);
  RankDataset found;
  if (!LookAtHeader(instance, dataset, found)) return;
  if (h5::ParallelDriver().file_with_serial(instance.slot, found.serial) != nullptr)
    LookAtLayout(instance, dataset, found);
  DatasetsOf(instance).known.emplace(dataset, std::move(found));
}

RankDataset& RankDatasetOf(Instance& instance, void* dataset) {
  auto& known = DatasetsOf(instance).known;
  if (!known.contains(dataset) || Broken("ranks_metadata")) NoteRankDataset(instance, dataset);
  return known[dataset];  // HDF5 did not say: nothing is
}

bool KnownSerial(const Instance& instance, void* dataset, unsigned long& serial) {
  if (instance.rank_datasets == nullptr) return false;
  const auto found = instance.rank_datasets->known.find(dataset);
  if (found == instance.rank_datasets->known.end() || found->second.serial == 0) return false;
  serial = found->second.serial;
  return true;
}

// Space comes with the dataset, or by all ranks' first write; it does not go again.
bool HasSpace(Instance& instance, void* dataset, RankDataset& known, hid_t dxpl) {
  if (known.has_space) return true;
  H5D_space_status_t status = H5D_SPACE_STATUS_NOT_ALLOCATED;
  H5VL_dataset_get_args_t get{};
  get.op_type = H5VL_DATASET_GET_SPACE_STATUS;
  get.args.get_space_status.status = &status;
  const auto native = instance.hdf5().native().dataset_cls.get;
  known.has_space =
      native(dataset, &get, dxpl, nullptr) >= 0 && status != H5D_SPACE_STATUS_NOT_ALLOCATED;
  return known.has_space;
}

bool IsLinked(Instance& instance, void* dataset) {
  RankDataset& known = RankDatasetOf(instance, dataset);
  if (known.linked && known.asked_at == instance.rank_datasets->groups_unlinked) return true;
  const auto file = h5::ParallelDriver().file_with_serial(instance.slot, known.serial);
  if (file == nullptr || (file->metadata_together && !Broken("ranks_asked"))) return false;
  const h5::KeepErrorStack keep(instance.hdf5());
  return LookAtHeader(instance, dataset, known) && known.linked;
}

void NoteUnlinked(Instance& instance, const H5O_info2_t* info) {
  RankDatasets& datasets = DatasetsOf(instance);
  if (info == nullptr || info->type != H5O_TYPE_DATASET) ++datasets.groups_unlinked;
  if (info == nullptr) return;
  for (auto& [object, dataset] : datasets.known) {  // it may keep others: then HDF5 is asked again
    if (dataset.serial == info->fileno && dataset.number == NumberOf(*info)) dataset.linked = false;
  }
}

void ForgetRankDataset(Instance& instance, void* dataset) {
  if (instance.rank_datasets != nullptr) instance.rank_datasets->known.erase(dataset);
}

void ForgetRankDatasets(Instance& instance) {
  if (instance.rank_datasets != nullptr) instance.rank_datasets->known.clear();
}

}  // namespace tidelane::vol
