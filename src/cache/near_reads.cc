#include "cache/near_reads.h"

#include <algorithm>

namespace tidelane {

NearReads::Set& NearReads::SetOf(uint64_t granule) {
  constexpr uint64_t kGoldenRatio =
      0x9e3779b97f4a7c15;  // spreads what is regularly apart (Fibonacci hashing)
  return sets_[(granule * kGoldenRatio >> 32) * sets_.size() >>
               32];  // by the highest bits, which are spread best
}

// The read of `granule` that `address` follows, if it does: its place is free then.
bool NearReads::Leave(uint64_t granule, uint64_t address) {
  for (LastRead& read : SetOf(granule)) {
    const uint64_t last = read.next - 1;
    if (read.next == 0 || last / kReach != granule) continue;
    if (std::max(last, address) - std::min(last, address) > kReach) return false;
    streams_ -= read.follows ? 1 : 0;
    read = LastRead{};
    return true;
  }
  return false;
}

bool NearReads::Note(uint64_t address) {
  const uint64_t granule = address / kReach;
  const bool near = Leave(granule, address) || (granule != 0 && Leave(granule - 1, address)) ||
                    Leave(granule + 1, address);
  // None of this granule is left; a free place is the one never used.
  LastRead& place = *std::ranges::min_element(SetOf(granule), {}, &LastRead::used);
  streams_ += near ? 1 : 0;
  streams_ -= place.follows ? 1 : 0;
  place = {address + 1, ++clock_, near};
  return near;
}

}  // namespace tidelane
