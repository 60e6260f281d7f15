/// \file
/// Files that MPI's driver has open and that are not captured.
///
/// Thread safety: under HDF5's lock.
#pragma once

#include "h5/library.h"

namespace tidelane::vfd {

/// See h5::ParallelDriverTable::watch.
void WatchMpio(h5::Library& library, hid_t driver, void* vfd_handle, const char* name,
               bool writable);

}  // namespace tidelane::vfd
