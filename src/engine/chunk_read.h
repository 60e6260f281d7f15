/// \file
/// Reads a box of a chunked, filtered array: the program's thread and lanes together fetch chunks,
/// decode them, and put what is wanted of each into the program's memory.
///
///   1. The caller asks lanes to help, and begins.
///   2. Everybody takes the next chunk that nobody has taken, until there is none. A lane that comes
///      later than that finds nothing to do, and touches nothing.
///   3. The caller waits for the chunks that others have taken and not finished; it never waits for a
///      lane to begin. Lanes need nothing that the caller holds (HDF5's lock): no deadlock.
///   4. The first failure ends it: chunks not yet begun are left out.
///
/// A chunk that is wanted whole, and lies in memory as it does in the array, is decoded in place; of
/// others the wanted part is copied. Nobody holds more than one chunk and its stored bytes.
///
/// Invariant: when ReadChunks has returned, nobody touches the memory any more.
///
/// Thread safety: ReadChunks is one call of the program's side of the file (engine/file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "codec/pipeline.h"
#include "engine/chunk_grid.h"
#include "engine/file.h"
#include "lane/lanes.h"

namespace tidelane {

/// Where a chunk is stored.
struct StoredChunk {
  uint64_t address = 0;
  uint32_t size = 0;  ///< 0: it is not, and has the fill value everywhere
  uint32_t mask = 0;  ///< of filters that it went without
};
/// By number in the grid.
using ChunkMap = std::vector<StoredChunk>;

struct ChunkReading {
  std::shared_ptr<File> file;
  std::shared_ptr<const Pipeline> pipeline;
  std::shared_ptr<const ChunkMap> map;
  std::shared_ptr<const std::vector<std::byte>>
      fill;  ///< one element; empty: unknown, no chunk may be missing
  ChunkGrid grid;
  TouchedChunks touched;
  std::byte* memory = nullptr;
};

/// Up to `helpers` lanes help. After a failure it is open what the memory holds.
Status ReadChunks(ChunkReading reading, Lanes& lanes, unsigned helpers);

}  // namespace tidelane
