#include "vol/chunk_write.h"

#include <algorithm>

#include "engine/engine.h"
#include "vol/find_file.h"

namespace tidelane::vol {

namespace {

// Some chunks may have to be padded, which takes a fill value that HDF5 would write.
bool ReachesBeyond(const ChunkGrid& grid, const Box& box) {
  for (int d = 0; d < grid.rank; ++d) {
    if ((box.start[d] + box.size[d]) % grid.chunk[d] != 0) return true;
  }
  return false;
}

bool IsWritable(LibraryState& library, void* file) {
  unsigned flags = 0;
  H5VL_file_get_args_t get{};
  get.op_type = H5VL_FILE_GET_INTENT;
  get.args.get_intent.flags = &flags;
  const auto ask = library.hdf5().native().file_cls.get;
  return ask(file, &get, library.default_dxpl, nullptr) >= 0 && (flags & H5F_ACC_RDWR) != 0;
}

// Why the chunks are HDF5's, if they are.
std::optional<Fallback> WhyNative(const DatasetFacts& facts, WrittenDataset& dataset) {
  dataset.pipeline = PipelineOf(facts, Engine::Get().config().deflate);
  // A committed type has no id in a call of our own, where HDF5 may have to filter a chunk that we could not.
  if (dataset.pipeline == nullptr || !FindChunks(facts, dataset) || facts.committed_type) {
    return Fallback::kFilterUnknown;
  }
  const uint64_t smallest =
      dataset.pipeline->compresses() ? kSmallestChunk : kSmallestUncompressedChunk;
  if (dataset.grid.ChunkBytes() < smallest) return Fallback::kFilterSmall;
  if (dataset.file->settings().reserve) return Fallback::kFilterReserved;
  if (facts.page_buffer) return Fallback::kFilterPageBuffer;
  return std::nullopt;
}

}  // namespace

WrittenDataset LookAtWritten(const DatasetFacts& facts) {
  WrittenDataset dataset;
  if (facts.elements == DatasetFacts::Elements::kOther) dataset.kind = WrittenDataset::Kind::kPlain;
  if (facts.layout == H5D_LAYOUT_ERROR || facts.layout == H5D_VIRTUAL) return dataset;
  if (facts.layout != H5D_CHUNKED || (facts.filters.has_value() && facts.filters->empty())) {
    dataset.kind = WrittenDataset::Kind::kPlain;
    return dataset;
  }
  dataset.file = facts.file.lock();
  if (dataset.file == nullptr) return dataset;
  dataset.reason = WhyNative(facts, dataset);
  if (dataset.reason.has_value()) return dataset;
  dataset.kind = WrittenDataset::Kind::kOurs;
  dataset.reuse = ChunkReuse(facts.cache_bytes.value_or(0) / dataset.grid.ChunkBytes());
  return dataset;
}

bool IsSmallWrite(LibraryState& library, const Writing& writing) {
  h5::Library& hdf5 = library.hdf5();
  if (hdf5.Iget_type(writing.memory_type) != H5I_DATATYPE) return true;
  const hid_t space =
      writing.file_space != h5::kDefault ? writing.file_space : writing.memory_space;
  // All of it: the dataset would have to be asked, and a virtual one takes the extent of its sources then, natively not when it
  // is written.
  if (space == h5::kDefault || hdf5.Iget_type(space) != H5I_DATASPACE) return false;
  const auto points = static_cast<uint64_t>(std::max<hssize_t>(hdf5.Sget_select_npoints(space), 0));
  return points * hdf5.Tget_size(writing.memory_type) < kSmallestChunk;
}

bool IsOpenForWriting(LibraryState& library, const File& file) {
  if (library.open_files == nullptr) return false;
  return std::ranges::any_of(*library.open_files, [&](void* object) {
    return FileOf(library, object, H5I_FILE).get() == &file && IsWritable(library, object);
  });
}

std::optional<ChunkWrite> AsChunkWrite(LibraryState& library, WrittenDataset& dataset,
                                       const Writing& writing, hid_t dxpl,
                                       std::optional<Fallback>& reason) {
  const FileSettings settings = dataset.file->settings();
  // Those are counted where they are decided.
  if (writing.buffer == nullptr || settings.implicit_sync || settings.mode == Mode::kSync ||
      dataset.file->writes_through() || !FindExtent(library, writing.dataset, dxpl, dataset.grid)) {
    return std::nullopt;
  }
  reason = Fallback::kFilterTransfer;
  if (!IsPlainTransfer(library, dxpl)) return std::nullopt;
  const auto write = ChunksWritten(library, dataset, writing, dxpl, *reason);
  // Natively what such a chunk has beyond the array stays, and is seen when the array grows.
  if (write.has_value() && library.chunks_written_raw && ReachesBeyond(dataset.grid, write->box)) {
    reason = Fallback::kFilterPartial;
    return std::nullopt;
  }
  if (write.has_value()) reason.reset();
  return write;
}

std::optional<ChunkWrite> ChunksWritten(LibraryState& library, const ChunkedDataset& dataset,
                                        const Writing& writing, hid_t dxpl, Fallback& reason) {
  h5::Library& hdf5 = library.hdf5();
  const ChunkGrid& grid = dataset.grid;
  reason = Fallback::kFilterType;
  if (!IsUnconverted(library, writing.dataset, writing.memory_type, dxpl)) return std::nullopt;
  reason = Fallback::kFilterPartial;
  const std::optional<SelectedBox> wanted = BoxOf(hdf5, grid, writing.file_space);
  if (!wanted.has_value() || !grid.IsWholeChunks(wanted->box) ||
      (dataset.fill->empty() && ReachesBeyond(grid, wanted->box))) {
    return std::nullopt;
  }
  reason = Fallback::kFilterMemory;
  const std::optional<MemoryLayout> memory =
      MemoryFor(hdf5, *wanted, writing.file_space, writing.memory_space, grid.element);
  if (!memory.has_value()) return std::nullopt;
  return ChunkWrite{wanted->box, *memory};
}

}  // namespace tidelane::vol
