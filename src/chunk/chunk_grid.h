/// \file
/// Where a selected box of a chunked array lies: in which chunks, where in each, and where in the
/// reader's memory. Arithmetic only.
///
/// Chunks are counted in row-major order over the whole grid (`ChunkPiece::chunk`, what a map of
/// chunks is indexed by) and over the part of it that a box touches (what `TouchedChunks::At` takes).
///
/// Invariant: the pieces of all touched chunks are disjoint, and together they are the box.
///
/// Thread safety: plain values; const functions may be called from any thread at once.
#pragma once

#include <array>
#include <cstdint>

namespace tidelane {

inline constexpr int kMaxRank = 32;  // HDF5's
using Coordinates = std::array<uint64_t, kMaxRank>;

/// A box in an array: its corner, and how far it reaches in each dimension.
struct Box {
  Coordinates start{};
  Coordinates size{};
};

/// An array of `rank` dimensions (at least one), none of them empty, in chunks.
struct ChunkGrid {
  int rank = 0;
  Coordinates extent{};
  Coordinates chunk{};
  uint64_t element = 0;  ///< bytes of one

  /// Chunks along a dimension; the last one may reach beyond the array.
  uint64_t Along(int d) const { return (extent[d] - 1) / chunk[d] + 1; }
  /// All chunks, UINT64_MAX if there are more than can be counted.
  uint64_t Chunks() const;
  /// UINT64_MAX if there are more than can be counted, as in a damaged file.
  uint64_t ChunkBytes() const;
  /// The chunk whose first element is at `offset`; UINT64_MAX: no chunk of the array begins there.
  uint64_t IndexOf(const uint64_t* offset) const;
  /// Where the first element of a chunk is, by its number.
  Coordinates OffsetOf(uint64_t index) const;
  /// Whether `box`, within the extent and empty in no dimension, is made of whole chunks: of those
  /// that reach beyond the array, of what is in it.
  bool IsWholeChunks(const Box& box) const;
};

/// How the elements of a box lie in memory: where its first one is, and how far it is from one to the
/// next in each dimension, in bytes.
struct MemoryLayout {
  uint64_t first = 0;
  Coordinates stride{};

  /// A box of `size` that fills memory from `first` on.
  static MemoryLayout Packed(int rank, const Coordinates& size, uint64_t element,
                             uint64_t first = 0);
  /// A box inside an array of `extent`.
  static MemoryLayout Inside(int rank, const Coordinates& extent, const Coordinates& start,
                             uint64_t element);
};

/// The part of a box that one chunk has.
struct ChunkPiece {
  uint64_t chunk = 0;  ///< its number in the grid
  uint64_t from = 0;   ///< bytes from the beginning of the chunk to the part
  uint64_t to = 0;     ///< bytes from the beginning of memory to where it goes
  Coordinates size{};  ///< in elements
  bool whole = false;  ///< it is the whole chunk, and lies in memory as it does there
};

class TouchedChunks {
 public:
  /// `box` lies within the grid's extent and is empty in no dimension.
  TouchedChunks(const ChunkGrid& grid, const Box& box, const MemoryLayout& memory);

  uint64_t count() const { return count_; }
  ChunkPiece At(uint64_t i) const;

  /// Calls `run(from, to, bytes)`, each counted as in ChunkPiece, for every run of a piece.
  template <typename Run>
  void ForEachRun(const ChunkPiece& piece, Run run) const {
    uint64_t bytes = 0;
    const int outer = Fold(piece.size, bytes);
    Coordinates at{};
    uint64_t from = piece.from;
    uint64_t to = piece.to;
    for (;;) {
      run(from, to, bytes);
      int d = outer - 1;
      for (; d >= 0 && ++at[d] == piece.size[d]; --d) {
        from -= (at[d] - 1) * in_chunk_.stride[d];
        to -= (at[d] - 1) * memory_.stride[d];
        at[d] = 0;
      }
      if (d < 0) return;
      from += in_chunk_.stride[d];
      to += memory_.stride[d];
    }
  }

 private:
  int Fold(const Coordinates& size, uint64_t& bytes) const;

  const ChunkGrid grid_;
  const Box box_;
  const MemoryLayout memory_;
  const MemoryLayout in_chunk_;
  Coordinates first_{};  // of the touched chunks, along each dimension,
  Coordinates along_{};  // and how many there are
  uint64_t count_ = 1;
};

}  // namespace tidelane
