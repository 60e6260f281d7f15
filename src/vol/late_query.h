/// \file
/// Queries with an event set: what lanes are to look at they look at after the call; the rest of the answer is made by a thread of the program's, inside
/// one of its next calls.
///
/// What is found is what the call would have found: lanes' reads are ended before anything changes that they read (content/deferred_reads.h), and
/// the answer is whole before any call that changes objects or closes the file: all that settle (vol/call_queue.h). Transfers do not, and need not wait.
///
/// Invariants:
///  1. Until it is answered a query keeps no identifier of a file, nor of an object in one: what it has found is opened again by its token.
///  2. There are queries only of files that the program has open: a close of one answers its queries first.
///  3. They are answered in the order in which they were asked. One that fails is not tried again: its request says so, and no other call.
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <memory>

#include "h5/protocol.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// A query of the file `file`, which is one of ours if anything is to come later; then its end is watched (CallQueue::NoteWriter). `request`: where HDF5 wants the token, or null. A failure is on the error stack.
herr_t QueryLater(LibraryState& library, std::shared_ptr<File> file, tl_query_later_args& args,
                  void** request);

/// Whether any waits for its answer, or one of that file.
bool AnyQuery(const LibraryState& library);
bool HasQuery(const LibraryState& library, const File& file);
/// Answers all, or those that lanes are done with. `dxpl` is the transfer list of the call in progress.
void AnswerQueries(LibraryState& library, hid_t dxpl);
void AnswerReadyQueries(LibraryState& library, hid_t dxpl);

}  // namespace tidelane::vol
