/// \file
/// An arena's free slabs: *hot* ones, which have pages, and *cold* ones, which have none (yet, or any more). The hot one that was used
/// last is handed out first: it is in the processor's caches, and those that nobody needs age at the end of the list.
///
/// Invariant: hot slabs are in the order in which they were freed, the newest first. What is kept is cold_bytes() of cold ones.
/// Thread safety: none; guarded by the arena's mutex.
#pragma once

#include <cstdint>

#include "buffer/slab.h"

namespace tidelane {

class FreeSlabs {
 public:
  bool empty() const { return hot_ == nullptr && cold_ == nullptr; }
  uint64_t hot_bytes() const { return hot_bytes_; }
  uint64_t cold_bytes() const { return cold_bytes_; }

  void Push(Slab* slab, uint64_t now_ns);
  void PushCold(Slab* slab);
  /// Any one, hot ones first; nullptr when there is none.
  Slab* Pop();
  Slab* PopCold();
  /// The hot ones that were freed before `ns`, linked by next_free; nullptr: none.
  Slab* TakeAged(uint64_t ns);
  /// When the hot one that has been free for longest was freed; UINT64_MAX: there is none.
  uint64_t OldestNs() const;
  /// A fork has taken them.
  void Forget() { *this = FreeSlabs(); }

 private:
  Slab* hot_ = nullptr;
  Slab* cold_ = nullptr;
  uint64_t hot_bytes_ = 0;
  uint64_t cold_bytes_ = 0;
};

}  // namespace tidelane
