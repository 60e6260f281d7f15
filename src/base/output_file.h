/// \file
/// A file that reports are written to: appears whole or not at all.
///
/// Invariant: a regular target is written under a temporary name beside it, which nobody can guess (base/fresh_file.h), and
/// renamed by Commit;
/// without Commit nothing remains. Devices, pipes and anything under /dev or /proc cannot be
/// renamed over: those are written directly.
///
/// Thread safety: one object, one thread.
#pragma once

#include <cstdio>
#include <string>

#include "base/status.h"

namespace tidelane {

/// `path` with every %p replaced by the process id.
std::string ExpandPid(const std::string& path);

class OutputFile {
 public:
  OutputFile() = default;
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// `path` is expanded with ExpandPid.
  Status Open(const std::string& path);
  /// To be written to with the functions of <cstdio>; errors are kept by the stream and reported by
  /// Commit.
  std::FILE* stream() { return stream_; }
  /// Closes and renames; fails if anything written before was lost.
  Status Commit();

 private:
  std::FILE* stream_ = nullptr;
  std::string target_;
  std::string temporary_;  // empty when the target is written directly
};

}  // namespace tidelane
