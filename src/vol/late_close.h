/// \file
/// A close that returns while lanes compress some of the file's chunks. Only the program's threads may put chunks into a file, so HDF5 has it open
/// until they are in it: one of the program's next calls closes it then, or the close of the library.
///
/// Only with close=deferred, and where nothing but the identifier that is being closed keeps the file open. (close=tier has promised that the file
/// survives, however long the program then computes.) Nobody may find it open still: who opens it in this process, by any name, by a link, as the source of a
/// virtual dataset, has it closed first (h5/before_open.h), and so have calls that settle (vol/call_queue.h), deletions and forks among them.
///
/// Invariant: such a file has no identifier, and HDF5 closes it once.
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include "vol/library_state.h"

namespace tidelane::vol {

/// Takes over the close of `file`; false: it is to be closed now, and nothing has been done.
bool CloseLate(LibraryState& library, void* file, hid_t dxpl);

/// All of this library's, before something happens that another driver must find done.
void FinishCloses(LibraryState& library);

/// For h5::RegisterBeforeOpen.
void RegisterLateCloses();

}  // namespace tidelane::vol
