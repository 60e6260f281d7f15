/// \file
/// A selection, stretch after stretch, in HDF5's order. In elements.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "h5/library.h"

namespace tidelane::vol {

class Stretches {
 public:
  Stretches(h5::Library& hdf5, hid_t space, size_t element)
      : hdf5_(hdf5), element_(element), iterator_(hdf5.Ssel_iter_create(space, element, 0)) {}
  ~Stretches() {
    if (iterator_ >= 0) hdf5_.Ssel_iter_close(iterator_);
  }
  Stretches(const Stretches&) = delete;
  Stretches& operator=(const Stretches&) = delete;

  /// Whether there is more; then `at` and `count` say what.
  bool More() {
    while (count == 0) {
      if (next_ == found_ && !Ask()) return false;
      at = offsets_[next_] / element_;
      count = lengths_[next_++] / element_;
    }
    return true;
  }
  void Skip(uint64_t elements) {
    at += elements;
    count -= elements;
  }

  uint64_t at = 0;
  uint64_t count = 0;

 private:
  bool Ask() {
    size_t elements = 0;
    next_ = found_ = 0;
    return iterator_ >= 0 &&
           hdf5_.Ssel_iter_get_seq_list(iterator_, offsets_.size(), SIZE_MAX, &found_, &elements,
                                        offsets_.data(), lengths_.data()) >= 0 &&
           found_ != 0;
  }

  h5::Library& hdf5_;
  const size_t element_;
  const hid_t iterator_;
  std::array<hsize_t, 64> offsets_;
  std::array<size_t, 64> lengths_;
  size_t next_ = 0;
  size_t found_ = 0;
};

}  // namespace tidelane::vol
