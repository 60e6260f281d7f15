#include "vol/ranks_dataset.h"

#include <cstring>
#include <utility>

#include "engine/engine.h"
#include "extent/test_hooks.h"
#include "h5/error.h"
#include "h5/parallel_driver.h"
#include "h5/parallel_file.h"
#include "vol/object_info.h"

namespace tidelane::vol {

namespace {

uint64_t NumberOf(const H5O_info2_t& info) {
  uint64_t number = 0;
  std::memcpy(&number, &info.token, sizeof number);
  return number;
}

bool LookAtHeader(Instance& instance, void* object, DatasetEntry& entry, RankDataset& dataset) {
  H5O_info2_t info{};
  if (!InfoOf(instance, object, H5I_DATASET, info)) return false;
  entry.serial = info.fileno;
  dataset.number = NumberOf(info);
  dataset.linked = info.rc != 0;
  dataset.asked_at = instance.groups_unlinked;
  return true;
}

// Chunks get a place when they are put into the file, and nothing is filled then. Lanes make the bytes that native HDF5
// would: what its own collective writes come to depends on them.
void LookAtFilters(const DatasetFacts& facts, RankDataset& dataset) {
  const bool native = Engine::Get().config().deflate == DeflateWith::kNative;
  ChunkedDataset filtered;
  filtered.pipeline = PipelineOf(facts, native ? DeflateWith::kNative : DeflateWith::kZlib);
  if (filtered.pipeline == nullptr || facts.alloc_time == H5D_ALLOC_TIME_ERROR ||
      !FindChunks(facts, filtered)) {
    return;
  }
  dataset.has_space = facts.alloc_time == H5D_ALLOC_TIME_INCR;
  dataset.all_filters = static_cast<uint32_t>((uint64_t{1} << facts.filters->size()) - 1);
  dataset.filtered = std::make_unique<ChunkedDataset>(std::move(filtered));
}

void LookAtLayout(const DatasetFacts& facts, RankDataset& dataset) {
  if (facts.layout == H5D_CONTIGUOUS) {
    dataset.plain = !facts.external;
  } else if (facts.layout == H5D_CHUNKED && facts.filters.has_value() && facts.filters->empty()) {
    const auto chunk = facts.grid.chunk.begin();
    dataset.chunk.assign(chunk, chunk + facts.grid.rank);
    dataset.plain = facts.grid.rank > 0;
    dataset.has_space =
        true;  // MPI's ranks make all chunks when they create, open or extend a dataset
  } else if (facts.layout == H5D_CHUNKED &&
             Engine::Get().config().parallel_writes == ParallelWrites::kMpi) {
    LookAtFilters(facts, dataset);
  }
}

}  // namespace

void NoteRankDataset(Instance& instance, void* dataset) {
  if (!instance.parallel_files) return;
  const h5::KeepErrorStack keep(instance.hdf5());
  DatasetEntry& entry = DatasetCatalogue::Of(instance).At(dataset);
  entry.Drop<RankDataset>();
  RankDataset found;
  if (!LookAtHeader(instance, dataset, entry, found)) return;
  if (h5::ParallelDriver().file_with_serial(instance.slot, entry.serial) != nullptr) {
    LookAtLayout(FactsOf(instance, dataset, instance.default_dxpl, Ask::kAtOpen), found);
  }
  entry.Get<RankDataset>() = std::move(found);
}

RankDataset& RankDatasetOf(Instance& instance, void* dataset) {
  DatasetEntry& entry = DatasetCatalogue::Of(instance).At(dataset);
  if (entry.Find<RankDataset>() == nullptr || MutationEnabled("ranks_metadata"))
    NoteRankDataset(instance, dataset);
  return entry.Get<RankDataset>();  // HDF5 did not say: nothing is
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
  if (known.linked && known.asked_at == instance.groups_unlinked) return true;
  DatasetEntry& entry = DatasetCatalogue::Of(instance).At(dataset);
  const auto file = h5::ParallelDriver().file_with_serial(instance.slot, entry.serial);
  if (file == nullptr || (file->metadata_together && !MutationEnabled("ranks_asked"))) return false;
  const h5::KeepErrorStack keep(instance.hdf5());
  return LookAtHeader(instance, dataset, entry, known) && known.linked;
}

void NoteUnlinked(Instance& instance, const H5O_info2_t* info) {
  if (info == nullptr || info->type != H5O_TYPE_DATASET) ++instance.groups_unlinked;
  if (info == nullptr || instance.datasets == nullptr) return;
  // It may keep others: then HDF5 is asked again.
  instance.datasets->ForEach<RankDataset>([&](void* object, RankDataset& dataset) {
    if (instance.datasets->At(object).serial == info->fileno && dataset.number == NumberOf(*info))
      dataset.linked = false;
  });
}

}  // namespace tidelane::vol
