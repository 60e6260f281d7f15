#include "vol/stored_arrays.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/engine.h"
#include "h5/error.h"
#include "h5/stored_arrays.h"
#include "vol/chunk_capture.h"
#include "vol/chunked_reads.h"
#include "vol/element_storage.h"
#include "vol/ranks.h"
#include "vol/ranks_read.h"
#include "vol/selection_io_choice.h"
#include "vol/sieve_store.h"

namespace tidelane::vol {

namespace {

bool IsOfRanks(LibraryState& library, void* dataset) {
  void* buffer = nullptr;
  hid_t none = h5::kDefault;
  return ParallelOf(library, dataset, H5I_DATASET) != nullptr ||
         ReadingOf(library, {1, &dataset, &none, &none, &none, &buffer}) != nullptr;
}

// HDF5's usual sieve buffer. A dataset that fits into it may lie there whole, and nowhere else: nobody but HDF5 can tell.
constexpr uint64_t kUsualSieve = uint64_t{64} * 1024;

// What lies where the file has nothing is HDF5's to find, and to tell.
std::optional<StoredArray> InOnePiece(LibraryState& library, const Reading& reading,
                                      const DatasetFacts& facts, File& file) {
  h5::Library& hdf5 = library.hdf5();
  const haddr_t address = AddressOf(library, reading.dataset);
  const h5::OwnedId space =
      AskDataset(library, reading.dataset, H5VL_DATASET_GET_SPACE, library.default_dxpl);
  ChunkGrid grid;
  grid.rank = hdf5.Sget_simple_extent_dims(space.get(), nullptr, nullptr);
  grid.element = hdf5.Tget_size(reading.memory_type);
  if (address == HADDR_UNDEF || address <= facts.user_block || grid.rank <= 0 ||
      grid.element == 0 || grid.element > UINT32_MAX ||
      !ChunkAddressesAreTheFiles(hdf5, facts.user_block)) {
    return std::nullopt;
  }
  hdf5.Sget_simple_extent_dims(space.get(), grid.extent.data(), nullptr);
  uint64_t bytes = grid.element;
  for (int d = 0; d < grid.rank; ++d) {
    if (grid.extent[d] == 0 || __builtin_mul_overflow(bytes, grid.extent[d], &bytes))
      return std::nullopt;
  }
  if (library.large_sieves || bytes <= kUsualSieve) return std::nullopt;
  StoreSieves(library, library.default_dxpl);
  const uint64_t end = AllocatedEnd(library, file);
  if (address > end || bytes > end - address) return std::nullopt;
  return StoredArray::InOnePiece(file.SharedReads(), grid, address);
}

std::optional<StoredArray> Find(h5::Library& hdf5, hid_t id, hid_t memory_type) {
  LibraryState& library = internal::libraries[hdf5.slot()];
  void* dataset = hdf5.VLobject(id);
  if (dataset == nullptr || !Engine::Get().config().parallel_reads || library.closing ||
      library.requests.any_failed() || IsOfRanks(library, dataset)) {
    return std::nullopt;
  }
  if (!InsertChunksBefore(library, 1, &dataset, library.default_dxpl)) return std::nullopt;
  hid_t everything = h5::kDefault;
  if (ReadsAtOnce(library, 1, &dataset, &memory_type, &everything, library.default_dxpl))
    return std::nullopt;  // HDF5's sieve may have what is older
  const Reading reading{dataset,      memory_type,          h5::kDefault,
                        h5::kDefault, library.default_dxpl, nullptr};
  const ReadDataset& known = ReadDatasetOf(library, reading);
  const std::shared_ptr<File> file = known.file.lock();
  if (!known.direct || file == nullptr || file->writes_through() ||
      !IsUnconverted(library, dataset, memory_type, library.default_dxpl)) {
    return std::nullopt;
  }
  if (known.chunks) return ChunksOf(library, reading);
  const DatasetFacts& facts = FactsOf(library, dataset, library.default_dxpl);
  if (facts.layout != H5D_CONTIGUOUS) return std::nullopt;
  return InOnePiece(library, reading, facts, *file);
}

}  // namespace

void RegisterStoredArrays() { h5::RegisterStoredArrays(&Find); }

}  // namespace tidelane::vol
