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

bool LookAtHeader(LibraryState& library, void* object, DatasetEntry& entry, RankDataset& dataset) {
  H5O_info2_t info{};
  if (!InfoOf(library, object, H5I_DATASET, info)) return false;
  entry.serial = info.fileno;
  dataset.number = NumberOf(info);
  dataset.linked = info.rc != 0;
  dataset.asked_at = library.groups_unlinked;
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
             Engine::Get().config().parallel_writes == ParallelWrites::kOn) {
    LookAtFilters(facts, dataset);
  }
}

}  // namespace

void NoteRankDataset(LibraryState& library, void* dataset) {
  if (!library.parallel_files) return;
  const h5::KeepErrorStack keep(library.hdf5());
  DatasetEntry& entry = DatasetCatalogue::Of(library).At(dataset);
  entry.Drop<RankDataset>();
  RankDataset found;
  if (!LookAtHeader(library, dataset, entry, found)) return;
  const h5::ParallelDriverTable& driver = h5::ParallelDriver();
  if (driver.file_with_serial(library.slot, entry.serial) != nullptr ||
      driver.reading_with_serial(library.slot, entry.serial) != nullptr) {
    LookAtLayout(FactsOf(library, dataset, library.default_dxpl, Ask::kAtOpen), found);
  }
  entry.Get<RankDataset>() = std::move(found);
}

RankDataset& RankDatasetOf(LibraryState& library, void* dataset) {
  DatasetEntry& entry = DatasetCatalogue::Of(library).At(dataset);
  if (entry.Find<RankDataset>() == nullptr || MutationEnabled("ranks_metadata"))
    NoteRankDataset(library, dataset);
  return entry.Get<RankDataset>();  // HDF5 did not say: nothing is
}

// Space comes with the dataset, or by all ranks' first write; it does not go again.
bool HasSpace(LibraryState& library, void* dataset, RankDataset& known, hid_t dxpl) {
  if (known.has_space) return true;
  H5D_space_status_t status = H5D_SPACE_STATUS_NOT_ALLOCATED;
  H5VL_dataset_get_args_t get{};
  get.op_type = H5VL_DATASET_GET_SPACE_STATUS;
  get.args.get_space_status.status = &status;
  const auto native = library.hdf5().native().dataset_cls.get;
  known.has_space =
      native(dataset, &get, dxpl, nullptr) >= 0 && status != H5D_SPACE_STATUS_NOT_ALLOCATED;
  return known.has_space;
}

bool IsLinked(LibraryState& library, void* dataset) {
  RankDataset& known = RankDatasetOf(library, dataset);
  if (known.linked && known.asked_at == library.groups_unlinked) return true;
  DatasetEntry& entry = DatasetCatalogue::Of(library).At(dataset);
  const auto file = h5::ParallelDriver().file_with_serial(library.slot, entry.serial);
  if (file == nullptr || (file->metadata_together && !MutationEnabled("ranks_asked"))) return false;
  const h5::KeepErrorStack keep(library.hdf5());
  return LookAtHeader(library, dataset, entry, known) && known.linked;
}

void NoteUnlinked(LibraryState& library, const H5O_info2_t* info) {
  if (info == nullptr || info->type != H5O_TYPE_DATASET) ++library.groups_unlinked;
  if (info == nullptr || library.datasets == nullptr) return;
  // It may keep others: then HDF5 is asked again.
  library.datasets->ForEach<RankDataset>([&](void* object, RankDataset& dataset) {
    if (library.datasets->At(object).serial == info->fileno && dataset.number == NumberOf(*info))
      dataset.linked = false;
  });
}

}  // namespace tidelane::vol
