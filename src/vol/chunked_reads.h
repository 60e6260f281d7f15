/// \file
/// Reads of chunks past HDF5: the map of chunks is HDF5's, bytes and decoding are ours and the lanes'
/// (chunk/chunk_read.h).
///
/// What is read is what HDF5 would give:
///   1. The map comes from one H5Dchunk_iter, which first writes what the dataset's chunk cache has and
///      storage has not; written means: our driver has it, pending perhaps. From then on the cache
///      holds nothing of its own.
///   2. A map is believed until the next call that may change chunks (class ChunkMapInvalidation): every callback
///      of ours that changes anything counts, whatever it changes.
///   3. A read of what fits into the dataset's chunk cache is left to HDF5: it may be there, decoded.
///      So is all that HDF5 converts, picks from scattered places, or cannot read: also when one of
///      our own attempts fails, HDF5 is asked, and says why. Of reads that may come later, whole
///      chunks are ours even if they would fit.
///   4. A read that comes later than its call finds what it would have found then (content/parallel_read.h).
///
/// A map costs a walk through the whole index. One that has become void is made anew only after reads
/// that together touched a 64th of the chunks. All maps together take 64 MiB at most.
///
/// Cost: for a dataset without chunks some hundredths of a microsecond, and some microseconds
/// once if it is not small.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <optional>

#include "base/counters.h"
#include "file/call_scope.h"
#include "vol/read_dataset.h"

namespace tidelane::vol {

/// False: HDF5 has to read it. The error stack stays as it is.
bool ReadChunked(LibraryState& library, const Reading& reading);

/// The same, later: `scope` is the call's. False: HDF5 has to read it, for `reason`.
bool ReadChunkedLater(LibraryState& library, const Reading& reading, CallScope& scope,
                      Fallback& reason);

/// Beyond it a file has nothing that HDF5 knows of.
uint64_t AllocatedEnd(LibraryState& library, const File& file);

/// All of its chunks, where they are now. nullopt: only HDF5 can read them. May throw std::bad_alloc.
std::optional<StoredArray> ChunksOf(LibraryState& library, const Reading& reading);

}  // namespace tidelane::vol
