/// \file
/// What a rank that reads alone has written and the ranks have not put into the file yet (vol/ranks_filtered.h): laid over
/// what HDF5 read.
///
/// Invariant: whatever the selections and the type in memory are, the program's memory has afterwards what it would have if
/// the chunks were in the file; or the call fails.
///
/// Thread safety: used inside callbacks, under HDF5's lock; lanes only read the chunks meanwhile.
#pragma once

#include <vector>

#include "vol/chunk_job.h"
#include "vol/read_dataset.h"

namespace tidelane::vol {

/// `chunks`: oldest first. False: it cannot be done, as the error stack says.
bool OverlayChunks(LibraryState& library, const Reading& reading,
                   const std::vector<const ChunkJob*>& chunks);

}  // namespace tidelane::vol
