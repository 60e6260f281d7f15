// Selections and their elements: see selections.h. HDF5 is not asked what it selects: that is what is compared.
#include "gpu/real/selections.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

namespace tidelane::gpu_real {
namespace {

using Extent = std::vector<hsize_t>;

constexpr size_t kMostIrregular = 200;  // runs of which no few boxes are made are copied one by one

struct Slab {
  Extent start;
  Extent stride;
  Extent count;
  Extent block;

  bool has(const Extent& position) const {
    for (size_t i = 0; i < start.size(); ++i) {
      if (position[i] < start[i]) return false;
      const hsize_t from_start = position[i] - start[i];
      if (from_start / stride[i] >= count[i] || from_start % stride[i] >= block[i]) return false;
    }
    return true;
  }
};

Slab box(const Extent& start, const Extent& size) {
  const Extent ones(start.size(), 1);
  return {start, size, ones, size};
}

Side whole(const Extent& extent) {
  Side side{extent, nullptr, {}};
  side.at.resize(side.elements());
  std::iota(side.at.begin(), side.at.end(), size_t{0});
  return side;
}

// The union of slabs; HDF5 goes through it row by row.
Side slabs(const Extent& extent, const std::vector<Slab>& all) {
  Side side{extent, nullptr, {}};
  side.select = [all](hid_t space) {
    H5S_seloper_t how = H5S_SELECT_SET;
    for (const Slab& slab : all) {
      if (H5Sselect_hyperslab(space, how, slab.start.data(), slab.stride.data(), slab.count.data(),
                              slab.block.data()) < 0) {
        throw std::runtime_error("H5Sselect_hyperslab");
      }
      how = H5S_SELECT_OR;
    }
  };
  Extent position(extent.size(), 0);
  for (size_t i = 0; i < side.elements(); ++i) {
    if (std::ranges::any_of(all, [&](const Slab& slab) { return slab.has(position); }))
      side.at.push_back(i);
    for (size_t d = extent.size(); d-- > 0;) {
      if (++position[d] < extent[d]) break;
      position[d] = 0;
    }
  }
  return side;
}

Side points(hsize_t extent, size_t count) {
  Side side{{extent}, nullptr, std::vector<size_t>(extent)};
  std::iota(side.at.begin(), side.at.end(), size_t{0});
  std::ranges::shuffle(side.at, std::mt19937(5));
  side.at.resize(count);
  const Extent chosen(side.at.begin(), side.at.end());
  side.select = [chosen](hid_t space) {
    if (H5Sselect_elements(space, H5S_SELECT_SET, chosen.size(), chosen.data()) < 0)
      throw std::runtime_error("H5Sselect_elements");
  };
  return side;
}

}  // namespace

size_t Side::elements() const {
  return std::accumulate(extent.begin(), extent.end(), size_t{1}, std::multiplies<>());
}

testing::Hid Side::space() const {
  if (!select) return {};
  testing::Hid made(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr));
  select(made);
  return made;
}

Selection everything(const Extent& extent) { return {"all", whole(extent), whole(extent)}; }

std::vector<Selection> selections(size_t scale) {
  const hsize_t s = scale;
  std::vector<Selection> all;
  all.push_back(everything({64 * s, 50}));
  all.push_back(
      {"2-D box", slabs({80 * s, 90}, {box({7, 11}, {40 * s, 60})}), whole({40 * s, 60})});
  all.push_back({"3-D box", slabs({12 * s, 20, 30}, {box({2, 3, 5}, {8 * s, 12, 20})}),
                 whole({8 * s, 12, 20})});
  all.push_back({"strided", slabs({9000 * s}, {{{5}, {3}, {1000 * s}, {2}}}),
                 slabs({2500 * s}, {box({250}, {2000 * s})})});
  const std::vector<Slab> irregular = {box({1, 3}, {20 * s, 31}),
                                       box({11, 20}, {30 * s, 9}),
                                       {{25 * s, 40}, {7, 5}, {4 * s, 7}, {3, 2}}};
  if (scale <= kMostIrregular) {
    all.push_back({"strided blocks", slabs({90 * s, 100}, {{{1, 2}, {3, 4}, {25 * s, 20}, {2, 3}}}),
                   whole({50 * s, 60})});
    all.push_back({"union", slabs({60 * s, 80}, irregular), slabs({60 * s, 80}, irregular)});
  }
  if (scale == 1)
    all.push_back({"points", points(5000, 100), slabs({2000}, {{{3}, {20}, {100}, {1}}})});
  for (const Selection& selection : all) {
    if (selection.memory.at.size() != selection.file.at.size())
      throw std::logic_error("selection: " + selection.name);
  }
  return all;
}

}  // namespace tidelane::gpu_real
