/// \file
/// How an array is cut: into blocks, which follow one another in row-major order, and each of them into tiles, boxes
/// small enough to be in memory.
///
/// A block is some rows of one dimension, with all of the dimensions after it, at one place of those before it; rows come in whole
/// chunks, so that none is decoded twice. Where whole rows of chunks are too large, a block has many tiles: only its bits
/// are then in memory for all of it.
///
/// Invariant: the blocks are disjoint and together the array, and so are the tiles of a block. Arithmetic only.
/// Thread safety: plain values.
#pragma once

#include <cstdint>

#include "chunk/chunk_grid.h"

namespace tidelane::query {

class Blocks {
 public:
  /// `wanted` and `most`: elements that a tile has about, and no more than, unless a single quantum has more.
  Blocks(int rank, const Coordinates& extent, const Coordinates& quantum, uint64_t wanted,
         uint64_t most);

  struct Block {
    Box box;
    uint64_t first = 0;  ///< row-major position of its first element
    uint64_t elements = 0;
  };

  /// The block that begins at `first`, where one ended or the array begins; `first` is before its end.
  Block At(uint64_t first) const;
  uint64_t elements() const { return elements_; }
  uint64_t count() const;

  uint64_t TilesOf(const Block& block) const;
  Box Tile(const Block& block, uint64_t i) const;

  /// Calls run(from, to, count) for every stretch of a tile that is one in the block, too: both in elements from their beginnings.
  template <typename Run>
  void ForEachRun(const Block& block, const Box& tile, Run run) const {
    uint64_t length = 1;
    int outer = rank_;  // dimensions from here on are whole in the tile
    while (outer > 0) {
      --outer;
      length *= tile.size[outer];
      if (tile.size[outer] != block.box.size[outer]) break;
    }
    Coordinates at{};
    for (uint64_t from = 0;; from += length) {
      uint64_t to = 0;
      for (int d = 0; d < rank_; ++d)
        to =
            to * block.box.size[d] + (tile.start[d] - block.box.start[d]) + (d < outer ? at[d] : 0);
      run(from, to, length);
      int d = outer - 1;
      for (; d >= 0 && ++at[d] == tile.size[d]; --d) at[d] = 0;
      if (d < 0) return;
    }
  }

 private:
  int rank_;
  Coordinates extent_{};
  Coordinates tile_{};  // sizes, but at the edges
  int split_ = 0;       // the dimension of a block's rows
  uint64_t inner_ = 1;  // elements of such a row
  uint64_t elements_ = 1;
};

}  // namespace tidelane::query
