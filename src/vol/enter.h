/// \file
/// A call of HDF5's around work of ours that comes from outside its callbacks, or that must not be seen by the call in
/// progress (HDF5 keeps what it knows of a transfer list for the rest of a call).
///
/// Thread safety: takes HDF5's lock where there is one.
#pragma once

#include "h5/error.h"
#include "vol/instance.h"

namespace tidelane::vol {

/// Calls `work()` from within a call of HDF5. The error stack stays as it is.
template <typename Work>
void Enter(Instance& instance, Work work) {
  h5::Library& hdf5 = instance.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  // There is always a connector to be called back with: ours.
  hdf5.Iiterate(
      H5I_VOL,
      [](hid_t, void* context) -> herr_t {
        (*static_cast<Work*>(context))();
        return 1;  // once
      },
      &work);
}

}  // namespace tidelane::vol
