/// \file
/// Where the log of a file lies, and when its bytes move to the file.
///
/// Thread safety: a value.
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/config.h"
#include "lane/lanes.h"
#include "log/folder.h"

namespace tidelane::log {

/// Neighbours are written to the file with one request, up to so many bytes.
inline constexpr uint64_t kRequestBytes = uint64_t{1} << 20;

/// Where the segments of a log are made.
struct LogPlace {
  std::unique_ptr<Folder> folder;
  std::string name;                             ///< there, of which segments have theirs
  uint64_t segment_bytes = uint64_t{64} << 20;  ///< of a segment when its bytes are moved
  bool all = false;            ///< also bytes that no commit has: the log is on a faster place
  bool in_memory = false;      ///< of that place
  uint64_t most = UINT64_MAX;  ///< what it may have; then what can goes to the file
};

/// Instead of an errno: the log's place has no room, and there is something to be done about it (placement.h).
inline constexpr int kNoRoom = -1;

/// What an error of a segment there means.
inline int OfPlace(const LogPlace& place, int error) {
  return place.all && (error == ENOSPC || error == EDQUOT) ? kNoRoom : error;
}

/// What a log is made of.
struct LogParts {
  LogPlace place = {};                       ///< this one's lock: CommitLog::GoToNextPlace
  std::optional<LogPlace> next = {};         ///< where it goes on when there is no room
  std::string path = {};                     ///< of the file, for words
  JournalCommits commits = {};               ///< which flushes are commits
  Lanes* lanes = nullptr;                    ///< nullptr: whoever commits moves the log's bytes
  uint64_t reuse_bytes = uint64_t{1} << 20;  ///< that no commit needs any more, to be used again
  uint64_t request_bytes = kRequestBytes;    ///< that bring bytes to the file, at most
};

}  // namespace tidelane::log
