/// \file
/// The file callbacks: where the driver is put on, and where closes and flushes get their
/// permissions.
///
/// Close, unless it may be deferred, is: 1. native flush, which waits for every byte and fails if
/// one is lost; 2. native close. A close that fails in step 1 leaves the file open and its id
/// valid, so it can be tried again.
///
/// A close that need not wait may be done later (vol/late_close.h).
///
/// Thread safety: called by HDF5, under its lock.
#pragma once

#include "vol/library_state.h"

namespace tidelane::vol {

void* FileCreate(LibraryState& library, const char* name, unsigned flags, hid_t fcpl, hid_t fapl,
                 hid_t dxpl, void** request);
void* FileOpen(LibraryState& library, const char* name, unsigned flags, hid_t fapl, hid_t dxpl,
               void** request);
herr_t FileGet(LibraryState& library, void* file, H5VL_file_get_args_t* args, hid_t dxpl,
               void** request);
herr_t FileSpecific(LibraryState& library, void* file, H5VL_file_specific_args_t* args, hid_t dxpl,
                    void** request);
herr_t FileOptional(LibraryState& library, void* file, H5VL_optional_args_t* args, hid_t dxpl,
                    void** request);
herr_t FileClose(LibraryState& library, void* file, hid_t dxpl, void** request);

}  // namespace tidelane::vol
