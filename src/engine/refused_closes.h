/// \file
/// Open files whose close a copy of HDF5 was refused, because their bytes could not be stored. The identifier stays, so that the program can
/// try again; if it deletes the file, or creates another one over it, it has no use for the bytes any more.
///
/// Invariant: a file is here only while it cannot be stored, and since nothing else of it was open where its close was tried.
/// Thread safety: all functions may be called from any thread. Drop... belong to the copy of HDF5 that tried, which then uses no file.
#pragma once

#include <memory>
#include <vector>

#include "base/annotations.h"
#include "file/file.h"

namespace tidelane {

class RefusedCloses {
 public:
  /// `opener`: OpenOptions::opener of the copy of HDF5.
  void Add(const std::shared_ptr<File>& file, int opener) TL_EXCLUDES(mutex_);
  /// It was opened again.
  void Forget(const std::shared_ptr<File>& file) TL_EXCLUDES(mutex_);
  /// Gives up those of `opener` that no path leads to, and closes their descriptors: their room is free unless others have them open.
  void DropNameless(int opener) TL_EXCLUDES(mutex_);
  /// A file is about to be created there: one of this name is given up. From then on it is no other file's equal.
  void DropAt(const char* path, int opener) TL_EXCLUDES(mutex_);

 private:
  struct Refused {
    std::weak_ptr<File> file;
    int opener;
  };
  std::vector<std::shared_ptr<File>> FailingOf(int opener) TL_EXCLUDES(mutex_);

  Mutex mutex_;
  std::vector<Refused> refused_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane
