/// \file
/// A set of addresses, kept as disjoint ranges: where space has been reserved, or storage has refused a write.
///
/// Invariant: ranges neither overlap nor touch.
/// Thread safety: none; guarded by whoever holds it.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace tidelane {

class Ranges {
 public:
  /// Whether all of [begin, end) is in the set.
  bool Covers(uint64_t begin, uint64_t end) const {
    auto it = ends_.upper_bound(begin);
    return it != ends_.begin() && std::prev(it)->second >= end;
  }

  void Add(uint64_t begin, uint64_t end) {
    auto it = ends_.upper_bound(begin);
    if (it != ends_.begin() && std::prev(it)->second >= begin) --it;
    while (it != ends_.end() && it->first <= end) {
      begin = begin < it->first ? begin : it->first;
      end = end > it->second ? end : it->second;
      it = ends_.erase(it);
    }
    ends_.emplace(begin, end);
  }

  /// Takes everything at and above `address` out of the set.
  void CutFrom(uint64_t address) {
    auto it = ends_.lower_bound(address);
    if (it != ends_.begin() && std::prev(it)->second > address) std::prev(it)->second = address;
    ends_.erase(it, ends_.end());
  }

  /// Takes [begin, end) out of the set.
  void Remove(uint64_t begin, uint64_t end) {
    auto it = ends_.upper_bound(begin);
    if (it != ends_.begin() && std::prev(it)->second > begin) --it;
    while (it != ends_.end() && it->first < end) {
      const auto [first, last] = *it;
      it = ends_.erase(it);
      if (first < begin) ends_.emplace(first, begin);
      if (end < last) ends_.emplace(end, last);
    }
  }

  bool empty() const { return ends_.empty(); }

 private:
  std::map<uint64_t, uint64_t> ends_;  // begin -> end
};

}  // namespace tidelane
