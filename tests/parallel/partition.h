// How the ranks of a parallel program share a dataset: what part each of them transfers.
//
// Every rank draws the parts of all ranks alike, so each knows what the others do without being told. Parts of one partition
// do not overlap: who would win is nobody's promise.
//
// Thread safety: plain values.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "stress/rng.h"
#include "support/hid.h"

namespace tidelane::parallel {

using stress::Rng;
using testing::Hid;
using Dims = std::array<hsize_t, 3>;

size_t elements_of(int rank, const Dims& dims);

// A regular hyperslab, or nothing.
struct Slab {
  bool none = false;
  Dims start{0, 0, 0}, stride{1, 1, 1}, count{1, 1, 1}, block{1, 1, 1};

  size_t elements(int rank) const;
  void apply(hid_t space) const;
  // Calls `f` with the number of each of its elements in a dataset of these dimensions, in order.
  void each(int rank, const Dims& dims, const std::function<void(size_t)>& f) const;
};

struct Partition {
  const char* shape = "";
  std::vector<Slab> parts;  // by rank of the program

  // Blocks of chance, blocks of whole chunks, dealt out like cards, or all of it one rank's.
  static Partition draw(Rng& rng, int rank, const Dims& dims, const Dims& chunk, int ranks);
  // For reads, whose parts may overlap: one of the above, a box of each rank's own, or everybody everything.
  static Partition draw_for_reading(Rng& rng, int rank, const Dims& dims, const Dims& chunk,
                                    int ranks);
  // Whole chunks: all of it, or a part.
  static Partition chunks(Rng& rng, int rank, const Dims& dims, const Dims& chunk, int ranks);
  // All of it, in equal slices.
  static Partition slices(int rank, const Dims& dims, int ranks);
  std::string text(int rank) const;
};

}  // namespace tidelane::parallel
