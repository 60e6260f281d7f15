/// \file
/// Where the log of a file lies, and when its bytes move to the file.
///
/// Thread safety: a value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/config.h"
#include "lane/lanes.h"
#include "log/folder.h"

namespace tidelane::log {

/// Neighbours are written to the file with one request, up to so many bytes.
inline constexpr uint64_t kRequestBytes = uint64_t{1} << 20;

/// What a log is made of.
struct LogParts {
  std::unique_ptr<Folder> folder;               ///< where the file's name leads
  std::string name;                             ///< there
  std::string path;                             ///< for words
  JournalCommits commits;                       ///< which flushes are commits
  Lanes* lanes = nullptr;                       ///< nullptr: whoever commits moves the log's bytes
  uint64_t segment_bytes = uint64_t{64} << 20;  ///< of a segment when its bytes are moved
  uint64_t reuse_bytes = uint64_t{1} << 20;     ///< that no commit needs any more, to be used again
  uint64_t request_bytes = kRequestBytes;       ///< that bring bytes to the file, at most
  bool all = false;            ///< also bytes that no commit has: the log is on a faster place
  bool in_memory = false;      ///< of that place
  uint64_t most = UINT64_MAX;  ///< what it may have; then what can goes to the file
};

}  // namespace tidelane::log
