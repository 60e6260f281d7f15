/// \file
/// A call of HDF5's around work of ours that comes from outside its callbacks, or that must not be seen by the call in
/// progress: HDF5 keeps what it looked up in a call's transfer list for the rest of that call, so that what we ask with
/// another list would take the place of what the program asked for (its callbacks, its memory manager).
///
/// Invariant: who is told that the work ran finds it done. Thread safety: takes HDF5's lock where there is one.
#pragma once

#include <exception>

#include "h5/error.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// Calls `work()` from within a call of HDF5 of its own. False: it did not run, for which there is no reason but a
/// library that has run out of memory or id types; who needed it fails. The error stack stays as it is.
template <typename Work>
[[nodiscard]] bool Enter(LibraryState& library, Work work) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  struct Call {
    Work& work;
    std::exception_ptr thrown;
  } call{work, nullptr};
  const bool ran = hdf5.CallInside(
      [](void* context) {
        Call& asked = *static_cast<Call*>(context);
        try {  // HDF5's frames between here and there are C's
          asked.work();
        } catch (...) {
          asked.thrown = std::current_exception();
        }
      },
      &call);
  if (call.thrown != nullptr) std::rethrow_exception(call.thrown);
  return ran;
}

/// Calls `work()`, which uses the default transfer list, from within a call whose list is `dxpl`: out of that call's
/// sight if it has another one. False: it did not run.
template <typename Work>
[[nodiscard]] bool Aside(LibraryState& library, hid_t dxpl, Work work) {
  if (dxpl != library.default_dxpl) return Enter(library, work);
  work();
  return true;
}

}  // namespace tidelane::vol
