#include "vol/filtered_reads.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "engine/chunk_read.h"
#include "engine/engine.h"
#include "h5/driver.h"
#include "h5/error.h"
#include "vol/chunked_dataset.h"
#include "vol/find_file.h"

namespace tidelane::vol {

// What is known of one dataset. Without a pipeline: that HDF5 has to read it.
struct FilteredDataset : ChunkedDataset {
  std::weak_ptr<File> file;
  uint64_t cache_bytes = 0;             // what HDF5's chunk cache holds
  uint64_t version = UINT64_MAX;        // of the extent
  std::shared_ptr<const ChunkMap> map;  // as of `version`; nullptr: not made
  uint64_t touched = 0;                 // chunks that were wanted while there was none
};

// Chunks in all maps together, which have 16 bytes for each.
constexpr uint64_t kMostMapped = 4u << 20;

class FilteredDatasets {
 public:
  FilteredDataset* Find(void* dataset) {
    const auto found = known_.find(dataset);
    return found == known_.end() ? nullptr : &found->second;
  }
  FilteredDataset& Add(void* dataset) { return known_[dataset]; }
  void Forget(void* dataset) { known_.erase(dataset); }
  void ForgetAll() { known_.clear(); }

  // For a map of `chunks`: if it were too much with the others, those go. They are made again when they are wanted.
  void MakeRoom(uint64_t chunks) {
    for (const auto& [dataset, known] : known_) {
      if (known.map != nullptr) chunks += known.map->size();
    }
    if (chunks <= kMostMapped) return;
    for (auto& [dataset, known] : known_) known.map = nullptr;
  }

