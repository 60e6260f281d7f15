/// \file
/// Failures of files' chunks and datasets that the call in which they happened could not tell: the next one of that file does.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <memory>
#include <vector>

#include "file/file.h"
#include "h5/library.h"

namespace tidelane::vol {

class LateErrors {
 public:
  bool empty() const { return errors_.empty(); }
  /// `what`, as of "could not …", was not possible. Where there is no memory to note that, the file is counted as not stored.
  void Note(const std::shared_ptr<File>& file, const char* what) noexcept;
  /// Once for all of a file: on the error stack. False: there is none.
  bool Tell(h5::Library& hdf5, const File& file);
  /// Nobody will ask: on stderr, and in the summary.
  void TellAtExit();

 private:
  struct Error {
    std::shared_ptr<File> file;
    Status status;
  };
  std::vector<Error> errors_;
};

}  // namespace tidelane::vol
