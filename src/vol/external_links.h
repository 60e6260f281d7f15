/// \file
/// External links that are followed with a file access list of their own (H5Pset_elink_fapl, H5Pset_elink_cb).
///
/// HDF5 opens such a link's file with that list, without a VOL call. Where it names sec2, the file would be open past our
/// driver, while we may have it open, or still be storing it: that list gets our driver, as those of H5Fopen do
/// (vol/driver_selection.h). Where it names another driver, everything that we hold is stored first, as the link's prefixes make
/// many names of its file's name; and a file that turns out to be open here is written through from then on.
///
/// HDF5 follows external links through a class that programs may replace, too. Ours differs from HDF5's in the function that
/// follows a link, so that calls without such links cost nothing.
///
/// Invariant: the program's own lists never change; its callback sees the drivers that it would see natively. A
/// libhdf5 that does not let its class be seen keeps it, and so does a program's own class.
///
/// Thread safety: used inside callbacks, under that libhdf5's lock.
#pragma once

#include "vol/library_state.h"

namespace tidelane::vol {

/// For a libhdf5 that we start to serve: HDF5 forgets its classes when it closes.
void ReplaceExternalLinks(LibraryState& library);
/// HDF5's own again, unless the program has replaced ours.
void RestoreExternalLinks(LibraryState& library);

}  // namespace tidelane::vol
