/// \file
/// Where elements that a call writes lie: storage that holds nothing but one dataset's elements, or one chunk's. Between two
/// writes in the same place a gap may be filled by reading it and writing it again: natively HDF5's sieve does so.
///
/// The VOL face says it around a native call (ElementsIn); the driver, called from inside it on the same thread, passes it down
/// with the call's context.
///
/// Invariant: places are disjoint, in ascending order, and none begins at 0.
/// Thread safety: none; an ElementsIn belongs to the thread that made it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tidelane {

class ElementPlaces {
 public:
  /// In bytes of the file, [begin, end).
  struct Place {
    uint64_t begin = 0;
    uint64_t end = 0;

    bool Has(uint64_t address) const { return begin <= address && address < end; }
  };

  void Clear() { places_.clear(); }
  bool empty() const { return places_.empty(); }
  void Add(Place place) { places_.push_back(place); }
  /// After all were added, in any order. Of places that overlap, as those of a damaged file may, none is kept.
  void Sort() {
    std::ranges::sort(places_, {}, &Place::begin);
    const auto overlap = [](const Place& a, const Place& b) { return b.begin < a.end; };
    if (std::ranges::adjacent_find(places_, overlap) != places_.end()) Clear();
  }
  /// Where the place begins that `address` is in; 0: it is in none.
  uint64_t Of(uint64_t address) const {
    if (places_.size() == 1) return places_[0].Has(address) ? places_[0].begin : 0;
    const auto behind = std::ranges::upper_bound(places_, address, {}, &Place::begin);
    if (behind == places_.begin()) return 0;
    const Place& place = *std::prev(behind);
    return place.Has(address) ? place.begin : 0;
  }

 private:
  std::vector<Place> places_;
};

/// While one lives, elements that this thread writes lie in these places, or in none. nullptr: nothing is known. The innermost
/// counts; `places` must outlive it.
class [[nodiscard]] ElementsIn {
 public:
  explicit ElementsIn(const ElementPlaces* places);
  ~ElementsIn();
  ElementsIn(const ElementsIn&) = delete;
  ElementsIn& operator=(const ElementsIn&) = delete;

 private:
  const ElementPlaces* const before_;
};

}  // namespace tidelane
