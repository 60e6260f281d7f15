/// \file
/// Which copies of HDF5 hold work for which files that is to be done inside one of the program's next calls (vol/call_queue.h),
/// for threads that are outside of HDF5: who wants a file stored enters the copy that holds its work, and no other.
///
/// Invariant: a holder is known from before its first piece of work can be waited for until its last one is done, or is lost.
/// Thread safety: any thread; a lock of its own, under which nothing is called.
#pragma once

#include <pthread.h>

#include <memory>
#include <vector>

#include "file/file.h"

namespace tidelane::vol {

struct WorkHolder {
  int slot;  ///< of the copy of HDF5
  std::shared_ptr<File> file;
  size_t pieces;
  pthread_t writer;  ///< the thread that left the last of them
  bool closes;       ///< the last of them is its close
};

/// This thread has left work for `file`. May throw std::bad_alloc.
void NoteWorkHeld(int slot, const std::shared_ptr<File>& file, bool closes);
/// A piece of it is done, or never will be.
void NoteWorkGone(int slot, const std::shared_ptr<File>& file);
/// Those that hold something now.
std::vector<WorkHolder> WorkHolders();
/// Whether there may be a close among it.
bool AnyClosesHeld();
/// In the child of a fork: the parent does it.
void ForgetWorkHolders();

}  // namespace tidelane::vol
