/// \file
/// What messages call an object.
///
/// Thread safety: under HDF5's lock.
#pragma once

#include <string>

#include "base/status.h"
#include "h5/library.h"

namespace tidelane::query {

/// "/step/x", in its file; "" for what has no name (any more).
std::string PathOf(h5::Library& hdf5, hid_t object);

/// "'/step/x' of 'run.h5'"; "?" for what has no name (any more).
std::string NameOfObject(h5::Library& hdf5, hid_t object);
/// The same with "dataset " before it.
std::string NameOfDataset(h5::Library& hdf5, hid_t dataset);

/// EIO: "read dataset '/step/x' of 'run.h5' (why HDF5's last call has failed)", where `what` is "read dataset".
Status FailedAt(h5::Library& hdf5, const std::string& what, hid_t object);

}  // namespace tidelane::query
