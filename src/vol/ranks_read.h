/// \file
/// Reads of elements from files that all ranks have opened for reading only (h5/parallel_reading.h).
///
/// Each rank reads by itself, as from a serial file. A collective read is given to HDF5 as an independent transfer, without a word
/// to other ranks, and the program's list then says what it would have said: the collective transfer that native HDF5 would have made. Only what
/// the ranks have agreed to be in small pieces goes to HDF5 as it is.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <memory>

#include "h5/owned_id.h"
#include "h5/parallel_reading.h"
#include "vol/library_state.h"
#include "vol/transfers.h"

namespace tidelane::vol {

using Reads = Transfers<void*>;

/// The file that the datasets are in, if ranks only read it; nullptr: it is another one, or there are none.
std::shared_ptr<h5::ParallelReading> ReadingOf(LibraryState& library, const Reads& reads);

/// How a call's reads are made.
enum class ReadWay {
  kAlone,   ///< by this rank, whatever others do
  kByMpi,   ///< as HDF5 makes them: all ranks know of it
  kFailed,  ///< not at all; the error stack says why
};
ReadWay WayOf(LibraryState& library, h5::ParallelReading& file, const Reads& reads, hid_t dxpl,
              bool collective);

/// The transfer lists of a read.
struct Lists {
  hid_t native;  ///< HDF5's
  hid_t ours;    ///< what it asks us for
};
/// Those of a read that this rank makes alone: without what concerns MPI-IO, which `ours` is the default list for if nothing is left. False:
/// there was no memory.
bool ListsFor(LibraryState& library, hid_t dxpl, bool collective, Lists& lists);

/// After a collective read that this rank has made alone, of which HDF5 has seen `native` datasets: `dxpl` is told what native HDF5 would
/// have said.
void TellCollective(LibraryState& library, const Reads& reads, hid_t dxpl, size_t native);
/// After an independent one that HDF5 has not seen.
void TellIndependent(LibraryState& library, const Reads& reads, hid_t dxpl);

}  // namespace tidelane::vol
