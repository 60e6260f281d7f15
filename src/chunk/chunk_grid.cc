#include "chunk/chunk_grid.h"

#include <algorithm>

namespace tidelane {

uint64_t ChunkGrid::Chunks() const {
  uint64_t chunks = 1;
  for (int d = 0; d < rank; ++d) {
    if (__builtin_mul_overflow(chunks, Along(d), &chunks)) return UINT64_MAX;
  }
  return chunks;
}

uint64_t ChunkGrid::ChunkBytes() const {
  uint64_t bytes = element;
  for (int d = 0; d < rank; ++d) {
    if (__builtin_mul_overflow(bytes, chunk[d], &bytes)) return UINT64_MAX;
  }
  return bytes;
}

uint64_t ChunkGrid::IndexOf(const uint64_t* offset) const {
  uint64_t index = 0;
  for (int d = 0; d < rank; ++d) {
    if (offset[d] >= extent[d] || offset[d] % chunk[d] != 0) return UINT64_MAX;
    index = index * Along(d) + offset[d] / chunk[d];
  }
  return index;
}

Coordinates ChunkGrid::OffsetOf(uint64_t index) const {
  Coordinates offset{};
  for (int d = rank - 1; d >= 0; --d) {
    offset[d] = index % Along(d) * chunk[d];
    index /= Along(d);
  }
  return offset;
}

bool ChunkGrid::IsWholeChunks(const Box& box) const {
  for (int d = 0; d < rank; ++d) {
    const uint64_t end = box.start[d] + box.size[d];
    if (box.start[d] % chunk[d] != 0 || (end % chunk[d] != 0 && end != extent[d])) return false;
  }
  return true;
}

MemoryLayout MemoryLayout::Packed(int rank, const Coordinates& size, uint64_t element,
                                  uint64_t first) {
  MemoryLayout layout{.first = first};
  for (int d = rank - 1; d >= 0; --d) {
    layout.stride[d] = element;
    element *= size[d];
  }
  return layout;
}

MemoryLayout MemoryLayout::Inside(int rank, const Coordinates& extent, const Coordinates& start,
                                  uint64_t element) {
  MemoryLayout layout = Packed(rank, extent, element);
  for (int d = 0; d < rank; ++d) layout.first += start[d] * layout.stride[d];
  return layout;
}

TouchedChunks::TouchedChunks(const ChunkGrid& grid, const Box& box, const MemoryLayout& memory)
    : grid_(grid),
      box_(box),
      memory_(memory),
      in_chunk_(MemoryLayout::Packed(grid.rank, grid.chunk, grid.element)) {
  for (int d = 0; d < grid_.rank; ++d) {
    first_[d] = box.start[d] / grid.chunk[d];
    along_[d] = (box.start[d] + box.size[d] - 1) / grid.chunk[d] - first_[d] + 1;
    count_ *= along_[d];
  }
}

ChunkPiece TouchedChunks::At(uint64_t i) const {
  Coordinates number{};
  for (int d = grid_.rank - 1; d >= 0; --d) {
    number[d] = first_[d] + i % along_[d];
    i /= along_[d];
  }
  ChunkPiece piece{.to = memory_.first, .whole = true};
  for (int d = 0; d < grid_.rank; ++d) {
    const uint64_t corner = number[d] * grid_.chunk[d];
    const uint64_t begin = std::max(corner, box_.start[d]);
    const uint64_t end = std::min(corner + grid_.chunk[d], box_.start[d] + box_.size[d]);
    piece.chunk = piece.chunk * grid_.Along(d) + number[d];
    piece.from += (begin - corner) * in_chunk_.stride[d];
    piece.to += (begin - box_.start[d]) * memory_.stride[d];
    piece.size[d] = end - begin;
    piece.whole = piece.whole && piece.size[d] == grid_.chunk[d];
  }
  uint64_t bytes = 0;
  piece.whole = piece.whole && Fold(piece.size, bytes) == 0;
  return piece;
}

// A run goes on into the next dimension as long as this one follows itself on both sides. Gives the number of dimensions
// that are left, and the bytes of a run.
int TouchedChunks::Fold(const Coordinates& size, uint64_t& bytes) const {
  bytes = grid_.element;
  int d = grid_.rank;
  while (d > 0) {
    const bool one = size[d - 1] == 1;  // nothing follows: strides do not matter
    if (!one && (memory_.stride[d - 1] != bytes || in_chunk_.stride[d - 1] != bytes)) break;
    bytes *= size[d - 1];
    --d;
  }
  return d;
}

}  // namespace tidelane
