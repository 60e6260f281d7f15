/// \file
/// Queries with an event set: what lanes are to look at they look at after the call; the rest of the answer is made by a thread of the program's, inside
/// one of its next calls, as chunks are inserted (vol/call_queue.h).
///
/// What is found is what the call would have found: lanes' reads are ended before anything changes that they read (content/deferred_reads.h), and
/// the answer is whole before any call that changes objects or closes the file.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <memory>

#include "h5/protocol.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// A query of the file `file`, which is one of ours if anything is to come later. `request`: where HDF5 wants the token, or null. A failure is on the error stack.
herr_t QueryLater(LibraryState& library, std::shared_ptr<File> file, tl_query_later_args& args,
                  void** request);

}  // namespace tidelane::vol
