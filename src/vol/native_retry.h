/// \file
/// Chunks that could not be read later than their call are read once more by HDF5, before anybody is
/// told: it may need less memory, or understand what we do not, and else its words are told.
///
/// Only where it would still read the same: the dataset is open, and nothing has been changed since.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "h5/owned_id.h"
#include "vol/read_dataset.h"
#include "vol/request.h"

namespace tidelane::vol {

class NativeRetry final : public SecondTry {
 public:
  explicit NativeRetry(LibraryState& library) : library_(library) {}
  /// The error stack stays as it is.
  ~NativeRetry() override;

  /// Keeps what `reading` was asked for: the program may change or close its ids. False if it cannot.
  bool Note(const Reading& reading);
  void DropLast() { reads_.pop_back(); }
  bool empty() const { return reads_.empty(); }

  bool Run(h5::OwnedId& stack) override;

 private:
  struct Kept {
    void* dataset;
    uint64_t number;  // of what is known of it
    h5::OwnedId type;
    h5::OwnedId memory_space;  // not valid: `memory_id` is no id of the program's
    h5::OwnedId file_space;
    hid_t memory_id;
    hid_t file_id;
    void* buffer;
  };

  bool ReadOne(const Kept& kept);

  LibraryState& library_;
  uint64_t changes_ = 0;
  std::vector<Kept> reads_;
};

}  // namespace tidelane::vol
