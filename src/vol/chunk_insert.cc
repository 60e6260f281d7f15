#include "vol/chunk_insert.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "file/call_scope.h"
#include "h5/error.h"
#include "vol/chunked_dataset.h"

namespace tidelane::vol {

namespace {

// The arguments of HDF5 1.14 and of HDF5 2.
struct ChunkWriteArgs1 {
  const hsize_t* offset;
  uint32_t filters;
  uint32_t size;
  const void* buffer;
};
struct ChunkWriteArgs2 {
  const hsize_t* offset;
  uint32_t filters;
  size_t size;
  const void* buffer;
};
// HDF5 1.14's has no `room`, and does not look at it.
struct ChunkReadArgs {
  const hsize_t* offset;
  uint32_t filters;
  void* buffer;
  size_t* room;
};

herr_t AskChunk(LibraryState& library, void* dataset, int operation, void* args, hid_t dxpl) {
  H5VL_optional_args_t optional{operation, args};
  return library.hdf5().native().dataset_cls.optional(dataset, &optional, dxpl, nullptr);
}

// HDF5 remembers the last chunk that it allocated even if it then failed to put it into the index. Else it is asked for another.
void ForgetLastChunk(LibraryState& library, void* dataset, const ChunkGrid& grid,
                     const Coordinates& origin, hid_t dxpl) {
  if (library.hdf5().CanForgetLastChunk()) {
    static_cast<void>(library.hdf5().ForgetLastChunk(dataset));
    return;
  }
  Coordinates other = origin;
  for (int d = 0; d < grid.rank; ++d) {
    if (grid.extent[d] <= grid.chunk[d]) continue;
    other[d] = other[d] == 0 ? grid.chunk[d] : 0;
    static_cast<void>(SizeOfChunk(library, dataset, other, dxpl));
    return;
  }
}

void ForgetLastChunk(LibraryState& library, const ChunkJob& job, hid_t dxpl) {
  ForgetLastChunk(library, job.dataset, job.grid(), job.origin, dxpl);
}

// What a direct write is to put where.
struct DirectWrite {
  const hsize_t* offset;
  StoredChunk chunk;
};

DirectWrite WhatIsWritten(LibraryState& library, const H5VL_optional_args_t& args) {
  if (library.hdf5().major_version() >= 2) {
    const auto& write = *static_cast<const ChunkWriteArgs2*>(args.args);
    return {write.offset, {write.buffer, write.size, write.filters}};
  }
  const auto& write = *static_cast<const ChunkWriteArgs1*>(args.args);
  return {write.offset, {write.buffer, write.size, write.filters}};
}

// HDF5 keeps a chunk's old mask when the new bytes are as many as the old ones. Otherwise it keeps it in what it remembers
// of the last chunk, which is a matter of forgetting, where that can be had. `size`: of the old bytes; 0: there are none.
bool MaskMayBeWrong(LibraryState& library, const ChunkJob& job, size_t size, hid_t dxpl) {
  if (size == 0) return false;
  if (size != job.stored.size() && library.hdf5().CanForgetLastChunk()) return false;
  const std::unique_ptr<std::byte[]> old(new (std::nothrow) std::byte[size]);
  if (old == nullptr) return true;
  ForgetLastChunk(library, job, dxpl);  // the program may have written it with a mask itself
  size_t room = size;
  ChunkReadArgs read{job.origin.data(), 0, old.get(), &room};
  return AskChunk(library, job.dataset, H5VL_NATIVE_DATASET_CHUNK_READ, &read, dxpl) < 0 ||
         read.filters != 0;
}

// A direct write notes the last chunk before it sets its mask: what replaces a chunk that was stored without its filters
// would be read, and written back, as if it were stored so, too.
bool InsertStored(LibraryState& library, const ChunkJob& job, size_t old_size, hid_t dxpl) {
  const StoredChunk stored{job.stored.data(), job.stored.size()};
  if (!PutChunk(library, job.dataset, job.origin, stored, dxpl)) return false;
  if (old_size != 0) ForgetLastChunk(library, job, dxpl);
  return true;
}

// HDF5 filters it: what there is of the chunk inside the extent.
bool InsertElements(LibraryState& library, const ChunkJob& job, hid_t dxpl) {
  h5::Library& hdf5 = library.hdf5();
  ChunkGrid grid = job.grid();
  const h5::OwnedId type = AskDataset(library, job.dataset, H5VL_DATASET_GET_TYPE, dxpl);
  const h5::OwnedId file_space = AskDataset(library, job.dataset, H5VL_DATASET_GET_SPACE, dxpl);
  const h5::OwnedId memory_space(hdf5, hdf5.Screate_simple(grid.rank, grid.chunk.data(), nullptr));
  if (!type.valid() || !memory_space.valid() || !FindExtent(library, job.dataset, dxpl, grid)) {
    return false;
  }
  Coordinates inside{};
  const Coordinates zero{};
  for (int d = 0; d < grid.rank; ++d) {
    if (job.origin[d] >= grid.extent[d]) return true;  // cut off
    inside[d] = std::min(grid.chunk[d], grid.extent[d] - job.origin[d]);
  }
  if (hdf5.Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, job.origin.data(), nullptr,
                             inside.data(), nullptr) < 0 ||
      hdf5.Sselect_hyperslab(memory_space.get(), H5S_SELECT_SET, zero.data(), nullptr,
                             inside.data(), nullptr) < 0) {
    return false;
  }
  void* dataset = job.dataset;
  hid_t type_id = type.get();
  hid_t memory = memory_space.get();
  hid_t file = file_space.get();
  RawBytes copied;  // where there was no memory to do so before
  if (job.source != nullptr) {
    try {
      job.source->CopyTo(copied);
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  const void* bytes = job.source != nullptr ? copied.data() : job.bytes.data();
  return hdf5.native().dataset_cls.write(1, &dataset, &type_id, &memory, &file, dxpl, &bytes,
                                         nullptr) >= 0;
}

}  // namespace

namespace {

size_t SizeOfChunkAt(LibraryState& library, void* dataset, const hsize_t* origin, hid_t dxpl) {
  hsize_t size = 0;
  H5VL_native_dataset_get_chunk_storage_size_t ask{origin, &size};
  const int operation = H5VL_NATIVE_DATASET_GET_CHUNK_STORAGE_SIZE;
  // A failure says that there is no such chunk yet; or else the insertion will fail, too.
  return AskChunk(library, dataset, operation, &ask, dxpl) < 0 ? 0 : size;
}

}  // namespace

H5D_chunk_index_t IndexOf(LibraryState& library, void* dataset) {
  const h5::KeepErrorStack keep(library.hdf5());
  H5D_chunk_index_t index = H5D_CHUNK_IDX_BTREE;
  H5VL_native_dataset_optional_args_t ask{};
  ask.get_chunk_idx_type.idx_type = &index;
  static_cast<void>(AskChunk(library, dataset, H5VL_NATIVE_DATASET_GET_CHUNK_INDEX_TYPE, &ask,
                             library.default_dxpl));
  return index;
}

size_t SizeOfChunk(LibraryState& library, void* dataset, const Coordinates& origin, hid_t dxpl) {
  return SizeOfChunkAt(library, dataset, origin.data(), dxpl);
}

void** ChunkBufferOf(LibraryState& library, const H5VL_optional_args_t& args) {
  if (args.op_type == H5VL_NATIVE_DATASET_CHUNK_READ)
    return &static_cast<ChunkReadArgs*>(args.args)->buffer;
  if (args.op_type != H5VL_NATIVE_DATASET_CHUNK_WRITE) return nullptr;
  if (library.hdf5().major_version() >= 2)
    return const_cast<void**>(&static_cast<ChunkWriteArgs2*>(args.args)->buffer);
  return const_cast<void**>(&static_cast<ChunkWriteArgs1*>(args.args)->buffer);
}

size_t ChunkBytesOf(LibraryState& library, void* dataset, const H5VL_optional_args_t& args,
                    hid_t dxpl) {
  if (args.op_type != H5VL_NATIVE_DATASET_CHUNK_READ)
    return WhatIsWritten(library, args).chunk.size;
  const auto& read = *static_cast<const ChunkReadArgs*>(args.args);
  const h5::KeepErrorStack keep(library.hdf5());
  const size_t size = SizeOfChunkAt(library, dataset, read.offset, dxpl);
  const bool has_room = library.hdf5().major_version() >= 2 && read.room != nullptr;
  return has_room ? std::min(size, *read.room) : size;
}

// HDF5 2 tells who has too little room how much it takes, and copies nothing.
void GiveStored(LibraryState& library, const H5VL_optional_args_t& args, const StoredChunk& chunk) {
  auto& read = *static_cast<ChunkReadArgs*>(args.args);
  const bool has_room = library.hdf5().major_version() >= 2 && read.room != nullptr;
  read.filters = chunk.mask;
  const bool fits = read.buffer != nullptr && (!has_room || *read.room >= chunk.size);
  if (fits) std::memcpy(read.buffer, chunk.bytes, chunk.size);
  if (has_room) *read.room = chunk.size;
}

bool PutChunk(LibraryState& library, void* dataset, const Coordinates& origin,
              const StoredChunk& chunk, hid_t dxpl) {
  if (library.hdf5().major_version() >= 2) {
    ChunkWriteArgs2 args{origin.data(), chunk.mask, chunk.size, chunk.bytes};
    return AskChunk(library, dataset, H5VL_NATIVE_DATASET_CHUNK_WRITE, &args, dxpl) >= 0;
  }
  const auto size = static_cast<uint32_t>(chunk.size);
  ChunkWriteArgs1 args{origin.data(), chunk.mask, size, chunk.bytes};
  return AskChunk(library, dataset, H5VL_NATIVE_DATASET_CHUNK_WRITE, &args, dxpl) >= 0;
}

bool IsMaskedWrite(LibraryState& library, const H5VL_optional_args_t& args) {
  return args.op_type == H5VL_NATIVE_DATASET_CHUNK_WRITE &&
         WhatIsWritten(library, args).chunk.mask != 0;
}

herr_t WriteMasked(LibraryState& library, void* dataset, const ChunkGrid& grid,
                   H5VL_optional_args_t& args, hid_t dxpl) {
  const DirectWrite write = WhatIsWritten(library, args);
  Coordinates origin{};
  std::copy_n(write.offset, grid.rank, origin.begin());
  size_t old_size = 0;
  {
    const h5::KeepErrorStack keep(library.hdf5());
    old_size = SizeOfChunk(library, dataset, origin, dxpl);
  }
  if (old_size > 1 && old_size == write.chunk.size) {
    // HDF5 keeps the mask of an old chunk of the same size: for a moment there is one of another size.
    const StoredChunk shorter{write.chunk.bytes, old_size - 1, write.chunk.mask};
    if (!PutChunk(library, dataset, origin, shorter, dxpl)) return -1;
  }
  const auto native = library.hdf5().native().dataset_cls.optional;
  const herr_t result = native(dataset, &args, dxpl, nullptr);
  if (old_size != 0) ForgetLastChunk(library, dataset, grid, origin, dxpl);
  return result;
}

bool InsertChunk(LibraryState& library, const ChunkJob& job, hid_t dxpl, bool again) {
  const ChunkMapInvalidation changing(library);
  const RetainFailedWrites keep;
  if (again) ForgetLastChunk(library, job, dxpl);
  if (!job.status.ok() || job.mask != 0 || job.stored.size() > UINT32_MAX) {
    return InsertElements(library, job, dxpl);
  }
  const size_t old_size = SizeOfChunk(library, job.dataset, job.origin, dxpl);
  if (MaskMayBeWrong(library, job, old_size, dxpl)) return InsertElements(library, job, dxpl);
  return InsertStored(library, job, old_size, dxpl);
}

}  // namespace tidelane::vol
