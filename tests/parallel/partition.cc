#include "parallel/partition.h"

#include <algorithm>

namespace tidelane::parallel {
namespace {

Slab everything(int rank, const Dims& dims) {
  Slab slab;
  for (int i = 0; i < rank; ++i) slab.block[i] = dims[i];
  return slab;
}

// From `low` up to `high` of one dimension.
void narrow(Slab& slab, int dim, hsize_t low, hsize_t high) {
  slab.start[dim] = low;
  slab.block[dim] = high - low;
  if (high <= low) slab.none = true;
}

Slab box(Rng& rng, int rank, const Dims& dims) {
  Slab slab;
  for (int i = 0; i < rank; ++i) {
    const hsize_t low = rng.below(dims[i]);
    narrow(slab, i, low, rng.between(low + 1, dims[i]));
  }
  return slab;
}

std::vector<hsize_t> cuts(Rng& rng, hsize_t length, hsize_t unit, int ranks) {
  std::vector<hsize_t> at{0, length};
  for (int r = 1; r < ranks; ++r)
    at.push_back(std::min(length, rng.below(length + 1) / unit * unit));
  std::sort(at.begin(), at.end());
  return at;
}

// Rank r has every `ranks`-th run of `run` elements; what does not fill a run is nobody's.
void deal(Slab& slab, int dim, hsize_t run, hsize_t length, int who, int ranks) {
  const hsize_t first = run * static_cast<hsize_t>(who);
  const hsize_t round = run * static_cast<hsize_t>(ranks);
  slab.none = first + run > length;
  if (slab.none) return;
  slab.start[dim] = first;
  slab.stride[dim] = round;
  slab.count[dim] = (length - first - run) / round + 1;
  slab.block[dim] = run;
}

}  // namespace

size_t elements_of(int rank, const Dims& dims) {
  size_t n = 1;
  for (int i = 0; i < rank; ++i) n *= dims[i];
  return n;
}

size_t Slab::elements(int rank) const {
  if (none) return 0;
  size_t n = 1;
  for (int i = 0; i < rank; ++i) n *= count[i] * block[i];
  return n;
}

void Slab::apply(hid_t space) const {
  if (none) {
    H5Sselect_none(space);
  } else {
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), stride.data(), count.data(),
                        block.data());
  }
}

void Slab::each(int rank, const Dims& dims, const std::function<void(size_t)>& f) const {
  if (none) return;
  const auto visit = [&](auto&& self, int dim, size_t before) -> void {
    if (dim == rank) return f(before);
    for (hsize_t c = 0; c < count[dim]; ++c) {
      for (hsize_t b = 0; b < block[dim]; ++b) {
        self(self, dim + 1, before * dims[dim] + start[dim] + c * stride[dim] + b);
      }
    }
  };
  visit(visit, 0, 0);
}

Partition Partition::draw(Rng& rng, int rank, const Dims& dims, const Dims& chunk, int ranks) {
  Partition out;
  const int dim = static_cast<int>(rng.below(static_cast<uint64_t>(rank)));
  Slab all = everything(rank, dims);
  const int other = (dim + 1) % rank;
  if (other != dim && rng.chance(40)) {
    const hsize_t low = rng.below(dims[other]);
    narrow(all, other, low, rng.between(low + 1, dims[other]));
  }
  out.parts.assign(static_cast<size_t>(ranks), all);
  const int shift =
      static_cast<int>(rng.below(static_cast<uint64_t>(ranks)));  // not always the same neighbour
  const auto part = [&](int r) -> Slab& {
    return out.parts[static_cast<size_t>((r + shift) % ranks)];
  };
  const unsigned shape = static_cast<unsigned>(rng.below(10));
  if (shape < 6) {
    out.shape = shape < 3 ? "blocks" : "chunks";
    const auto at = cuts(rng, dims[dim], shape < 3 ? 1 : chunk[dim], ranks);
    for (int r = 0; r < ranks; ++r) {
      narrow(part(r), dim, at[static_cast<size_t>(r)], at[static_cast<size_t>(r) + 1]);
    }
  } else if (shape < 9) {
    out.shape = "dealt";
    const std::vector<hsize_t> runs{1, 2,  3,
                                    8, 64, dims[dim] / static_cast<hsize_t>(3 * ranks) + 1};
    const hsize_t run = rng.pick(runs);
    for (int r = 0; r < ranks; ++r) deal(part(r), dim, run, dims[dim], r, ranks);
  } else {
    out.shape = "one rank";
    for (int r = 1; r < ranks; ++r) part(r).none = true;
    part(0) = box(rng, rank, dims);
  }
  return out;
}

Partition Partition::draw_for_reading(Rng& rng, int rank, const Dims& dims, const Dims& chunk,
                                      int ranks) {
  const unsigned shape = static_cast<unsigned>(rng.below(10));
  if (shape < 5) return draw(rng, rank, dims, chunk, ranks);
  Partition out;
  out.shape = shape < 8 ? "boxes" : "everything";
  for (int r = 0; r < ranks; ++r) {
    out.parts.push_back(shape < 8 ? box(rng, rank, dims) : everything(rank, dims));
  }
  return out;
}

Partition Partition::chunks(Rng& rng, int rank, const Dims& dims, const Dims& chunk, int ranks) {
  Partition out;
  out.shape = "whole chunks";
  const int dim = static_cast<int>(rng.below(static_cast<uint64_t>(rank)));
  Slab all = everything(rank, dims);
  const int other = (dim + 1) % rank;
  if (other != dim && rng.chance(40)) {
    const auto at = cuts(rng, dims[other], chunk[other], 2);
    narrow(all, other, at[0], at[1] == 0 ? dims[other] : at[1]);
  }
  const auto at = cuts(rng, dims[dim], chunk[dim], ranks);
  for (int r = 0; r < ranks; ++r) {
    out.parts.push_back(all);
    narrow(out.parts.back(), dim, at[static_cast<size_t>(r)], at[static_cast<size_t>(r) + 1]);
  }
  return out;
}

Partition Partition::slices(int rank, const Dims& dims, int ranks) {
  Partition out;
  out.shape = "slices";
  for (int r = 0; r < ranks; ++r) {
    out.parts.push_back(everything(rank, dims));
    const auto at = [&](int i) {
      return dims[0] * static_cast<hsize_t>(i) / static_cast<hsize_t>(ranks);
    };
    narrow(out.parts.back(), 0, at(r), at(r + 1));
  }
  return out;
}

std::string Partition::text(int rank) const {
  std::string out = shape;
  for (const Slab& slab : parts) {
    out += " [";
    for (int i = 0; i < rank && !slab.none; ++i) {
      out += (i == 0 ? "" : ", ") + std::to_string(slab.start[i]) + "+" +
             std::to_string(slab.count[i]) + "x" + std::to_string(slab.block[i]) + "/" +
             std::to_string(slab.stride[i]);
    }
    out += "]";
  }
  return out;
}

}  // namespace tidelane::parallel
