/// \file
/// Transfers of GPU buffers that are too large for staging memory, cut into slices along their slowest dimension, one after the other.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "h5/owned_id.h"
#include "vol/library_state.h"
#include "vol/selected_box.h"
#include "vol/writing.h"

namespace tidelane::vol {

class DeviceSlices {
 public:
  /// nullopt: `whole` is no more than `most` bytes, or is not cut: its selections are no boxes of one shape.
  static std::optional<DeviceSlices> Of(LibraryState& library, const Writing& whole, hid_t dxpl,
                                        uint64_t most);

  DeviceSlices(DeviceSlices&&) = default;
  DeviceSlices(const DeviceSlices&) = delete;
  ~DeviceSlices();

  enum class Step { kSlice, kEnd, kFailed };
  /// kSlice: `slice` says what is next, and its spaces are valid until the next one.
  Step Next(Writing& slice);

 private:
  DeviceSlices(LibraryState& library, const Writing& whole) : library_(library), whole_(whole) {}
  bool Select(const h5::OwnedId& space, const SelectedBox& box, uint64_t rows);

  LibraryState& library_;
  const Writing whole_;
  SelectedBox in_file_;
  SelectedBox in_memory_;
  h5::OwnedId file_space_;
  h5::OwnedId memory_space_;
  int along_ = 0;       // the dimension that is cut
  uint64_t rows_ = 0;   // of a slice
  uint64_t begin_ = 0;  // of the next one
};

/// A call's datasets with nothing selected of them: how a rank whose GPU fails takes part in a call that others are in.
class EmptyRows {
 public:
  /// May throw std::bad_alloc.
  EmptyRows(LibraryState& library, size_t count, void* const datasets[], hid_t dxpl);
  ~EmptyRows();
  EmptyRows(const EmptyRows&) = delete;
  EmptyRows& operator=(const EmptyRows&) = delete;

  hid_t* memory_spaces() { return memory_ids_.data(); }
  hid_t* file_spaces() { return file_ids_.data(); }
  /// Memory that nobody looks at.
  void** buffers() { return buffers_.data(); }

 private:
  LibraryState& library_;
  std::vector<h5::OwnedId> spaces_;
  std::vector<hid_t> memory_ids_, file_ids_;
  std::vector<void*> buffers_;
};

}  // namespace tidelane::vol
