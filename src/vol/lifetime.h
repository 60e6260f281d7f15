/// \file
/// How a connector comes and goes: initialize, terminate, and the closing of its libhdf5.
///
/// At the end of a libhdf5's life (H5close, exit) HDF5 calls, in this order: our H5atclose
/// function, which waits for every event set (HDF5 would try for ever to close one with operations
/// in it) and drains; the close callback of every file that was left open; terminate, after which
/// the summary is written. A program may open the library again.
///
/// HDF5 also initializes a connector just to look at it: when a file cannot be opened, it asks each one in the plugin path
/// whether that can, of programs that never chose any. So Initialize only counts, and Start, when a file is first opened
/// through us, does what changes a libhdf5: HDF5's deflate is replaced, and its closing is watched.
///
/// Initialize never fails: a default connector that does leaves HDF5 half initialized. Programs then go on natively, in
/// silence, or crash (h5py 3.16). Settings that are wrong are told, and refused, where files are opened (vol/file.h).
///
/// Thread safety: called by HDF5, under its lock.
#pragma once

#include "vol/library_state.h"

namespace tidelane::vol {

herr_t Initialize(LibraryState& library, hid_t vipl);
/// Before a file is opened, or asked for, through us. The error stack stays as it is.
void Start(LibraryState& library);
/// Before anything else that keeps an id of this libhdf5, which its closing makes void.
void WatchClose(LibraryState& library);
herr_t Terminate(LibraryState& library);

}  // namespace tidelane::vol
