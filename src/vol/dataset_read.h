/// \file
/// H5Dread, H5Dread_multi and their asynchronous forms.
///
/// An asynchronous read (with a request) goes on after its call where HDF5 has only to say which bytes
/// go where:
///   1. Chunks are read through their map (vol/chunked_reads.h).
///   2. Everything else HDF5 reads as always; our driver then leaves those reads to lanes whose bytes go
///      straight into the program's memory (CallScope::AcceptLater), and makes the others at once.
/// The rest is read at once, each call counted with its reason. Nothing comes later once a request
/// has failed: an event set that has failed refuses the next one, and nobody would say when its memory
/// is the program's again.
///
/// Invariant: HDF5 does not look at, or write, what comes later: there are no conversions,
/// no transformations, no page buffer.
///
/// Thread safety: called by HDF5, under its lock.
#pragma once

#include "vol/library_state.h"

namespace tidelane::vol {

herr_t DatasetRead(LibraryState& library, size_t count, void* datasets[], hid_t memory_types[],
                   hid_t memory_spaces[], hid_t file_spaces[], hid_t dxpl, void* buffers[],
                   void** request);

}  // namespace tidelane::vol
