/// \file
/// Whether the buffer of an explicit write is lent to the engine instead of copied, and how much of
/// it (decision 8).
///
/// Invariant: nothing is lent after a request of this libhdf5 has failed: an event set that has
/// failed refuses further requests after their calls have run, and nobody would say when such a
/// buffer is free. Nor what lies before or behind the selected elements: a program's buffer may be
/// shorter than the space that describes it, and what follows may be HDF5's.
///
/// Cost: nothing unless some file or this transfer has a copy limit.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstddef>
#include <span>

#include "vol/property_lists.h"
#include "vol/writing.h"

namespace tidelane::vol {

/// From the first selected element of the caller's buffer to the last; empty where that is not known.
std::span<const std::byte> SelectedMemory(LibraryState& library, const Writing& writing);

/// The part of the caller's buffer that may be lent; empty: none, all is to be copied.
std::span<const std::byte> BufferToLend(LibraryState& library, const Writing& writing,
                                        const Transfer& transfer);

}  // namespace tidelane::vol
