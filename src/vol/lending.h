/// \file
/// Whether the buffer of an explicit write is lent to the engine instead of copied, and how much of
/// it (decision 8).
///
/// Invariant: nothing is lent after a request of this libhdf5 has failed: an event set that has
/// failed refuses further requests after their calls have run, and nobody would say when such a
/// buffer is free.
///
/// Cost: nothing unless some file or this transfer has a copy limit.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include "vol/property_lists.h"

namespace tidelane::vol {

/// One dataset's write as HDF5 describes it.
struct Writing {
  void* dataset;
  hid_t memory_type;
  hid_t memory_space;
  hid_t file_space;
};

/// How many bytes from the start of the caller's buffer may be lent; 0: none, they are to be copied.
uint64_t BytesToLend(Instance& instance, const Writing& writing, const Transfer& transfer);

}  // namespace tidelane::vol
