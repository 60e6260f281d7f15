#include "vol/element_storage.h"

#include <algorithm>
#include <new>

#include "file/file.h"
#include "h5/error.h"
#include "vol/call_inside.h"
#include "vol/chunked_dataset.h"

namespace tidelane::vol {

haddr_t AddressOf(LibraryState& library, void* dataset) {
  haddr_t address = HADDR_UNDEF;
  H5VL_native_dataset_optional_args_t ask{};
  ask.get_offset.offset = &address;
  H5VL_optional_args_t args{H5VL_NATIVE_DATASET_GET_OFFSET, &ask};
  const herr_t result =
      library.hdf5().native().dataset_cls.optional(dataset, &args, library.default_dxpl, nullptr);
  return result >= 0 ? address : HADDR_UNDEF;
}

void ElementStorage::Look(LibraryState& library, const DatasetFacts& facts, const File& file) {
  facts_ = &facts;
  // HDF5's page buffer writes whole pages, where others' elements may lie, too.
  if (!file.locked() || facts.page_buffer) return;
  if (facts.layout != H5D_CHUNKED) {
    asks_ = Asks::kOnePiece;  // of what lies otherwise HDF5 says that it has no place
  } else if (ChunkAddressesAreTheFiles(library.hdf5(), facts.user_block) &&
             facts.has_plain_chunks() && facts.filters.has_value() && facts.filters->empty() &&
             facts.cache_bytes.has_value() && *facts.cache_bytes < facts.grid.ChunkBytes()) {
    asks_ = Asks::kChunks;
  }
}

void ElementStorage::Ask(LibraryState& library, void* dataset, hid_t file_space, uint64_t runs,
                         hid_t dxpl) {
  if (asks_ == Asks::kNothing || !places_.empty()) return;
  if (asks_ == Asks::kChunks && runs < kRunsOfAChunk) return;
  const h5::KeepErrorStack keep(library.hdf5());
  const auto ask = [&] {
    if (asks_ == Asks::kOnePiece) {
      AskOnePiece(library, dataset);
    } else {
      AskChunks(library, dataset, file_space, runs);
    }
  };
  // Where nothing is known no gap is filled.
  try {
    static_cast<void>(Aside(library, dxpl, ask));
  } catch (const std::bad_alloc&) {
    places_.Clear();
  }
}

// Its end matters, too: a conversion callback of the program may write another dataset while this one is written.
void ElementStorage::AskOnePiece(LibraryState& library, void* dataset) {
  const haddr_t address = AddressOf(library, dataset);
  hsize_t size = 0;
  H5VL_dataset_get_args_t get{};
  get.op_type = H5VL_DATASET_GET_STORAGE_SIZE;
  get.args.get_storage_size.storage_size = &size;
  const auto& native = library.hdf5().native().dataset_cls;
  if (address != HADDR_UNDEF && address > facts_->user_block &&  // that of no place lies before it
      native.get(dataset, &get, library.default_dxpl, nullptr) >= 0 && size != 0) {
    places_.Add({address, address + size});
  }
}

void ElementStorage::AskChunks(LibraryState& library, void* dataset, hid_t file_space,
                               uint64_t runs) {
  h5::Library& hdf5 = library.hdf5();
  const ChunkGrid& grid = facts_->grid;
  hsize_t low[H5S_MAX_RANK], high[H5S_MAX_RANK], at[H5S_MAX_RANK];
  if (hdf5.Sget_simple_extent_dims(file_space, low, nullptr) != grid.rank ||
      hdf5.Sget_select_bounds(file_space, low, high) < 0) {
    return;
  }
  uint64_t chunks = 1;
  for (int d = 0; d < grid.rank && chunks <= runs / kRunsOfAChunk; ++d) {
    at[d] = low[d] -= low[d] % grid.chunk[d];
    chunks *= (high[d] - low[d]) / grid.chunk[d] + 1;
  }
  if (chunks > runs / kRunsOfAChunk) return;
  for (uint64_t i = 0; i < chunks; ++i) {
    AskChunk(library, dataset, at);
    for (int d = grid.rank - 1; d >= 0 && (at[d] += grid.chunk[d]) > high[d]; --d) at[d] = low[d];
  }
  places_.Sort();
}

// One that is not there yet will be where nobody else knows of it.
void ElementStorage::AskChunk(LibraryState& library, void* dataset, const hsize_t* first) {
  unsigned mask = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t size = 0;
  H5VL_native_dataset_optional_args_t ask{};
  ask.get_chunk_info_by_coord = {first, &mask, &address, &size};
  H5VL_optional_args_t args{H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_COORD, &ask};
  if (library.hdf5().native().dataset_cls.optional(dataset, &args, library.default_dxpl, nullptr) >=
          0 &&
      address != HADDR_UNDEF && address > facts_->user_block) {
    places_.Add({address, address + size});
  }
}

}  // namespace tidelane::vol
