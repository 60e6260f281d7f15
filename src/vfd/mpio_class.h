/// \file
/// HDF5's mpio driver as it is found in an open file, and the files that it opens.
///
/// Thread safety: under HDF5's lock.
#pragma once

#include "h5/hdf5.h"

namespace tidelane::vfd {

/// The open file whose driver, of the id `driver`, gave this handle; nullptr: it is not what we know as mpio's.
H5FD_t* FileOf(void* vfd_handle, hid_t driver);
/// The path in a name for MPI-IO, before which its name for a file system may stand; nullptr: of one that we do not know.
const char* PathOf(const char* name);
/// Whether a file of that name may be made by open(2), and be renamed, in MPI-IO's place.
bool MayHideMpio(const char* name);
/// Whether what one rank stores in a file is there for the others at once, as on this machine.
bool SharedByRanks(const char* path);

}  // namespace tidelane::vfd