 private:
  std::unordered_map<void*, FilteredDataset> known_;
};

namespace {

// Below this, waking a lane and finding out costs as much as it saves.
constexpr uint64_t kLeastBytes = 256u << 10;
// A worker holds one chunk and what is stored of it.
constexpr uint64_t kMostChunkBytes = 64u << 20;
constexpr uint64_t kMostChunks = 1u << 20;
// How much of a dataset must be read for a map of it to be made.
constexpr uint64_t kMapShare = 64;
// Selections of fewer elements, and datasets of fewer bytes, are no reason to look at a dataset.
constexpr hssize_t kLeastPoints = 256;
constexpr uint64_t kLeastDataset = 64u << 10;

// Whether it is worth some microseconds to find out what a dataset is.
bool MayBeLarge(Instance& instance, const Reading& reading) {
  h5::Library& hdf5 = instance.hdf5();
  const hid_t space =
      reading.file_space != h5::kDefault ? reading.file_space : reading.memory_space;
  if (space != h5::kDefault && hdf5.Iget_type(space) == H5I_DATASPACE) {
    return hdf5.Sget_select_npoints(space) >= kLeastPoints;
  }
  const h5::OwnedId own =
      AskDataset(instance, reading.dataset, H5VL_DATASET_GET_SPACE, reading.dxpl);
  if (!own.valid() || hdf5.Iget_type(reading.memory_type) != H5I_DATATYPE) return false;
  const hssize_t points = hdf5.Sget_simple_extent_npoints(own.get());
  return points > 0 && static_cast<uint64_t>(points) >=
                           kLeastDataset / std::max<size_t>(hdf5.Tget_size(reading.memory_type), 1);
}

// The chunk queries of HDF5 before 1.14.4 leave the user block out of addresses.
bool AddressesAreOurs(h5::Library& hdf5, uint64_t base_address) {
  unsigned major = 0, minor = 0, release = 0;
  if (base_address == 0) return true;
  if (hdf5.get_libversion(&major, &minor, &release) < 0) return false;
  return major > 1 || minor > 14 || release >= 4;
}

bool FindFile(Instance& instance, void* dataset, FilteredDataset& known) {
  const std::shared_ptr<File> file = FileOf(instance, dataset, H5I_DATASET);
  if (file == nullptr) return false;
  const h5::AboveDriver above = h5::Above(instance.slot, *file);
  known.file = file;
  return !above.page_buffer && AddressesAreOurs(instance.hdf5(), above.base_address);
}

bool FindCache(Instance& instance, const Reading& reading, FilteredDataset& known) {
  const std::optional<uint64_t> bytes = ChunkCacheOf(instance, reading.dataset, reading.dxpl);
  known.cache_bytes = bytes.value_or(0);
  return bytes.has_value();
}

void Look(Instance& instance, const Reading& reading, FilteredDataset& known) {
  h5::Library& hdf5 = instance.hdf5();
  const h5::OwnedId dcpl =
      AskDataset(instance, reading.dataset, H5VL_DATASET_GET_DCPL, reading.dxpl);
  if (!dcpl.valid() || hdf5.Pget_layout(dcpl.get()) != H5D_CHUNKED ||
      hdf5.Pget_nfilters(dcpl.get()) <= 0) {
    return;
  }
  std::shared_ptr<const Pipeline> pipeline =
      PipelineOf(hdf5, dcpl.get(), DeflateWith::kLibdeflate, Pipeline::Use::kDecode);
  if (pipeline == nullptr ||
      !FindChunks(instance, reading.dataset, dcpl.get(), reading.dxpl, known) ||
      known.grid.ChunkBytes() > kMostChunkBytes) {
    Count(Fallback::kReadFilter);
    return;
  }
  if (!FindFile(instance, reading.dataset, known) || !FindCache(instance, reading, known)) return;
  known.pipeline = std::move(pipeline);
}

// The extent as it is now; what is older than the last change is forgotten.
bool Update(Instance& instance, const Reading& reading, FilteredDataset& known) {
  if (known.version == instance.changes) return true;
  known.map = nullptr;
  if (!FindExtent(instance, reading.dataset, reading.dxpl, known.grid)) return false;
  known.version = instance.changes;
  return true;
}

struct MapMaking {
  const ChunkGrid& grid;
  ChunkMap& map;
  bool usable = true;
  uint64_t stored = 0;
};

// A chunk that is there twice, or has a size that no filter makes: a damaged index, which HDF5 may understand otherwise.
int NoteChunk(const hsize_t* offset, unsigned mask, haddr_t address, hsize_t size,
              void* context) noexcept {
  MapMaking& making = *static_cast<MapMaking*>(context);
  const uint64_t index = making.grid.IndexOf(offset);
  if (index == UINT64_MAX || address == HADDR_UNDEF || size == 0 || size > UINT32_MAX ||
      size > 2 * making.grid.ChunkBytes() + 4096 || making.map[index].size != 0) {
    making.usable = false;
    return H5_ITER_STOP;
  }
  making.map[index] = {address, static_cast<uint32_t>(size), mask};
  ++making.stored;
  return H5_ITER_CONT;
}

bool MakeMap(Instance& instance, const Reading& reading, FilteredDataset& known) {
  instance.filtered->MakeRoom(known.grid.Chunks());
  const auto map = std::make_shared<ChunkMap>(known.grid.Chunks());
  MapMaking making{known.grid, *map};
  H5VL_native_dataset_optional_args_t iterate{};
  iterate.chunk_iter.op = NoteChunk;
  iterate.chunk_iter.op_data = &making;
  H5VL_optional_args_t args{H5VL_NATIVE_DATASET_CHUNK_ITER, &iterate};
  const h5::KeepErrorStack keep(instance.hdf5());
  known.touched = 0;
  if (instance.hdf5().native().dataset_cls.optional(reading.dataset, &args, reading.dxpl, nullptr) <
          0 ||
      !making.usable || (known.fill->empty() && making.stored < map->size())) {
    return false;
  }
  known.map = map;
  return true;
}

bool HaveMap(Instance& instance, const Reading& reading, uint64_t touched, FilteredDataset& known) {
  if (known.map != nullptr) return true;
  known.touched += touched;
  if (known.touched < known.grid.Chunks() / kMapShare) return false;
  return MakeMap(instance, reading, known);
}

// So that single elements, which HDF5 takes from its cache, are not told as a fallback.
bool IsLarge(h5::Library& hdf5, const Reading& reading, const FilteredDataset& known) {
  if (hdf5.Iget_type(reading.file_space) != H5I_DATASPACE) return false;
  const hssize_t points = hdf5.Sget_select_npoints(reading.file_space);
  return points > 0 && static_cast<uint64_t>(points) * known.grid.element >= kLeastBytes;
}

// Everybody holds a chunk, what is stored of it, and what is between two filters: no more together than may wait in the
// arena, which is what the program's memory has been asked for.
unsigned Helpers(Engine& engine, const ChunkGrid& grid) {
  if (!engine.lanes().threaded()) return 0;  // the system refused threads: nobody would come
  const uint64_t workers = engine.arena().cap() / (3 * grid.ChunkBytes());
  return workers == 0
             ? 0
             : static_cast<unsigned>(std::min<uint64_t>(workers - 1, engine.config().lanes));
}

bool ReadBox(Instance& instance, const Reading& reading, FilteredDataset& known) {
  h5::Library& hdf5 = instance.hdf5();
  const std::optional<SelectedBox> wanted = BoxOf(hdf5, known.grid, reading.file_space);
  const std::optional<MemoryLayout> memory =
      wanted.has_value()
          ? MemoryFor(hdf5, *wanted, reading.file_space, reading.memory_space, known.grid.element)
          : std::nullopt;
  if (!memory.has_value()) {
    if (IsLarge(hdf5, reading, known)) Count(Fallback::kReadShape);
    return false;
  }
  const TouchedChunks touched(known.grid, wanted->box, *memory);
  const uint64_t bytes = touched.count() * known.grid.ChunkBytes();
  if (touched.count() < 2 || bytes < kLeastBytes || bytes <= known.cache_bytes) return false;
  if (!IsUnconverted(instance, reading.dataset, reading.memory_type, reading.dxpl) ||
      !IsPlainTransfer(instance, reading.dxpl)) {
    Count(Fallback::kReadConverted);
    return false;
  }
  const std::shared_ptr<File> file = known.file.lock();
  if (file == nullptr || file->writes_through()) return false;
  if (!HaveMap(instance, reading, touched.count(), known)) return false;
  Engine& engine = Engine::Get();
  const Status status = ReadChunks({file, known.pipeline, known.map, known.fill, known.grid,
                                    touched, static_cast<std::byte*>(reading.buffer)},
                                   engine.lanes(), Helpers(engine, known.grid));
  if (!status.ok()) Count(Fallback::kReadFailed);
  return status.ok();
}

bool Read(Instance& instance, const Reading& reading) {
  if (instance.filtered == nullptr) instance.filtered = new FilteredDatasets;
  FilteredDataset* known = instance.filtered->Find(reading.dataset);
  if (known == nullptr) {
    if (!MayBeLarge(instance, reading)) return false;
    known = &instance.filtered->Add(reading.dataset);
    Look(instance, reading, *known);
  }
  return known->pipeline != nullptr && Update(instance, reading, *known) &&
         known->grid.Chunks() <= kMostChunks && ReadBox(instance, reading, *known);
}

}  // namespace

bool ReadFiltered(Instance& instance, const Reading& reading) {
  if (!Engine::Get().config().parallel_reads || reading.buffer == nullptr) return false;
  try {
    return Read(instance, reading);
  } catch (const std::bad_alloc&) {
    return false;  // HDF5 may need less, or says so
  }
}

void ForgetFiltered(Instance& instance, void* dataset) {
  if (instance.filtered != nullptr) instance.filtered->Forget(dataset);
}

void ForgetAllFiltered(Instance& instance) {
  if (instance.filtered != nullptr) instance.filtered->ForgetAll();
}

}  // namespace tidelane::vol
