/// \file
/// What a program set with the library (library/tidelane.h) on the lists that it hands to HDF5.
///
/// It lies there as temporary properties (h5/protocol.h). A property of another size than it should
/// have is somebody else's and is left alone.
///
/// Cost: nothing for the default transfer list; for a list of the program's own one question, unless
/// it has more properties than the default one.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstdint>
#include <optional>

#include "base/config.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// The settings of a file that is opened with `fapl`: the process's, what the connector info says on
/// top of them, and what the list says on top of that. Keeps the error stack.
FileSettings SettingsFor(LibraryState& library, hid_t fapl);

/// What a transfer list says.
struct Transfer {
  bool synchronous = false;  ///< unless a request is asked for
  std::optional<bool> paused;
  std::optional<uint64_t> delay_us;
  std::optional<uint64_t> copy_limit;
  void* gpu_stream =
      nullptr;  ///< what fills the buffers, or has used them, is on it; nullptr: the legacy one
};

namespace internal {
Transfer ReadTransfer(LibraryState& library, hid_t dxpl);
}

inline Transfer TransferOf(LibraryState& library, hid_t dxpl) {
  return dxpl == library.default_dxpl ? Transfer() : internal::ReadTransfer(library, dxpl);
}

}  // namespace tidelane::vol
