/// \file
/// Writes of many small pieces that the ranks of an MPI program leave to HDF5, one like the other: after some of them they need not
/// agree on each. How often they do not grows with how often they said the same (1, 3, 7 … writes, then again).
///
/// Invariant: what is noted was agreed by all ranks, and a kind is what all of them know, so all ranks leave out the same agreements.
/// Thread safety: none; used by one thread at a time.
#pragma once

#include <cstdint>

namespace tidelane {

class AgreementBackoff {
 public:
  static constexpr unsigned kMost = 31;  ///< writes between two agreements

  /// Whether a write of this kind is HDF5's without asking. Says so as often as the agreements before allow.
  bool LeftAgain(uint64_t kind) {
    if (kind != kind_ || left_ == 0) return false;
    --left_;
    return true;
  }

  /// What the ranks agreed on for a write of this kind.
  void Note(uint64_t kind, bool left_to_hdf5) {
    const unsigned next = kind == kind_ && length_ != 0 ? 2 * length_ + 1 : 1;
    kind_ = kind;
    length_ = !left_to_hdf5 ? 0 : next < kMost ? next : kMost;
    left_ = length_;
  }

 private:
  uint64_t kind_ = 0;
  unsigned length_ = 0;
  unsigned left_ = 0;
};

}  // namespace tidelane
