/// \file
/// An array as it lies in a file: which bytes are its elements, for whoever reads them without HDF5.
///
/// One that lies in one piece has chunks, too: pieces of it, so that whoever reads chunks reads all arrays.
///
/// Invariant: it is true as long as nobody changes the array; reads that are deferred have that waited for (content/deferred_reads.h).
/// Thread safety: values; const functions may be called from any thread at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "chunk/chunk_grid.h"
#include "codec/pipeline.h"
#include "content/parallel_read.h"

namespace tidelane {

/// Where a chunk is stored.
struct ChunkLocation {
  uint64_t address = 0;
  uint32_t size = 0;  ///< 0: it is not, and has the fill value everywhere
  uint32_t mask = 0;  ///< of filters that it went without
};
/// By number in the grid.
using ChunkMap = std::vector<ChunkLocation>;

struct StoredArray {
  std::shared_ptr<ParallelReadSource> source;
  std::shared_ptr<const Pipeline> pipeline;  ///< nullptr: chunks are stored as they are
  std::shared_ptr<const ChunkMap> map;
  std::shared_ptr<const std::vector<std::byte>>
      fill;  ///< one element; empty: unknown, no chunk may be missing
  ChunkGrid grid;

  /// One that lies in one piece from `address` on; `grid` needs no chunks.
  static StoredArray InOnePiece(std::shared_ptr<ParallelReadSource> source, ChunkGrid grid,
                                uint64_t address);

  /// How ReadPiece gets bytes of the file.
  using ReadBytes = std::function<Status(uint64_t address, uint64_t size, std::byte* to)>;
  /// Reads a piece to its place in `memory`. Beside that nobody needs more memory than a chunk and its stored bytes.
  Status ReadPiece(const TouchedChunks& touched, const ChunkPiece& piece, std::byte* memory,
                   const ReadBytes& read, ReadRooms& rooms) const;
};

/// Places in a file, to be asked whether they have some of its bytes.
class StoredRanges {
 public:
  /// All of them before the first question; Sort after the last.
  void Add(uint64_t address, uint64_t size);
  void Sort();
  bool Touch(uint64_t begin, uint64_t end) const;
  uint64_t bytes() const { return bytes_; }

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
  };
  std::vector<Range> ranges_;
  uint64_t longest_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace tidelane
