/// \file
/// Which copies of HDF5 hold chunks of which files that were written and are not in the file yet (vol/chunk_queue.h),
/// for threads that are outside of HDF5: who wants a file stored enters the copy that holds its chunks, and no other.
///
/// Invariant: a holder is known from before its first chunk can be waited for until its last one is in the file, or is lost.
/// Thread safety: any thread; a lock of its own, under which nothing is called.
#pragma once

#include <pthread.h>

#include <memory>
#include <vector>

#include "file/file.h"

namespace tidelane::vol {

struct ChunkHolder {
  int slot;  ///< of the copy of HDF5
  std::shared_ptr<File> file;
  size_t chunks;
  pthread_t writer;  ///< the thread that wrote the last of them
};

/// A chunk of `file` is on its way, written by this thread. May throw std::bad_alloc.
void NoteChunkHeld(int slot, const std::shared_ptr<File>& file);
/// It is in, or never will be.
void NoteChunkGone(int slot, const std::shared_ptr<File>& file);
/// Those that hold something now.
std::vector<ChunkHolder> ChunkHolders();
/// In the child of a fork: the parent inserts them.
void ForgetChunkHolders();

}  // namespace tidelane::vol
