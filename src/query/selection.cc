#include "query/selection.h"

#include <algorithm>
#include <cerrno>

#include "query/quiet_errors.h"
#include "query/scan.h"

namespace tidelane::query {

namespace {

// Runs shorter than this on average are points.
constexpr uint64_t kPointsBelow = 4;
constexpr size_t kPointsAtOnce = 1u << 18;

Status Failed(h5::Library& hdf5) {
  return Status::Failed(EIO, "select elements that match (" + CauseOf(hdf5) + ")");
}

void CoordinatesOf(const Layout& layout, uint64_t position, hsize_t* at) {
  for (int d = layout.rank - 1; d >= 0; --d) {
    at[d] = position % layout.extent[d];
    position /= layout.extent[d];
  }
}

}  // namespace

void Selection::Add(uint64_t first, const predicate::Bits& bits) {
  hits_ += bits.Count();
  const uint64_t row = layout_.extent[layout_.rank - 1];
  for (auto run = bits.NextRun(0); run.first < bits.size(); run = bits.NextRun(run.second)) {
    // A run of row-major order is one hyperslab only within a row.
    for (uint64_t at = first + run.first; at < first + run.second;) {
      const uint64_t end = layout_.rank == 1 ? first + run.second
                                             : std::min(first + run.second, (at / row + 1) * row);
      if (layout_.rank == 1 && !runs_.empty() && runs_.back().second == at) {
        runs_.back().second = end;
      } else {
        runs_.emplace_back(at, end);
      }
      at = end;
    }
  }
}

Status Selection::Select(h5::Library& hdf5, h5::OwnedId& space) const {
  if (!space.valid()) return Failed(hdf5);
  if (hits_ == 0) return hdf5.Sselect_none(space.get()) < 0 ? Failed(hdf5) : Status();
  uint64_t elements = 1;
  for (int d = 0; d < layout_.rank; ++d) elements *= layout_.extent[d];
  if (hits_ == elements) return hdf5.Sselect_all(space.get()) < 0 ? Failed(hdf5) : Status();
  // HDF5 (1.14.6) crashes when it is given points of its largest rank.
  if (layout_.rank < kMaxRank && hits_ < kPointsBelow * runs_.size())
    return Points(hdf5, space.get());
  space = Runs(hdf5, space.get(), 0, runs_.size());
  return space.valid() ? Status() : Failed(hdf5);
}

Status Selection::Points(h5::Library& hdf5, hid_t space) const {
  std::vector<hsize_t> points;
  const size_t rank = static_cast<size_t>(layout_.rank);
  const size_t most = rank * kPointsAtOnce;
  H5S_seloper_t how = H5S_SELECT_SET;
  const auto select = [&] {
    const bool done = hdf5.Sselect_elements(space, how, points.size() / rank, points.data()) >= 0;
    how = H5S_SELECT_APPEND;
    points.clear();
    return done;
  };
  for (const auto& [first, last] : runs_) {
    for (uint64_t position = first; position < last; ++position) {
      points.resize(points.size() + rank);
      CoordinatesOf(layout_, position, &*(points.end() - layout_.rank));
      if (points.size() >= most && !select()) return Failed(hdf5);
    }
  }
  return points.empty() || select() ? Status() : Failed(hdf5);
}

h5::OwnedId Selection::Runs(h5::Library& hdf5, hid_t extent, size_t first, size_t last) const {
  if (last - first == 1) {
    h5::OwnedId one(hdf5, hdf5.Scopy(extent));
    hsize_t start[kMaxRank], count[kMaxRank];
    CoordinatesOf(layout_, runs_[first].first, start);
    std::fill_n(count, layout_.rank, 1);
    count[layout_.rank - 1] = runs_[first].second - runs_[first].first;
    if (hdf5.Sselect_hyperslab(one.get(), H5S_SELECT_SET, start, nullptr, count, nullptr) < 0)
      return {};
    return one;
  }
  const size_t middle = first + (last - first) / 2;
  const h5::OwnedId left = Runs(hdf5, extent, first, middle);
  const h5::OwnedId right = Runs(hdf5, extent, middle, last);
  if (!left.valid() || !right.valid()) return {};
  return {hdf5, hdf5.Scombine_select(left.get(), H5S_SELECT_OR, right.get())};
}

Status Search(Scan& scan, h5::OwnedId& space) {
  h5::Library& hdf5 = scan.columns().hdf5();
  Selection selection(scan.columns().layout());
  auto step = Scan::Step::kBlock;
  for (;;) {
    Status status = scan.Next(Scan::Clock::time_point::max(), step);
    if (!status.ok()) return status;
    if (step != Scan::Step::kBlock) break;
    if (scan.hits() != 0) selection.Add(scan.block().first, scan.bits());
  }
  if (selection.hits() == 0) return {};
  space = h5::OwnedId(hdf5, hdf5.Dget_space(scan.columns().dataset_of(0)));
  return selection.Select(hdf5, space);
}

}  // namespace tidelane::query
