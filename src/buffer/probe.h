/// \file
/// Whether the program's memory is there.
///
/// HDF5's own driver hands the program's address to the system, which refuses what is not there (pages taken away, a
/// device's pointer): the call fails with EFAULT. A copy of ours would end the program. So the system is asked first, about
/// both ends, at 0.1 us each. Writes of 64 KiB took 3.3 us instead of 3.1, so less than kLeastProbed is not asked about (writes
/// of less than 64 KiB HDF5 copies natively, too, into its sieve buffer): there it is 1 or 2 % where all is in the processor's
/// cache, and less where it is not.
///
/// Thread safety: any thread.
#pragma once

#include <cstddef>

namespace tidelane {

inline constexpr size_t kLeastProbed = 256 << 10;

/// Whether both ends of `n` bytes, at least kLeastProbed, can be read.
bool MayReadFrom(const void* from, size_t n);
/// The same for writing. Leaves something there: for memory that is about to be written.
bool MayWriteTo(void* to, size_t n);

}  // namespace tidelane
