/// \file
/// Boxes of one dataset, read into memory of ours by H5Dread: HDF5 finds the elements wherever they are (pending, in a chunk cache, in other
/// files, never written), and a file of ours has its lanes read and decode what is large.
///
/// Invariant: memory is that of one box. Thread safety: under HDF5's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "chunk/chunk_grid.h"
#include "h5/owned_id.h"

namespace tidelane::query {

/// Shape and layout of a dataset, as far as they say how to read it.
struct Layout {
  int rank = 0;
  Coordinates extent{};
  Coordinates quantum{};  ///< of a chunk; 1 where there are none
  bool scalar = false;    ///< of rank 1 and one element here
  bool filtered = false;
  const char* kind = "";  ///< "contiguous", "chunked", ...
};

bool SameBox(int rank, const Box& a, const Box& b);

Status FindLayout(h5::Library& hdf5, hid_t dataset, Layout& found);

class BoxReader {
 public:
  /// Takes a reference to the dataset. `variable`: what is read points to memory that HDF5 gives.
  BoxReader(h5::Library& hdf5, hid_t dataset, h5::OwnedId memory_type, uint64_t record,
            bool variable);
  BoxReader(BoxReader&&) = default;
  BoxReader& operator=(BoxReader&&) = delete;
  ~BoxReader();

  /// Reads it, unless it is what was read last. `rank` 0: everything.
  Status Read(int rank, const Box& box);
  /// Whether that is what was read last.
  bool Holds(int rank, const Box& box) const;
  /// The next Read reads, whatever there is.
  void Forget();
  /// Elements of the box, in row-major order, `record` bytes each.
  const std::byte* data() const { return memory_.get(); }
  uint64_t record() const { return record_; }
  uint64_t bytes_read() const { return bytes_read_; }
  hid_t dataset() const { return dataset_.get(); }
  hid_t memory_type() const { return memory_type_.get(); }

 private:
  Status Select(int rank, const Box& box, uint64_t elements);
  Status ReadSelected(hid_t memory_space, hid_t file_space, uint64_t elements);
  void GiveBack();

  h5::Library* hdf5_;
  h5::OwnedId dataset_;
  h5::OwnedId memory_type_;
  h5::OwnedId file_space_;
  h5::OwnedId memory_space_;  // of `elements_`
  uint64_t record_;
  bool variable_;
  std::unique_ptr<std::byte[]> memory_;
  uint64_t capacity_ = 0;
  uint64_t elements_ = 0;  // in memory; 0: none
  uint64_t selected_ = 0;  // of memory_space_
  Box box_;
  uint64_t bytes_read_ = 0;
};

}  // namespace tidelane::query
