/// \file
/// Flushes commit a journalled file (docs/formats/log.md) as its `journal_commits` says; or in any case, where the program asks for it with
/// tidelane_commit (library/tidelane.h), or tidelane.commit in Python.
///
/// Thread safety: the functions inside callbacks, under HDF5's lock; a scope belongs to the thread that made it.
#pragma once

#include "base/status.h"
#include "file/call_scope.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// While there is one, or between Begin and End (all of them nest), each flush of a file that this thread calls commits it,
/// inside the flush's callback: nothing comes between.
class CommitScope {
 public:
  CommitScope() { Begin(); }
  ~CommitScope() { End(); }
  CommitScope(const CommitScope&) = delete;
  CommitScope& operator=(const CommitScope&) = delete;

  static void Begin();
  static void End();
  static bool active();
};

/// After a native flush of `object`, of HDF5's kind `type`, in `call`: flushes what else has the file open, since HDF5 flushes the elements of
/// those datasets alone that were opened by the same H5Fopen, and commits all of it; likewise each file that HDF5 has flushed with it, as a flush
/// of global scope does with all that are mounted together, in the order of HDF5's flushes: a mounted file before the one that it is mounted
/// in. Fails with the reasons on the error stack. Does nothing, successfully, where no such file is journalled.
herr_t CommitFlushed(LibraryState& library, CallScope& call, void* object, H5I_type_t type,
                     hid_t dxpl);
/// The same without a flush before, and then the file by itself has all of it: for who reads there past HDF5.
herr_t CommitForOutsiders(LibraryState& library, void* object, H5I_type_t type, hid_t dxpl);

}  // namespace tidelane::vol
