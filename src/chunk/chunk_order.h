/// \file
/// In which order the ranks of an MPI program put their filtered chunks into a file: all of them the same chunks, in the same
/// order, though each one holds only its own. Arithmetic only.
///
/// Invariants:
///  1. The order depends on nothing but what every rank knows: the lists that all have told one another.
///  2. Of a chunk that was written more than once the last write stays; of one that several ranks wrote in the same call,
///     the highest rank's.
///
/// Thread safety: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chunk/chunk_grid.h"

namespace tidelane {

/// A chunk, as its rank tells the others of it.
struct ToldChunk {
  uint64_t write = 0;  ///< which of the writes that are told of, counted from the oldest
  uint64_t chunk = 0;  ///< its number in that write's grid
  uint64_t size = 0;   ///< as it is stored; 0: no chunk, the list is shorter than others
  uint64_t mask = 0;   ///< filters that were left out
};
inline constexpr size_t kToldWords = 4;  ///< as numbers, in that order

/// Of a write by all ranks: what all of them know.
struct SharedWrite {
  uint64_t dataset = 0;  ///< its number in the file
  ChunkGrid grid;        ///< as it was then
};

struct OrderedChunk {
  ToldChunk told;
  int rank = 0;
  Coordinates origin{};
};

/// `all`: a list of each rank, in the order of ranks, all equally long.
std::vector<OrderedChunk> OrderChunks(std::span<const ToldChunk> all, int ranks,
                                      std::span<const SharedWrite> writes);

}  // namespace tidelane
