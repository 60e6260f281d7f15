/// \file
/// HDF5's mpio driver as it is found in an open file, and the files that it opens.
///
/// Thread safety: under HDF5's lock.
#pragma once

#include <cstdint>

#include "h5/hdf5.h"
#include "h5/mpi.h"

namespace tidelane::vfd {

/// The open file whose driver, of the id `driver`, gave this handle; nullptr: it is not what we know as mpio's.
H5FD_t* FileOf(void* vfd_handle, hid_t driver);
/// The path in a name for MPI-IO, before which its name for a file system may stand; nullptr: of one that we do not know.
const char* PathOf(const char* name);
/// Whether a file of that name may be made by open(2), and be renamed, in MPI-IO's place.
bool MayHideMpio(const char* name);
/// Whether what one rank stores in a file is there for the others at once, as on this machine.
bool SharedByRanks(const char* path);

/// The driver's answer to a question of HDF5's.
template <typename T>
bool Ask(H5FD_t* pub, uint64_t operation, T& answer) {
  void* output = &answer;
  return pub->cls->ctl(pub, operation, H5FD_CTL_FAIL_IF_UNKNOWN_FLAG, nullptr, &output) >= 0;
}

/// The ranks that have a file open.
struct Ranks {
  h5::MpiHandle communicator;
  int rank = 0;
  int count = 0;
};
bool AskRanks(H5FD_t* pub, Ranks& ranks);
/// Whether MPI-IO is told that ranks may not read or write by themselves.
bool HintsForbid(const h5::Mpi& mpi, H5FD_t* pub);

/// What a rank says of a file that it has opened, and what all of them have said when they have agreed.
struct OpeningVote {
  bool able = false;   ///< to have it captured
  bool reads = false;  ///< it is opened for reading only
  uint64_t inode = 0;
  uint64_t table = 0;       ///< DirtyRangeTable::id; 0: none
  uint64_t group = 0;       ///< what one rank says; afterwards all know it
  bool same_table = false;  ///< afterwards: all are on the same one, or on none
  h5::Mpi::Waits waits = h5::Mpi::Waits::kTurning;  ///< afterwards: in further exchanges
};
/// Collective. Whether all ranks are able, for the same file and the same use of it.
bool AgreeOnOpening(const h5::Mpi& mpi, const Ranks& ranks, OpeningVote& vote);

}  // namespace tidelane::vfd
