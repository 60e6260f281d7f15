#include "stress/selection.h"

#include <algorithm>

namespace tidelane::stress {
namespace {

void draw_regular(Rng& rng, const Dataset& d, Selection& s) {
  for (int i = 0; i < d.rank; ++i) {
    const hsize_t n = d.dims[i];
    s.start[i] = rng.chance(40) ? 0 : rng.below(n);
    const hsize_t room = n - s.start[i];
    s.block[i] = rng.chance(50) ? 1 : rng.between(1, std::min<hsize_t>(room, 7));
    s.stride[i] = s.block[i] + (rng.chance(50) ? 0 : rng.below(5));
    const hsize_t most = (room - s.block[i]) / s.stride[i] + 1;
    s.count[i] = rng.chance(30) ? most : rng.between(1, most);
  }
}

void draw_box(Rng& rng, const Dataset& d, Selection& s) {
  for (int i = 0; i < d.rank; ++i) {
    s.start[i] = rng.chance(50) ? 0 : rng.below(d.dims[i] / 3 + 1);
    const hsize_t room = d.dims[i] - s.start[i];
    s.block[i] = s.stride[i] = rng.chance(40) ? room : rng.between(room / 2 + 1, room);
    s.count[i] = 1;
  }
}

void draw_points(Rng& rng, const Dataset& d, Selection& s) {
  const size_t n = rng.between(1, std::min<size_t>(d.elements(), 24));
  // Distinct points: writing one element twice in a call has no defined result.
  std::vector<size_t> linear;
  while (linear.size() < n) {
    const size_t at = rng.below(d.elements());
    if (std::find(linear.begin(), linear.end(), at) != linear.end()) break;
    linear.push_back(at);
  }
  for (size_t at : linear) {
    Dims point{};
    for (int i = d.rank - 1; i >= 0; --i) {
      point[i] = at % d.dims[i];
      at /= d.dims[i];
    }
    s.points.insert(s.points.end(), point.begin(), point.begin() + d.rank);
  }
}

std::string join(const Dims& dims, int rank) {
  std::string out;
  for (int i = 0; i < rank; ++i) out += (i ? "," : "") + std::to_string(dims[i]);
  return out;
}

}  // namespace

Selection Selection::draw(Rng& rng, const Dataset& dataset) {
  Selection s;
  s.rank = dataset.rank;
  s.strided_memory = dataset.kind != Kind::VlString && rng.chance(20);
  const unsigned dice = static_cast<unsigned>(rng.below(100));
  if (dataset.elements() == 0 || dice < 20) return s;
  if (dice < 75) {
    s.shape = Shape::Hyperslab;
    if (dataset.elements() > 20000 && rng.chance(70)) {
      draw_box(rng, dataset, s);
    } else {
      draw_regular(rng, dataset, s);
    }
  } else if (dice < 88) {
    s.shape = Shape::Union;
    draw_regular(rng, dataset, s);
    for (int i = 0; i < dataset.rank; ++i) {
      s.start2[i] = rng.below(dataset.dims[i]);
      s.count2[i] = rng.between(1, dataset.dims[i] - s.start2[i]);
    }
  } else {
    s.shape = Shape::Points;
    draw_points(rng, dataset, s);
  }
  return s;
}

Selection Selection::draw_chunks(Rng& rng, const Dataset& dataset) {
  Selection s;
  s.rank = dataset.rank;
  if (rng.chance(25)) return s;
  s.shape = Shape::Hyperslab;
  for (int i = 0; i < dataset.rank; ++i) {
    const hsize_t chunks = (dataset.dims[i] + dataset.chunk[i] - 1) / dataset.chunk[i];
    const hsize_t first = rng.below(chunks);
    const hsize_t last = rng.chance(40) ? first : rng.between(first, chunks - 1);
    s.start[i] = first * dataset.chunk[i];
    s.block[i] = std::min((last + 1) * dataset.chunk[i], dataset.dims[i]) - s.start[i];
    s.stride[i] = s.block[i];
    s.count[i] = 1;
  }
  return s;
}

bool Selection::apply(hid_t space) const {
  if (H5Sget_simple_extent_ndims(space) != rank) return false;
  switch (shape) {
    case Shape::All: break;
    case Shape::Points:
      if (H5Sselect_elements(space, H5S_SELECT_SET, points.size() / static_cast<size_t>(rank),
                             points.data()) < 0) {
        return false;
      }
      break;
    case Shape::Hyperslab:
    case Shape::Union:
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), stride.data(), count.data(),
                          block.data());
      if (shape == Shape::Union) {
        H5Sselect_hyperslab(space, H5S_SELECT_OR, start2.data(), nullptr, count2.data(), nullptr);
      }
      break;
  }
  return H5Sselect_valid(space) > 0;
}

Hid Selection::memory_space(size_t selected, size_t* buffer_elements) const {
  *buffer_elements = strided_memory ? selected * 2 : selected;
  const hsize_t n = *buffer_elements;
  Hid space(H5Screate_simple(1, &n, nullptr));
  if (strided_memory && selected > 0) {
    const hsize_t first = 1, step = 2, times = selected;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, &step, &times, nullptr);
  }
  return space;
}

std::string Selection::text() const {
  const std::string memory = strided_memory ? " strided-memory" : "";
  switch (shape) {
    case Shape::All: return "all" + memory;
    case Shape::Points:
      return std::to_string(points.size() / static_cast<size_t>(rank)) + " points" + memory;
    default:
      return "start " + join(start, rank) + " stride " + join(stride, rank) + " count " +
             join(count, rank) + " block " + join(block, rank) +
             (shape == Shape::Union
                  ? " or start " + join(start2, rank) + " count " + join(count2, rank)
                  : "") +
             memory;
  }
}

}  // namespace tidelane::stress
