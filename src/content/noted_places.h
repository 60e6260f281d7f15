/// \file
/// The places of one file that were read, for as long as they are few: what is read of its successor first.
///
/// Thread safety: none; the program's side.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cache/access_predictor.h"

namespace tidelane {

class NotedPlaces {
 public:
  void Start(bool wanted) { noting_ = wanted; }
  bool noting() const { return noting_; }
  /// `near`: a place that begins so close behind the last one belongs to it.
  void Add(uint64_t address, uint64_t size, uint64_t near) {
    if (!places_.empty()) {
      ByteRange& last = places_.back();
      if (address >= last.begin && address <= last.end + near) {
        last.end = std::max(last.end, address + size);
        return;
      }
    }
    if (places_.size() == kMost) {
      noting_ = false;
      places_ = {};
    } else {
      places_.push_back({address, address + size});
    }
  }
  std::vector<ByteRange> Take() {
    noting_ = false;
    return std::exchange(places_, {});
  }

 private:
  static constexpr size_t kMost = 1024;

  bool noting_ = false;
  std::vector<ByteRange> places_;
};

}  // namespace tidelane
