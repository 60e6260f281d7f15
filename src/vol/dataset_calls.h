/// \file
/// The callbacks of datasets that are more than native.
///
/// Thread safety: called by HDF5, under its lock.
#pragma once

#include "vol/library_state.h"

namespace tidelane::vol {

/// Counts datasets with external raw files: HDF5 writes those with plain system calls, past every
/// driver.
void* DatasetCreate(LibraryState& library, void* object, const H5VL_loc_params_t* location,
                    const char* name, hid_t lcpl, hid_t type, hid_t space, hid_t dcpl, hid_t dapl,
                    hid_t dxpl, void** request);

/// A dataset in a file that ranks have open together is looked at (vol/ranks_dataset.h).
void* DatasetOpen(LibraryState& library, void* object, const H5VL_loc_params_t* location,
                  const char* name, hid_t dapl, hid_t dxpl, void** request);
void* ObjectOpen(LibraryState& library, void* object, const H5VL_loc_params_t* location,
                 H5I_type_t* type, hid_t dxpl, void** request);

/// Whole chunks that lanes can filter are on their way when it returns (vol/chunk_capture.h).
herr_t DatasetWrite(LibraryState& library, size_t count, void* datasets[], hid_t memory_types[],
                    hid_t memory_spaces[], hid_t file_spaces[], hid_t dxpl, const void* buffers[],
                    void** request);

/// Also what programs ask with the library (vol/control.h).
herr_t DatasetClose(LibraryState& library, void* dataset, hid_t dxpl, void** request);
herr_t DatasetOptional(LibraryState& library, void* dataset, H5VL_optional_args_t* args, hid_t dxpl,
                       void** request);

}  // namespace tidelane::vol
