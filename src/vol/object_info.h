/// \file
/// What HDF5 knows of an object without looking further than its header.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include "vol/library_state.h"

namespace tidelane::vol {

/// Of HDF5's kind `type`; its file's serial number is there, too. False: HDF5 did not say.
bool InfoOf(LibraryState& library, void* object, H5I_type_t type, H5O_info2_t& info);

}  // namespace tidelane::vol
