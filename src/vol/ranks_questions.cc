#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "extent/test_hooks.h"
#include "h5/error.h"
#include "vol/chunk_insert.h"
#include "vol/chunk_overlay.h"
#include "vol/ranks_dataset.h"
#include "vol/ranks_filtered.h"

namespace tidelane::vol {

namespace {

// What is held of the dataset, if anything.
struct Held {
  RankChunks* chunks = nullptr;  // nullptr: nothing
  uint64_t dataset = 0;
  const ChunkGrid* grid = nullptr;
};

Held HeldOf(LibraryState& library, const h5::ParallelFile& parallel, void* dataset) {
  RankChunks* const chunks = library.rank_chunks;
  if (chunks == nullptr || !chunks->Hold(parallel, 0)) return {};
  const uint64_t number = RankDatasetOf(library, dataset).number;
  const ChunkGrid* const grid = chunks->GridOf(parallel, number);
  return grid == nullptr ? Held() : Held{chunks, number, grid};
}

void SayNoAnswer(LibraryState& library) {
  h5::PushError(library.hdf5(),
                "another rank does not tell what it has written together with this one");
}

// The newest of each place.
using ByPlace = std::map<Coordinates, const HeldChunk*>;
ByPlace Newest(const std::vector<HeldChunk>& chunks) {
  ByPlace newest;
  for (const HeldChunk& chunk : chunks) newest[chunk.origin] = &chunk;
  return newest;
}

ChunkQuestion QuestionAbout(const Held& held, ChunkQuestion::What what) {
  ChunkQuestion question;
  question.what = what;
  question.dataset = held.dataset;
  return question;
}

// How much more there is than HDF5 knows of.
struct More {
  uint64_t chunks = 0;
  int64_t bytes = 0;
};

std::optional<More> MoreOf(LibraryState& library, const h5::ParallelFile& parallel,
                           const Held& held, void* dataset, hid_t dxpl) {
  const auto chunks = held.chunks->Ask(parallel, QuestionAbout(held, ChunkQuestion::What::kSizes));
  if (!chunks.has_value()) {
    SayNoAnswer(library);
    return std::nullopt;
  }
  const h5::KeepErrorStack keep(library.hdf5());
  More more;
  for (const auto& [origin, chunk] : Newest(*chunks)) {
    const size_t old_size = SizeOfChunk(library, dataset, origin, dxpl);
    if (old_size == 0) ++more.chunks;
    more.bytes += static_cast<int64_t>(chunk->size) - static_cast<int64_t>(old_size);
  }
  return more;
}

std::optional<hsize_t> NativeChunks(LibraryState& library, void* dataset, hid_t dxpl) {
  hsize_t count = 0;
  H5VL_native_dataset_get_num_chunks_t ask{h5::kDefault, &count};  // of all
  H5VL_optional_args_t args{H5VL_NATIVE_DATASET_GET_NUM_CHUNKS, &ask};
  if (library.hdf5().native().dataset_cls.optional(dataset, &args, dxpl, nullptr) < 0)
    return std::nullopt;
  return count;
}

H5D_space_status_t StatusOf(uint64_t chunks, uint64_t all) {
  if (chunks == 0) return H5D_SPACE_STATUS_NOT_ALLOCATED;
  return chunks == all ? H5D_SPACE_STATUS_ALLOCATED : H5D_SPACE_STATUS_PART_ALLOCATED;
}

// What the read is about, as far as can be said in two corners. False: nothing.
bool Corners(LibraryState& library, const Reading& reading, const ChunkGrid& grid,
             ChunkQuestion& question) {
  h5::Library& hdf5 = library.hdf5();
  if (!IsDataspace(reading.file_space)) return true;
  if (hdf5.Sget_select_npoints(reading.file_space) <= 0) return false;
  if (hdf5.Sget_select_bounds(reading.file_space, question.low.data(), question.high.data()) >= 0)
    question.rank = grid.rank;
  return true;
}

const hsize_t* PlaceIn(const H5VL_optional_args_t& args) {
  const auto& all = *static_cast<const H5VL_native_dataset_optional_args_t*>(args.args);
  switch (args.op_type) {
    case H5VL_NATIVE_DATASET_GET_CHUNK_STORAGE_SIZE: return all.get_chunk_storage_size.offset;
    case H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_COORD: return all.get_chunk_info_by_coord.offset;
    case H5VL_NATIVE_DATASET_CHUNK_READ: return all.chunk_read.offset;
    default: return nullptr;
  }
}

herr_t SayNoAddress(LibraryState& library) {
  h5::PushError(library.hdf5(),
                "chunks that ranks have written together have no address before a flush");
  return -1;
}

// Of a chunk that nobody has written HDF5 says so, but not as long as the dataset has none at all: then it tells no size.
std::optional<herr_t> AskWithIndex(LibraryState& library, void* dataset, H5VL_optional_args_t& args,
                                   hid_t dxpl) {
  if (args.op_type != H5VL_NATIVE_DATASET_GET_CHUNK_STORAGE_SIZE) return std::nullopt;
  hsize_t* const size = static_cast<H5VL_native_dataset_get_chunk_storage_size_t*>(args.args)->size;
  const hsize_t before = std::exchange(*size, 0);
  const herr_t result = library.hdf5().native().dataset_cls.optional(dataset, &args, dxpl, nullptr);
  if (result >= 0 && *size != 0) return result;
  *size = before;
  if (result < 0) return result;
  h5::PushError(library.hdf5(), "chunk storage is not allocated");
  return -1;
}

// About one chunk: the newest that is held, if one is.
std::optional<herr_t> AnswerOne(LibraryState& library, const h5::ParallelFile& parallel,
                                const Held& held, void* dataset, H5VL_optional_args_t& args,
                                hid_t dxpl) {
  const bool reads = args.op_type == H5VL_NATIVE_DATASET_CHUNK_READ;
  ChunkQuestion question =
      QuestionAbout(held, reads ? ChunkQuestion::What::kStored : ChunkQuestion::What::kSizes);
  question.rank = held.grid->rank;
  const hsize_t* const place = PlaceIn(args);
  std::copy_n(place, question.rank, question.low.begin());
  question.high = question.low;
  const auto chunks = held.chunks->Ask(parallel, question);
  if (!chunks.has_value()) {
    SayNoAnswer(library);
    return -1;
  }
  if (chunks->empty()) return AskWithIndex(library, dataset, args, dxpl);
  if (args.op_type == H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_COORD) return SayNoAddress(library);
  const HeldChunk& chunk = chunks->back();
  if (question.low != chunk.origin) return std::nullopt;  // HDF5 says what is wrong with that
  if (reads) {
    GiveStored(library, args, {chunk.bytes, chunk.size, chunk.mask});
    return 0;
  }
  *static_cast<H5VL_native_dataset_get_chunk_storage_size_t*>(args.args)->size = chunk.size;
  return 0;
}

}  // namespace

bool OverlayHeld(LibraryState& library, const h5::ParallelFile& parallel, const Reading& reading) {
  if (!library.rank_chunks->Hold(parallel, 0)) return true;
  const Held held = HeldOf(library, parallel, reading.dataset);
  if (held.chunks == nullptr) return true;
  ChunkQuestion question = QuestionAbout(held, ChunkQuestion::What::kElements);
  if (!Corners(library, reading, *held.grid, question)) return true;
  const auto chunks = held.chunks->Ask(parallel, question);
  if (!chunks.has_value()) SayNoAnswer(library);
  return chunks.has_value() && OverlayChunks(library, reading, *held.grid, *chunks);
}

herr_t CountHeld(LibraryState& library, const h5::ParallelFile& parallel, herr_t result,
                 void* dataset, const H5VL_dataset_get_args_t* args, hid_t dxpl) {
  const bool bytes = args->op_type == H5VL_DATASET_GET_STORAGE_SIZE;
  if (result < 0 || MutationEnabled("ranks_peer_sizes") ||
      (!bytes && args->op_type != H5VL_DATASET_GET_SPACE_STATUS)) {
    return result;
  }
  const Held held = HeldOf(library, parallel, dataset);
  if (held.chunks == nullptr) return result;
  const auto more = MoreOf(library, parallel, held, dataset, dxpl);
  if (!more.has_value()) return -1;
  if (bytes) {
    *args->args.get_storage_size.storage_size += static_cast<hsize_t>(more->bytes);
    return result;
  }
  ChunkGrid grid = *held.grid;
  const auto count = NativeChunks(library, dataset, dxpl);
  if (!count.has_value() || !FindExtent(library, dataset, dxpl, grid)) return -1;
  *args->args.get_space_status.status = StatusOf(*count + more->chunks, grid.Chunks());
  return result;
}

std::optional<herr_t> AnswerHeld(LibraryState& library, const h5::ParallelFile& parallel,
                                 void* dataset, H5VL_optional_args_t* args, hid_t dxpl) {
  const Held held = HeldOf(library, parallel, dataset);
  if (held.chunks == nullptr) return std::nullopt;
  switch (args->op_type) {
    case H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_IDX:
    case H5VL_NATIVE_DATASET_CHUNK_ITER: return SayNoAddress(library);
    case H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_COORD:
    case H5VL_NATIVE_DATASET_GET_CHUNK_STORAGE_SIZE:
    case H5VL_NATIVE_DATASET_CHUNK_READ:
      return AnswerOne(library, parallel, held, dataset, *args, dxpl);
    case H5VL_NATIVE_DATASET_GET_NUM_CHUNKS: {
      const herr_t result =
          library.hdf5().native().dataset_cls.optional(dataset, args, dxpl, nullptr);
      const auto more = result < 0 ? std::nullopt : MoreOf(library, parallel, held, dataset, dxpl);
      if (!more.has_value()) return -1;
      *static_cast<H5VL_native_dataset_get_num_chunks_t*>(args->args)->nchunks += more->chunks;
      return result;
    }
    default: return std::nullopt;
  }
}

}  // namespace tidelane::vol
