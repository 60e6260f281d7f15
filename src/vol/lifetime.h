/// \file
/// How a connector comes and goes: initialize, terminate, and the closing of its libhdf5.
///
/// At the end of a libhdf5's life (H5close, exit) HDF5 calls, in this order: our H5atclose
/// function, which waits for every event set (HDF5 would try for ever to close one with operations
/// in it) and drains; the close callback of every file that was left open; terminate, after which
/// the summary is written. A program may open the library again.
///
/// Initialize never fails: a default connector that does leaves HDF5 half initialized. Programs then go on natively, in
/// silence, or crash (h5py 3.16). Settings that are wrong are told, and refused, where files are opened (vol/file.h).
///
/// Thread safety: called by HDF5, under its lock.
#pragma once

#include "vol/instance.h"

namespace tidelane::vol {

herr_t Initialize(Instance& instance, hid_t vipl);
herr_t Terminate(Instance& instance);

}  // namespace tidelane::vol
