/// \file
/// What a fast tier has to do with a file that is opened: whether it is to wait there when it is closed, and what is there of it.
///
/// Invariant: what a tier has of a file that is cut to nothing never comes back.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>

#include "base/config.h"
#include "base/counters.h"
#include "base/status.h"
#include "log/logged_store.h"
#include "publish/directory_entry.h"
#include "tier/find_log.h"
#include "tier/place.h"

namespace tidelane {

class TierChoice {
 public:
  /// Before the file is opened: where `truncates`, keeps a mover from it until the old log is gone.
  TierChoice(const char* path, bool truncates, const std::string& setting);

  /// The file was truncated: removes what a tier has of it.
  void Truncated();
  /// Has a new log lie in the tier. A reason: it does not, and the log is as it was.
  std::optional<Fallback> Use(const Config& config, const DirectoryEntry& entry,
                              const struct stat& found, LoggedFile& parts);
  /// Where the log of a marked file lies, of which `entry` is the name.
  Status Find(const DirectoryEntry& entry, const Superblock& marked, LeftLog& left) const;

 private:
  // Where a new log lies.
  struct Used {
    std::shared_ptr<const tier::Place> place;
    tier::Entry entry;
    std::shared_ptr<const DirectoryEntry> beside;
    Lanes* lanes;
  };
  bool GoesOn(const tier::FoundLog& found, tier::Entry& entry) const;

  const std::string path_;
  const std::string setting_;
  std::optional<tier::FoundLog> old_;  // of the file that is truncated
  DirectoryEntry old_entry_;
  Descriptor claimed_;
  std::optional<Used> used_;
};

}  // namespace tidelane
