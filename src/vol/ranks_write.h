/// \file
/// Writes of elements to files that ranks have open together (vol/ranks.h).
///
/// A write that a rank makes alone is captured by the driver, as it is. A collective one takes these steps:
///   1. Each rank looks at its part: could it be captured, in how many pieces, where.
///   2. One reduction: if one rank cannot, or one has many small pieces, all leave it to HDF5 and MPI-IO, with the rules for
///      such moments. What decides is the same on all ranks from here on.
///   3. If a rank is about to write where another one holds bytes that it has not stored, these are stored first, by all.
///   4. HDF5 is given an independent transfer instead: what it writes comes to the driver as bytes, which captures them.
///   5. The program's transfer list says what it would have said: the collective transfer that native HDF5 would have made.
///
/// Invariant: what the driver saw during such a call is exactly what was selected; otherwise this rank captures no more.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <memory>

#include "h5/parallel_file.h"
#include "vol/library_state.h"
#include "vol/property_lists.h"
#include "vol/writing.h"

namespace tidelane::vol {

herr_t WriteTogether(LibraryState& library, const std::shared_ptr<h5::ParallelFile>& parallel,
                     const Writes& writes, const Transfer& transfer, hid_t dxpl, void** request);

}  // namespace tidelane::vol
