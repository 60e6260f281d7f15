/// \file
/// What went wrong, in words, for the end-of-run summary: the first and the last failure, files that
/// the program never closed, files whose bytes could not all be stored.
///
/// Invariant: bounded, whatever happens: two messages, a few names of each kind and a count.
///
/// Thread safety: all functions may be called from any thread, at any moment until the process ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace tidelane {

/// Names of files: the first few, and how many there are. A name counts once while it is listed.
class FileNames {
 public:
  static constexpr size_t kListed = 16;

  void Add(const std::string& path);
  void Remove(const std::string& path);  ///< if it is listed
  uint64_t count() const { return count_; }
  const std::vector<std::string>& listed() const { return listed_; }

 private:
  std::vector<std::string> listed_;
  uint64_t count_ = 0;
};

struct Incidents {
  std::string first_error;
  std::string last_error;
  FileNames left_open;   ///< open when HDF5 ended
  FileNames not_stored;  ///< closed, with bytes that could not be stored
};

/// A failed attempt to store something: counted as Counter::kErrors, and its words kept.
void NoteError(const Status& status);
void NoteLeftOpen(const std::string& path);
void NoteNotStored(const std::string& path);
/// They could in the end, by a retry.
void ForgetNotStored(const std::string& path);

Incidents ReadIncidents();

/// In a forked child: they were the parent's.
void ResetIncidentsAfterFork();

}  // namespace tidelane
