/// \file
/// Where all elements of a dataset lie, for lanes that read them after the call (h5/stored_arrays.h).
///
/// What is found there is what H5Dread would give now: chunks on their way are inserted first, and what HDF5's chunk cache and sieve buffer have is handed to
/// our driver.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

namespace tidelane::vol {

/// Has h5::FindStoredArray answer. Once, before any file is opened.
void RegisterStoredArrays();

}  // namespace tidelane::vol
