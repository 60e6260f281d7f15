/// \file
/// What HDF5's sieve buffers hold is handed to our driver before objects are copied.
///
/// HDF5 copies an open contiguous dataset from its sieve buffer where all of it lies there, and otherwise from what the driver has, whatever
/// the buffer holds that nothing else has yet (H5D__contig_copy). Natively a small dataset lies there whole from its first transfer on. With us
/// only some transfers go through the sieve, and its window begins where the first of them did. So before a copy the last and the first
/// element of each dataset that may have such a buffer are read: one of them lies outside of the window, and HDF5
/// writes the buffer to the driver before it moves the window; or both lie in it, and with them the whole dataset. A flush of the dataset
/// would do the same, and besides wait for storage and call the program's callbacks, which natively no copy does.
///
/// Which datasets: those that were seen to be transferred in single pieces (SieveWatch). The buffer belongs to all openings of a
/// dataset together; once one of these was closed, or a virtual dataset was written to, it may be any dataset that is open.
/// Not with mode=sync, nor in a file with a page buffer: there HDF5 has the sieve buffers, and copies, that it has natively. (What a page buffer
/// makes of large transfers besides depends on the small reads before: with one more it may give elements that are older.)
///
/// Invariant: the error stack stays as it is. What cannot be read here is copied as natively: from what the driver has.
/// Cost: a load and a test where nothing went through a sieve.
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include "vol/library_state.h"

namespace tidelane::vol {

namespace internal {
void StoreSieves(LibraryState& library, hid_t dxpl);
}

inline void StoreSieves(LibraryState& library, hid_t dxpl) {
  if (library.sieve_buffers.any) internal::StoreSieves(library, dxpl);
}

}  // namespace tidelane::vol
