#include "query/blocks.h"

#include <algorithm>

namespace tidelane::query {

Blocks::Blocks(int rank, const Coordinates& extent, const Coordinates& quantum, uint64_t wanted,
               uint64_t most)
    : rank_(rank), extent_(extent) {
  for (int d = 0; d < rank; ++d) elements_ *= extent[d];
  if (elements_ == 0) return;
  inner_ = elements_ / extent[0];
  // Dimensions without chunks are walked through one by one while a single row of them is too large.
  while (split_ + 1 < rank && quantum[split_] == 1 && inner_ > most) {
    tile_[split_] = 1;
    ++split_;
    inner_ /= extent[split_];
  }
  // From the last dimension on a tile takes the whole of each while there is room; then whole quanta.
  uint64_t size = 1;
  for (int d = split_; d < rank; ++d) size *= std::min(quantum[d], extent[d]);
  for (int d = rank - 1; d >= split_; --d) {
    const uint64_t least = std::min(quantum[d], extent[d]);
    const uint64_t room = std::max<uint64_t>(1, (d == split_ ? wanted : most) / size);
    tile_[d] = least > extent[d] / room ? extent[d] : least * room;
    size = size / least * tile_[d];
  }
}

Blocks::Block Blocks::At(uint64_t first) const {
  Block block;
  block.first = first;
  uint64_t row = first / inner_;  // in the dimensions up to split_
  block.box.start[split_] = row % extent_[split_];
  row /= extent_[split_];
  for (int d = split_ - 1; d >= 0; --d) {
    block.box.start[d] = row % extent_[d];
    row /= extent_[d];
    block.box.size[d] = 1;
  }
  block.box.size[split_] = std::min(tile_[split_], extent_[split_] - block.box.start[split_]);
  for (int d = split_ + 1; d < rank_; ++d) block.box.size[d] = extent_[d];
  block.elements = block.box.size[split_] * inner_;
  return block;
}

uint64_t Blocks::count() const {
  if (elements_ == 0) return 0;
  const uint64_t along = (extent_[split_] - 1) / tile_[split_] + 1;
  return elements_ / inner_ / extent_[split_] * along;
}

uint64_t Blocks::TilesOf(const Block& block) const {
  uint64_t tiles = 1;
  for (int d = split_ + 1; d < rank_; ++d) tiles *= (block.box.size[d] - 1) / tile_[d] + 1;
  return tiles;
}

Box Blocks::Tile(const Block& block, uint64_t i) const {
  Box tile = block.box;
  for (int d = rank_ - 1; d > split_; --d) {
    const uint64_t along = (block.box.size[d] - 1) / tile_[d] + 1;
    tile.start[d] = i % along * tile_[d];
    tile.size[d] = std::min(tile_[d], block.box.size[d] - tile.start[d]);
    i /= along;
  }
  return tile;
}

}  // namespace tidelane::query
