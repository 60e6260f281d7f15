/// \file
/// The epoch that a file's next captured bytes belong to (file/completion.h): one for each tracked call, one for what lies between.
///
/// Invariant: numbers grow; bytes of two requests never share one.
/// Thread safety: none; guarded by the file's mutex.
#pragma once

#include <cstdint>

namespace tidelane {

class OpenEpoch {
 public:
  /// For a call with a request, whose last epoch was `last` (0: none). Newer ones may have been opened by a call inside it:
  /// were the same bytes theirs and then its own again, each epoch would wait for the other.
  uint64_t OfRequest(uint64_t last) {
    closed_ = true;
    return last == number_ ? last : ++number_;
  }
  /// For a call without one.
  uint64_t OfOthers() {
    if (closed_) ++number_;
    closed_ = false;
    return number_;
  }
  /// All up to here.
  uint64_t Barrier() {
    closed_ = true;
    return number_;
  }

 private:
  uint64_t number_ = 1;
  bool closed_ = false;  // it belongs to a call that is over
};

}  // namespace tidelane
