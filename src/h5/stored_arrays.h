/// \file
/// Where a dataset's elements lie in a file of ours, for rooms that do not know who keeps files: vol/ registers itself, query/ asks.
///
/// Invariant: registered once, by the plugin's entry points, before they hand out a class; until then nothing is found.
/// Thread safety: RegisterStoredArrays from any thread; FindStoredArray inside callbacks, under HDF5's lock.
#pragma once

#include <optional>

#include "chunk/stored_array.h"
#include "h5/library.h"

namespace tidelane::h5 {

using StoredArrayFunction = std::optional<StoredArray> (*)(Library& hdf5, hid_t dataset,
                                                           hid_t memory_type);

void RegisterStoredArrays(StoredArrayFunction find);
/// Its elements as they are now, which stay as they are while a deferred read has them (CallScope::AddRead). nullopt: only HDF5 can read them as
/// `memory_type`, or it is better that it does; the error stack may say more. May throw std::bad_alloc.
std::optional<StoredArray> FindStoredArray(Library& hdf5, hid_t dataset, hid_t memory_type);

}  // namespace tidelane::h5
