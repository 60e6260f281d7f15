/// \file
/// Writes of many small pieces that the ranks of an MPI program leave to HDF5, one like the other: after many of them in turn they need
/// not agree on each.
///
/// Ranks may name different datasets in one collective write, so nothing about the dataset is known to all of them: all they have in
/// common is how many such writes there were, and what was agreed. A few small writes between large ones must not keep those from
/// being captured: ranks begin to leave out agreements when the last kInTurn came to the same, and ask again after 1, 3, 7, 15 writes, then after
/// 17 to 31: were it the same number for ever, a pattern of so many writes would always be asked about at the same one.
///
/// Invariant: what is noted was agreed by all ranks, so all ranks leave out the same agreements.
/// Thread safety: none; used by one thread at a time.
#pragma once

namespace tidelane {

class AgreementBackoff {
 public:
  /// Agreements that came to the same, before any is left out; twice as many each time that this was wrong.
  static constexpr unsigned kInTurn = 8;
  static constexpr unsigned kMostInTurn = 1024;
  static constexpr unsigned kMost = 31;  ///< writes between two agreements

  /// Whether the next write is HDF5's without asking. Says so as often as the agreements before allow.
  bool LeftAgain() {
    if (left_ == 0) return false;
    --left_;
    return true;
  }

  /// What the ranks agreed on.
  void Note(bool left_to_hdf5) {
    if (!left_to_hdf5) {
      if (length_ != 0 && needed_ < kMostInTurn) needed_ *= 2;
      in_turn_ = length_ = left_ = 0;
      return;
    }
    if (in_turn_ < needed_) ++in_turn_;
    if (in_turn_ < needed_) return;
    if (length_ < kMost / 2) {
      length_ = 2 * length_ + 1;
    } else {
      drawn_ = drawn_ * 1103515245 + 12345;  // the same on all ranks
      length_ = kMost - (drawn_ >> 16) % (kMost / 2);
    }
    left_ = length_;
  }

 private:
  unsigned needed_ = kInTurn;
  unsigned in_turn_ = 0;
  unsigned length_ = 0;
  unsigned left_ = 0;
  unsigned drawn_ = 0;
};

}  // namespace tidelane
