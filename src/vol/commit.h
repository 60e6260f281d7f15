/// \file
/// Flushes commit a journalled file (docs/formats/log.md) as its `journal_commits` says; or in any case, where the program asks for it with
/// tidelane_commit (library/tidelane.h), or tidelane.commit in Python.
///
/// Thread safety: CommitFile inside callbacks, under HDF5's lock; a scope belongs to the thread that made it.
#pragma once

#include "base/status.h"
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

/// Commits what was flushed of the file that `object`, of HDF5's kind `type`, is in. After the native flush, if that has
/// succeeded. Does nothing, successfully, where the file is not journalled, or has nothing that is not committed.
Status CommitFile(LibraryState& library, void* object, H5I_type_t type);

}  // namespace tidelane::vol
