/// \file
/// HDF5's own deflate, replaced by the setting's (src/codec/): what HDF5 compresses and decompresses
/// itself gains too.
///
/// Invariant: a libhdf5 without deflate stays without it, and one that does not let it be replaced
/// keeps its own ([decision 10](../../docs/decisions/0010-deflate.md)). Memory that changes hands is
/// HDF5's.
///
/// Thread safety: used inside callbacks, under that libhdf5's lock.
#pragma once

#include "vol/library_state.h"

namespace tidelane::vol {

/// For a libhdf5 that we start to serve: HDF5 forgets its filters when it closes.
void ReplaceDeflate(LibraryState& library);
/// HDF5's own again, where this libhdf5 let us see it.
void RestoreDeflate(LibraryState& library);

}  // namespace tidelane::vol
