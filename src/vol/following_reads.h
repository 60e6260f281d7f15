/// \file
/// Whether a dataset's small reads follow one another, so that HDF5's sieve buffer answers most of them, as natively.
///
/// Where many datasets are read in turn every part of ours that a read touches has left the processor's caches meanwhile, and the
/// sieve touches least. Reads that jump, or go backwards, it would answer with a window each. So two reads in a row are compared now
/// and then, and what they do is believed until the next two.
///
/// Reads past the sieve leave its window as it was. So that nobody reads older bytes than he has seen, none of this is asked about a file that was
/// changed by somebody whom its lock does not keep out (content/file_watch.h).
///
/// Thread safety: none; used under HDF5's lock.
#pragma once

#include <cstdint>

namespace tidelane::vol {

class FollowingReads {
 public:
  /// So many reads are made between two comparisons: looking at a selection takes four calls of HDF5.
  static constexpr unsigned kBetween = 64;

  /// A read begins. Whether `Look` is to be told where it lies.
  bool Looks() {
    ++reads_;
    return reads_ <= 2;
  }
  /// It is one run of `size` from `first` on; of anything else, of a size of 0. In bytes, of which a buffer holds `window`.
  void Look(uint64_t first, uint64_t size, uint64_t window) {
    if (reads_ == 2)
      follow_ = size != 0 && size_ != 0 && first + size > first_ && first < first_ + window;
    first_ = first;
    size_ = size;
  }
  /// Whether this read, and those until the next comparison, are the sieve's.
  bool follow() {
    if (reads_ > kBetween) reads_ = 0;
    return follow_;
  }

 private:
  uint64_t first_ = 0;
  uint64_t size_ = 0;
  unsigned reads_ = 0;
  bool follow_ = false;
};

}  // namespace tidelane::vol
