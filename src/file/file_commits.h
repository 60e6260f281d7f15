/// \file
/// What is found of one file after any end of the program: its commits, where its store knows them (log/logged_store.h).
///
/// Invariant: a commit has all that was captured before it, and nothing after.
/// Thread safety: belongs to the program's side (one caller at a time); enabled() may be asked from any thread.
#pragma once

#include "base/counters.h"
#include "base/status.h"
#include "file/drainer.h"
#include "file/file_context.h"
#include "store/store.h"

namespace tidelane {

class FileCommits {
 public:
  FileCommits(FileContext& file, Drainer& drainer) : file_(file), drainer_(drainer) {}

  /// Before the first read or write, and after HDF5 has locked the file, if it does: a file that a killed program has left becomes
  /// what it was at its last commit. Does nothing from then on.
  Status Settle() { return settled_ ? Status() : SettleNow(); }
  /// Whether commits mean something for it.
  bool enabled() const { return file_.store->commits(); }
  /// All that was written until now is what is found after any end of the program: after a flush that succeeded, of all that has the
  /// file open. Waits.
  Status Commit(Committing when);
  /// A last one; others look at the file itself from now on. `reason` is counted.
  Status End(Fallback reason);

 private:
  Status SettleNow();

  FileContext& file_;
  Drainer& drainer_;
  bool settled_ = false;
};

}  // namespace tidelane
