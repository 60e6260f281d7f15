/// \file
/// A small buffer in a GPU's memory, and a copy of it that HDF5 can look at: an attribute's, a stored chunk's. Datasets' elements:
/// vol/device_buffers.h.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/copies.h"
#include "vol/library_state.h"

namespace tidelane::vol {

class DeviceTwin {
 public:
  /// `what` names it in errors; `device` lies in `memory`; `after`: the program's stream that the copies come after. May throw
  /// std::bad_alloc.
  DeviceTwin(LibraryState& library, const char* what, const gpu::Memory& memory, void* device,
             size_t size, gpu::Stream after = nullptr);

  void* data() { return bytes_.data(); }
  /// False: the reason is on the error stack.
  bool CopyDown();
  bool CopyUp();

 private:
  std::vector<gpu::PlacedBox> Whole() const;
  bool Fails(const gpu::Copies& copies) const;

  LibraryState& library_;
  const char* const what_;
  const gpu::Memory memory_;
  void* const device_;
  const gpu::Stream after_;
  std::vector<std::byte> bytes_;
};

}  // namespace tidelane::vol
