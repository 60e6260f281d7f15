/// \file
/// Puts a chunk that has been filtered into the file, with HDF5's direct chunk write.
///
/// What storage refuses meanwhile the engine keeps (RetainFailedWrites): after a write that failed HDF5 believes that the chunk
/// is in its place already, so that a second attempt would leave it out of the index.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include "vol/chunk_job.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// `again`: it has failed before. False: HDF5 says on the error stack why not. Maps of chunks are void afterwards (class ChunkMapInvalidation).
bool InsertChunk(LibraryState& library, const ChunkJob& job, hid_t dxpl, bool again = false);

/// How a dataset finds its chunks.
H5D_chunk_index_t IndexOf(LibraryState& library, void* dataset);

/// The size that a chunk is stored with; 0: there is no such chunk.
size_t SizeOfChunk(LibraryState& library, void* dataset, const Coordinates& origin, hid_t dxpl);

/// A chunk's bytes as they are stored; at most UINT32_MAX of them before HDF5 2.
struct StoredChunk {
  const void* bytes;
  size_t size;
  uint32_t mask = 0;  ///< filters that were left out
};

/// HDF5's direct chunk write. An old chunk of the same size keeps its mask.
bool PutChunk(LibraryState& library, void* dataset, const Coordinates& origin,
              const StoredChunk& chunk, hid_t dxpl);

/// The program's own direct write of a chunk with a mask, where one of ours without any may be by now, which natively would
/// still be in HDF5's cache: the new chunk has its own mask in any case. `args` are those of the operation.
herr_t WriteMasked(LibraryState& library, void* dataset, const ChunkGrid& grid,
                   H5VL_optional_args_t& args, hid_t dxpl);
/// Where the operation's arguments say which memory a stored chunk is written from, or read into; nullptr: it is another operation.
void** ChunkBufferOf(LibraryState& library, const H5VL_optional_args_t& args);
/// How many bytes of it are written or, at most, read.
size_t ChunkBytesOf(LibraryState& library, void* dataset, const H5VL_optional_args_t& args,
                    hid_t dxpl);
/// Answers a direct read of a chunk, whose place is as HDF5 wants it.
void GiveStored(LibraryState& library, const H5VL_optional_args_t& args, const StoredChunk& chunk);
/// Whether the operation is a direct write with a mask.
bool IsMaskedWrite(LibraryState& library, const H5VL_optional_args_t& args);

}  // namespace tidelane::vol
