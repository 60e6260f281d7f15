/// \file
/// Blocking reads of filtered chunks, past HDF5: the map of chunks is HDF5's, bytes and decoding are
/// ours and the lanes' (engine/chunk_read.h).
///
/// What is read is what HDF5 would give:
///   1. The map comes from one H5Dchunk_iter, which first writes what the dataset's chunk cache has and
///      storage has not; written means: our driver has it, pending perhaps. From then on the cache
///      holds nothing of its own.
///   2. A map is believed until the next call that may change chunks (class Changing): every callback
///      of ours that changes anything counts, whatever it changes.
///   3. A read of what fits into the dataset's chunk cache is left to HDF5: it may be there, decoded.
///      So is all that HDF5 converts, picks from scattered places, or cannot read: also when one of
///      our own attempts fails, HDF5 is asked, and says why.
///
/// A map costs a walk through the whole index. One that has become void is made anew only after reads
/// that together touched a 64th of the chunks. All maps together take 64 MiB at most.
///
/// Invariant: nothing is known of a dataset after its close.
///
/// Cost: for a dataset that is not filtered some hundredths of a microsecond, and some microseconds
/// once if it is not small.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstdint>

#include "vol/instance.h"

namespace tidelane::vol {

/// What H5Dread was asked for.
struct Reading {
  void* dataset;
  hid_t memory_type;
  hid_t memory_space;
  hid_t file_space;
  hid_t dxpl;
  void* buffer;
};

/// False: HDF5 has to read it. The error stack stays as it is.
bool ReadFiltered(Instance& instance, const Reading& reading);

/// `dataset` is closed; another one may come to live at its address.
void ForgetFiltered(Instance& instance, void* dataset);
void ForgetAllFiltered(Instance& instance);

}  // namespace tidelane::vol
