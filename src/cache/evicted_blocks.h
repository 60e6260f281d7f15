/// \file
/// Which blocks made room for others a while ago: one that is wanted again was evicted too soon, and tells that there had better be
/// room for one more.
///
/// Invariant: it is a guess, of bounded size: what is noted may be forgotten, and what was not is never found.
/// Thread safety: none; guarded by who has it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tidelane {

class EvictedBlocks {
 public:
  static constexpr size_t kPlaces = 1024;

  void Note(uint64_t block) { PlaceOf(block) = block + 1; }
  /// Whether it was noted, and not taken since.
  bool Take(uint64_t block) {
    uint64_t& place = PlaceOf(block);
    if (place != block + 1) return false;
    place = 0;
    return true;
  }

 private:
  uint64_t& PlaceOf(uint64_t block) {
    constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;  // as in cache/near_reads.cc
    return places_[(block * kGoldenRatio >> 32) * kPlaces >> 32];
  }

  std::array<uint64_t, kPlaces> places_{};  // the block's number and 1; 0: none
};

}  // namespace tidelane
