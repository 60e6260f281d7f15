/// \file
/// Space that storage has promised to a file, so that what is captured will not fail for lack of it later.
///
/// Invariant: what Cover has said is covered stays so until it is cut off.
/// Thread safety: none; the program's side.
#pragma once

#include <cstdint>

#include "extent/ranges.h"
#include "store/store.h"

namespace tidelane {

class Reservation {
 public:
  /// Whether space is to be reserved at all.
  void Want(bool wanted) { wanted_ = wanted; }
  bool wanted() const { return wanted_; }
  /// Makes sure of space for [address, address + size): 0 or an errno. Reserved in larger steps than is asked for, for a program
  /// that appends a little at a time. Where storage cannot promise it, this is counted and no longer wanted.
  int Cover(Store& store, uint64_t address, uint64_t size);
  void CutFrom(uint64_t address) { ranges_.CutFrom(address); }

 private:
  bool wanted_ = false;
  Ranges ranges_;
};

}  // namespace tidelane
