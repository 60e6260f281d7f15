/// \file
/// A close that returns while lanes compress some of the file's chunks. Only the program's threads may put chunks into a file, so HDF5 has it open
/// until they are in it: one of the program's next calls closes it then, or the close of the library.
///
/// Only with close=deferred and close=tier_deferred, and where nothing but the identifier that is being closed keeps the file open. (close=tier has promised that the file
/// survives, however long the program then computes.) So not where HDF5 may have the file open for another one, or others for it: it has opened it
/// inside another call (for a link, or a virtual dataset), it keeps a cache of external files for it, or a file was mounted.
///
/// Nobody may find it open still: who opens it in this process, by any name, by a link, as the source of a virtual dataset, has it closed first
/// (h5/before_open.h), and so have calls that settle (vol/call_queue.h), deletions and forks among them.
///
/// Invariant: such a file has no identifier, and HDF5 closes it once.
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include "vol/library_state.h"

namespace tidelane::vol {

/// How a file is closed that no work is left for.
struct HowToClose {
  herr_t (*now)(LibraryState& library, void* file, hid_t dxpl);
  /// Nobody will try again: whatever fails, HDF5 has let go of it, and the engine keeps what cannot be stored until the program ends.
  herr_t (*at_end)(LibraryState& library, void* file, hid_t dxpl);
};

/// Whether the close of `file` may be taken over, as far as its chunks and settings go.
bool MayCloseLate(LibraryState& library, void* file, hid_t dxpl);
/// Takes it over; nothing but the identifier that is being closed keeps the file open. False: it is to be closed now.
bool CloseLate(LibraryState& library, void* file, const HowToClose& how);

/// For h5::RegisterBeforeOpen.
void RegisterLateCloses();

}  // namespace tidelane::vol
