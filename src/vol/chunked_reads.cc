#include "vol/chunked_reads.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "chunk/chunk_read.h"
#include "engine/engine.h"
#include "h5/driver.h"
#include "h5/error.h"
#include "vol/call_inside.h"
#include "vol/transfer_outcome.h"

namespace tidelane::vol {

namespace {

// Below this, waking a lane and finding out costs as much as it saves.
constexpr uint64_t kLeastBytes = 256u << 10;
constexpr uint64_t kMostChunks = 1u << 20;
// How much of a dataset must be read for a map of it to be made.
constexpr uint64_t kMapShare = 64;
// Selections of fewer elements, and datasets of fewer bytes, are no reason to look at a dataset.
constexpr hssize_t kLeastPoints = 256;
constexpr uint64_t kLeastDataset = 64u << 10;

// Whether it is worth some microseconds to find out what a dataset is.
bool MayBeLarge(LibraryState& library, const Reading& reading) {
  h5::Library& hdf5 = library.hdf5();
  const hid_t space =
      reading.file_space != h5::kDefault ? reading.file_space : reading.memory_space;
  if (space != h5::kDefault && hdf5.Iget_type(space) == H5I_DATASPACE) {
    return hdf5.Sget_select_npoints(space) >= kLeastPoints;
  }
  // A virtual dataset takes the extent of its sources when it is asked, and natively not when it is read.
  if (!ReadDatasetOf(library, reading).chunks) return false;
  const h5::OwnedId own =
      AskDataset(library, reading.dataset, H5VL_DATASET_GET_SPACE, library.default_dxpl);
  if (!own.valid() || hdf5.Iget_type(reading.memory_type) != H5I_DATATYPE) return false;
  const hssize_t points = hdf5.Sget_simple_extent_npoints(own.get());
  return points > 0 && static_cast<uint64_t>(points) >=
                           kLeastDataset / std::max<size_t>(hdf5.Tget_size(reading.memory_type), 1);
}

// The extent as it is now; what is older than the last change is forgotten.
bool Update(LibraryState& library, const Reading& reading, ReadDataset& known) {
  if (known.version == library.changes) return true;
  known.map = nullptr;
  if (!FindExtent(library, reading.dataset, library.default_dxpl, known.grid)) return false;
  known.version = library.changes;
  return true;
}

struct MapMaking {
  const ChunkGrid& grid;
  ChunkMap& map;
  bool filtered;
  bool usable = true;
  uint64_t end = 0;  // of the chunk that lies last in the file
  uint64_t stored = 0;
};

// A chunk that is there twice, or has a size that it cannot have: a damaged index, which HDF5 may understand otherwise, or
// of which it says so.
bool IsPossible(const MapMaking& making, haddr_t address, hsize_t size) {
  if (size > HADDR_UNDEF - address) return false;
  if (!making.filtered) return size == making.grid.ChunkBytes();
  return size != 0 && size <= UINT32_MAX && size <= 2 * making.grid.ChunkBytes() + 4096;
}

int NoteChunk(const hsize_t* offset, unsigned mask, haddr_t address, hsize_t size,
              void* context) noexcept {
  MapMaking& making = *static_cast<MapMaking*>(context);
  const uint64_t index = making.grid.IndexOf(offset);
  if (index == UINT64_MAX || address == HADDR_UNDEF || !IsPossible(making, address, size) ||
      making.map[index].size != 0) {
    making.usable = false;
    return H5_ITER_STOP;
  }
  making.end = std::max<uint64_t>(making.end, address + size);
  making.map[index] = {address, static_cast<uint32_t>(size), mask};
  ++making.stored;
  return H5_ITER_CONT;
}

bool MakeMap(LibraryState& library, const Reading& reading, ReadDataset& known) {
  MakeRoomForMap(library, known.grid.Chunks());
  const auto map = std::make_shared<ChunkMap>(known.grid.Chunks());
  const std::shared_ptr<File> file = known.file.lock();
  if (file == nullptr) return false;
  MapMaking making{known.grid, *map, known.pipeline != nullptr};
  H5VL_native_dataset_optional_args_t iterate{};
  iterate.chunk_iter.op = NoteChunk;
  iterate.chunk_iter.op_data = &making;
  H5VL_optional_args_t args{H5VL_NATIVE_DATASET_CHUNK_ITER, &iterate};
  const h5::KeepErrorStack keep(library.hdf5());
  known.touched = 0;
  herr_t result = -1;
  // HDF5 first writes what its cache has of the dataset, through the filters.
  const auto iterate_over = [&] {
    result = library.hdf5().native().dataset_cls.optional(reading.dataset, &args,
                                                          library.default_dxpl, nullptr);
  };
  // What lies where the file has nothing is HDF5's to find, and to tell. (Now: it may have allocated chunks just before.)
  if (!Aside(library, reading.dxpl, iterate_over) || result < 0 || !making.usable ||
      making.end > AllocatedEnd(library, *file) ||
      (known.fill->empty() && making.stored < map->size())) {
    return false;
  }
  known.map = map;
  known.stored = making.stored != 0;
  return true;
}

bool HaveMap(LibraryState& library, const Reading& reading, uint64_t touched, ReadDataset& known) {
  if (known.map != nullptr) return true;
  known.touched += touched;
  if (known.touched < known.grid.Chunks() / kMapShare) return false;
  return MakeMap(library, reading, known);
}

// So that single elements, which HDF5 takes from its cache, are not told as a fallback.
bool IsLarge(h5::Library& hdf5, const Reading& reading, const ReadDataset& known) {
  if (hdf5.Iget_type(reading.file_space) != H5I_DATASPACE) return false;
  const hssize_t points = hdf5.Sget_select_npoints(reading.file_space);
  return points > 0 && static_cast<uint64_t>(points) * known.grid.element >= kLeastBytes;
}

// Everybody holds a chunk, what is stored of it, and what is between two filters: no more together than may wait in the
// arena, which is what the program's memory has been asked for.
unsigned Helpers(Engine& engine, const ReadDataset& known) {
  if (!engine.lanes().threaded()) return 0;  // the system refused threads: nobody would come
  const uint64_t workers = engine.arena().cap() / (3 * known.grid.ChunkBytes());
  if (workers == 0) return 0;
  const unsigned most =
      known.pipeline != nullptr ? engine.FilterLanes() : engine.config().lanes_for_all();
  return static_cast<unsigned>(std::min<uint64_t>(workers - 1, most));
}

// HDF5 may have all of it decoded.
bool LeftToCache(const ReadDataset& known, const Box& box, uint64_t touched, bool later) {
  const uint64_t bytes = touched * known.grid.ChunkBytes();
  if (later) {
    return bytes < kLeastDataset || (bytes <= known.cache_bytes && !known.grid.IsWholeChunks(box));
  }
  return touched < 2 || bytes < kLeastBytes || bytes <= known.cache_bytes;
}

StoredArray ArrayOf(File& file, const ReadDataset& known) {
  return {file.SharedReads(), known.pipeline, known.map, known.fill, known.grid};
}

// nullopt: HDF5 has to read it, for `reason` if that is worth to be told.
std::optional<ChunkReading> ChunksOf(LibraryState& library, const Reading& reading,
                                     ReadDataset& known, bool later,
                                     std::optional<Fallback>& reason) {
  h5::Library& hdf5 = library.hdf5();
  const std::optional<SelectedBox> wanted = BoxOf(hdf5, known.grid, reading.file_space);
  const std::optional<MemoryLayout> memory =
      wanted.has_value()
          ? MemoryFor(hdf5, *wanted, reading.file_space, reading.memory_space, known.grid.element)
          : std::nullopt;
  if (!memory.has_value()) {
    if (later || IsLarge(hdf5, reading, known)) reason = Fallback::kReadShape;
    return std::nullopt;
  }
  const TouchedChunks touched(known.grid, wanted->box, *memory);
  if (LeftToCache(known, wanted->box, touched.count(), later)) {
    if (later) reason = Fallback::kReadCached;
    return std::nullopt;
  }
  if (!IsUnconverted(library, reading.dataset, reading.memory_type, library.default_dxpl) ||
      !IsPlainTransfer(library, reading.dxpl)) {
    reason = Fallback::kReadConverted;
    return std::nullopt;
  }
  std::shared_ptr<File> file = known.file.lock();
  if (file == nullptr || file->writes_through()) return std::nullopt;
  if (!HaveMap(library, reading, touched.count(), known)) return std::nullopt;
  return ChunkReading{ArrayOf(*file, known), touched, static_cast<std::byte*>(reading.buffer)};
}

bool MayBeOurs(LibraryState& library, const Reading& reading, ReadDataset& known) {
  return known.chunks && Update(library, reading, known) && known.grid.Chunks() <= kMostChunks;
}

// What HDF5 would have found on its way. Of a dataset without storage it says only that nothing was transferred.
void Tell(LibraryState& library, const Reading& reading, const ReadDataset& known,
          const TouchedChunks& touched) {
  if (reading.dxpl == library.default_dxpl) return;
  const auto is_stored = [](const auto& chunk) { return chunk.size != 0; };
  if (std::ranges::none_of(*known.map, is_stored)) {
    SetNoTransfer(library, reading.dxpl);
    return;
  }
  TransferOutcome told;
  told.cause = known.pipeline != nullptr                      ? kFiltered
               : known.grid.ChunkBytes() <= known.cache_bytes ? kCached
                                                              : kDefaultOff;
  for (uint64_t i = 0; i < touched.count() && told.mode == 0; ++i) {
    if ((*known.map)[touched.At(i).chunk].size != 0) told.mode = kScalar;
  }
  SetTransferOutcome(library, reading.dxpl, told);
}

// Without filters lanes gain only what storage makes wait; finding out which chunks a small read touches takes as long
// as the read.
bool IsQuicklyRead(LibraryState& library, const Reading& reading, const ReadDataset& known) {
  if (known.pipeline != nullptr || reading.file_space == H5S_ALL) return false;
  const std::shared_ptr<File> file = known.file.lock();
  return file != nullptr && !file->reads().slow() && !IsLarge(library.hdf5(), reading, known);
}

bool Read(LibraryState& library, const Reading& reading) {
  DatasetEntry* const entry = DatasetCatalogue::Of(library).Find(reading.dataset);
  if (entry != nullptr && entry->reads_no_chunks) return false;
  ReadDataset* known = entry == nullptr ? nullptr : entry->Find<ReadDataset>();
  if (known == nullptr) {
    if (!MayBeLarge(library, reading)) return false;
    known = &ReadDatasetOf(library, reading);
  }
  if (!known->chunks) {
    DatasetCatalogue::Of(library).At(reading.dataset).reads_no_chunks = true;
    return false;
  }
  if (IsQuicklyRead(library, reading, *known)) return false;
  if (!MayBeOurs(library, reading, *known)) return false;
  std::optional<Fallback> reason;
  std::optional<ChunkReading> chunks = ChunksOf(library, reading, *known, false, reason);
  if (!chunks.has_value()) {
    if (reason.has_value()) Count(*reason);
    return false;
  }
  Engine& engine = Engine::Get();
  const TouchedChunks touched = chunks->touched;
  const Status status = ReadChunks(*std::move(chunks), engine.lanes(), Helpers(engine, *known));
  if (!status.ok()) {
    Count(Fallback::kReadFailed);
    return false;
  }
  Tell(library, reading, *known, touched);
  return true;
}

bool ReadLater(LibraryState& library, const Reading& reading, CallScope& scope, Fallback& reason) {
  ReadDataset& known = ReadDatasetOf(library, reading);
  if (!MayBeOurs(library, reading, known)) return false;
  Engine& engine = Engine::Get();
  const unsigned helpers = Helpers(engine, known);
  if (helpers == 0) return false;
  std::optional<Fallback> why;
  std::optional<ChunkReading> chunks = ChunksOf(library, reading, known, true, why);
  if (!chunks.has_value()) {
    reason = why.value_or(reason);
    return false;
  }
  const TouchedChunks touched = chunks->touched;
  const uint64_t bytes = touched.count() * known.grid.ChunkBytes();
  scope.AddRead(ChunksToRead(*std::move(chunks), engine.lanes(), helpers), bytes);
  Tell(library, reading, known, touched);
  return true;
}

}  // namespace

uint64_t AllocatedEnd(LibraryState& library, const File& file) {
  return file.traits().kept_unlocked ? file.eof()
                                     : h5::Driver().above(library.slot, file).allocated_end;
}

std::optional<StoredArray> ChunksOf(LibraryState& library, const Reading& reading) {
  ReadDataset& known = ReadDatasetOf(library, reading);
  const std::shared_ptr<File> file = known.file.lock();
  if (file == nullptr || !MayBeOurs(library, reading, known)) return std::nullopt;
  if (known.map == nullptr && !MakeMap(library, reading, known)) return std::nullopt;
  return ArrayOf(*file, known);
}

bool ReadChunked(LibraryState& library, const Reading& reading) {
  if (!Engine::Get().config().parallel_reads || reading.buffer == nullptr) return false;
  try {
    return Read(library, reading);
  } catch (const std::bad_alloc&) {
    return false;  // HDF5 may need less, or says so
  }
}

bool ReadChunkedLater(LibraryState& library, const Reading& reading, CallScope& scope,
                      Fallback& reason) {
  if (!Engine::Get().config().parallel_reads || reading.buffer == nullptr) return false;
  try {
    return ReadLater(library, reading, scope, reason);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace tidelane::vol
