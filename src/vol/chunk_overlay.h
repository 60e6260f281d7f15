/// \file
/// What ranks have written and not put into the file yet (vol/ranks_filtered.h): laid over what HDF5 read for a rank that reads
/// alone.
///
/// Invariant: whatever the selections and the type in memory are, the program's memory has afterwards what it would have if
/// the chunks were in the file; or the call fails.
///
/// Thread safety: used inside callbacks, under HDF5's lock; lanes only read the chunks meanwhile.
#pragma once

#include <vector>

#include "vol/ranks_peers.h"
#include "vol/read_dataset.h"

namespace tidelane::vol {

/// `chunks`, of that grid: their elements, oldest first. False: it cannot be done, as the error stack says.
bool OverlayChunks(LibraryState& library, const Reading& reading, const ChunkGrid& grid,
                   const std::vector<HeldChunk>& chunks);

}  // namespace tidelane::vol
