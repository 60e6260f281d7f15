/// \file
/// Whether a write consists of whole chunks that lanes can filter, and of which.
///
/// Invariant: what is said to be ours leaves the file with the same elements as if HDF5 had filtered it.
///
/// Cost: one or two microseconds for each write.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/counters.h"
#include "file/file.h"
#include "vol/chunk_reuse.h"
#include "vol/chunked_dataset.h"
#include "vol/lending.h"

namespace tidelane::vol {

/// Chunks below this size are not worth a trip to a lane and back: HDF5's own cache gathers them.
inline constexpr uint64_t kSmallestChunk = 16 << 10;
/// Where no filter compresses it takes a chunk so large: the copy for the lane costs what shuffling does. Measured to memory, time against
/// native: 1.34 at 16 KiB, 1.39 at 64 KiB, 1.02 at 256 KiB.
inline constexpr uint64_t kSmallestUncompressedChunk = 256 << 10;

/// A dataset that is written.
struct WrittenDataset : ChunkedDataset {
  enum class Kind {
    kPlain,   ///< no filters, or elements that are not plain: no chunk of ours is ever in it
    kNative,  ///< HDF5 has to filter; `reason` says why, where that is worth telling
    kOurs,
  };

  Kind kind = Kind::kNative;
  std::optional<Fallback> reason;
  std::shared_ptr<File> file;
  ChunkReuse reuse;
};

WrittenDataset LookAtWritten(const DatasetFacts& facts);

/// Whether `writing` is less than a chunk that is worth it, as far as its spaces tell.
bool IsSmallWrite(LibraryState& library, const Writing& writing);

/// Whether the program itself has `file` open, not only something in it. (To ask HDF5 for a dataset's file would mark that
/// as one that the program can close.)
bool IsOpenForWriting(LibraryState& library, const File& file);

/// What a write that we can filter consists of.
struct ChunkWrite {
  Box box;
  MemoryLayout memory;
};

/// nullopt: HDF5 has to run it, because of `reason`; nothing where it will fail. Brings the extent up to date.
std::optional<ChunkWrite> AsChunkWrite(LibraryState& library, WrittenDataset& dataset,
                                       const Writing& writing, hid_t dxpl,
                                       std::optional<Fallback>& reason);

/// The same once file and transfer list are known to allow it, and the extent is known.
std::optional<ChunkWrite> ChunksWritten(LibraryState& library, const ChunkedDataset& dataset,
                                        const Writing& writing, hid_t dxpl, Fallback& reason);

}  // namespace tidelane::vol
