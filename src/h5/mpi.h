/// \file
/// The few functions of MPI that we need, of whatever MPI the program's HDF5 uses.
///
/// We are not built with any mpi.h: one plugin serves MPICH (and what shares its ABI: Intel's, Cray's, MVAPICH) and Open
/// MPI. The functions are found at run time in what the calling libhdf5 was linked to. They have the same names
/// everywhere; what a handle is differs, and how the few constants are found (docs/decisions/0018-mpi.md).
///
/// Invariants: an MPI that is not one of these is not used at all. Every function but `running` is called by threads of
/// the program inside calls of HDF5 only, so MPI_THREAD_SINGLE suffices.
/// Thread safety: as the program's own use of MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tidelane::h5 {

/// A communicator or an info object: an int in the one ABI, a pointer in the other.
struct MpiHandle {
  uintptr_t bits = 0;
};

class Mpi {
 public:
  /// The MPI that the library `handle` (dlopen's) was linked to; nullptr: none, or one that we do not know.
  static const Mpi* FoundIn(void* handle);

  /// How a rank waits for those that come later. MPI's own calls turn in a circle. That is the quickest as long as each rank has a processor;
  /// where there are more ranks than processors, it takes those from the ranks that are waited for, and from lanes.
  /// All ranks of an exchange wait in the same way. Either way MPI goes on with what else it has to do, such as another rank's sends.
  enum class Waits : bool { kTurning, kSleeping };

  /// Between MPI_Init and MPI_Finalize.
  virtual bool running() const = 0;
  /// Collective. The greatest of all ranks' values, each of `count` by itself; false: MPI failed. Values below 2^63 only:
  /// MPICH 4.0 and Open MPI 4.1 compare unsigned numbers as if they had a sign.
  virtual bool Max(MpiHandle communicator, const uint64_t* values, uint64_t* greatest, int count,
                   Waits waits = Waits::kTurning) const = 0;
  /// Collective. Every rank's `count` values, in the order of ranks.
  virtual bool Gather(MpiHandle communicator, const uint64_t* values, uint64_t* all, int count,
                      Waits waits = Waits::kTurning) const = 0;
  /// This rank's number there, and how many there are; false: MPI failed.
  virtual bool Place(MpiHandle communicator, int& rank, int& ranks) const = 0;
  /// Collective. Of a communicator that is the caller's own.
  virtual void Free(MpiHandle communicator) const = 0;
  /// The value of a hint; empty where there is none.
  virtual std::string Hint(MpiHandle info, const char* key) const = 0;

 protected:
  ~Mpi() = default;
};

}  // namespace tidelane::h5
