/// \file
/// What is done before the driver opens a file, for rooms that do not know who does it: vol/ has files whose closes have returned and which HDF5
/// has open yet (vol/late_close.h), and nobody must find them so.
///
/// Invariant: registered once, by the plugin's entry points, before they hand out a class; until then nothing is done.
/// Thread safety: RegisterBeforeOpen from any thread; BeforeOpen inside the driver's callbacks, under HDF5's lock.
#pragma once

namespace tidelane::h5 {

/// `slot`: of the libhdf5 that opens it.
using BeforeOpenFunction = void (*)(int slot, const char* path);

void RegisterBeforeOpen(BeforeOpenFunction function);
void BeforeOpen(int slot, const char* path);

}  // namespace tidelane::h5
