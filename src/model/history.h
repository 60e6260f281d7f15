/// \file
/// What earlier runs learned, in a folder: one small JSON file for each file system and program (docs/history.md).
///
/// A file is replaced as a whole (written beside, renamed), and what a run learned is merged with what is there at that
/// moment, under a lock on `.lock` in the folder. Whoever does not get the lock soon gives up: a run's learning is worth
/// less than a program that ends late.
///
/// Invariant: nothing that a file holds is believed unless some data could have given it; a file of a newer version is
/// neither read nor replaced; and nothing is ever removed that is not such a file, by name and by what it says, and this
/// user's: the folder may be one where the user keeps other things. A missing folder or file is no failure; a folder that cannot be written is for Save only.
/// Thread safety: objects are values; processes and threads may load and save the same folder at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/learned.h"

namespace tidelane::model {

inline constexpr int kHistoryVersion = 2;  ///< 1 had no reads, and is read as well
inline constexpr unsigned kMostHistories =
    64;  ///< in a folder: the oldest is dropped for a new one

struct HistoryKey {
  std::string file_system;  ///< FileSystemName
  std::string program;      ///< ProgramName
  bool operator==(const HistoryKey&) const = default;
};

struct HistoryEntry {
  HistoryKey key;
  Learned learned;
  uint64_t runs = 0;
  int64_t updated = 0;  ///< seconds since 1970
};

/// The file's name in its folder.
std::string HistoryFileName(const HistoryKey& key);

/// `entry.runs` is 0 where there is none. A file that cannot be understood fails with EBADMSG, one of a newer version
/// with EPROTONOSUPPORT.
Status LoadHistory(const std::string& folder, const HistoryKey& key, HistoryEntry& entry);

/// One run more: merges `learned` with what is there, and replaces a file that cannot be understood. Makes the folder.
Status SaveHistory(const std::string& folder, const HistoryKey& key, const Learned& learned);

/// All that can be read, the newest first.
std::vector<HistoryEntry> ListHistory(const std::string& folder);

/// The text of one file, and back.
std::string HistoryText(const HistoryEntry& entry);
Status ParseHistory(const std::string& text, HistoryEntry& entry);

}  // namespace tidelane::model
