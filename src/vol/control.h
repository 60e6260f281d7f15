/// \file
/// What programs ask of a file or a dataset with the library (library/tidelane.h): wait, test,
/// start, pause, delay, commit; and queries, which query/ answers (h5/query_operation.h).
///
/// They come as optional operations, whose numbers HDF5 gives out when their names are registered
/// (h5/protocol.h). Bytes are known by file, so what is asked of a dataset is asked of its file.
///
/// Invariant: operations that are not ours go to the native connector as they are.
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include "vol/library_state.h"

namespace tidelane::vol {

/// Registers our names, once in the life of a libhdf5.
void RegisterOperations(LibraryState& library);

/// Whether `operation` of this kind of object is ours.
bool IsOurs(const LibraryState& library, H5I_type_t kind, int operation);
/// Carries it out on a file or a dataset.
herr_t Operate(LibraryState& library, void* object, H5I_type_t kind,
               const H5VL_optional_args_t& args, hid_t dxpl, void** request);

// The class's callbacks.
herr_t QueryOptional(LibraryState& library, void* object, H5VL_subclass_t subclass, int operation,
                     uint64_t* flags);
herr_t RequestOptional(LibraryState& library, void* request, H5VL_optional_args_t* args);

}  // namespace tidelane::vol
