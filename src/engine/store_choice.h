/// \file
/// Where the bytes of a file that is opened are to rest: in the file itself, or in it and a log beside it (docs/formats/log.md).
///
/// Invariant: a file that is marked is never read or written but through its log.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>

#include "base/config.h"
#include "base/status.h"
#include "device/device.h"
#include "engine/tier_choice.h"
#include "file/file_context.h"
#include "publish/directory_entry.h"

namespace tidelane {

class StoreChoice {
 public:
  /// Before the file is opened: `truncates`: what it has goes.
  StoreChoice(const char* path, bool truncates, const FileSettings& settings, const Config& config);

  /// After that: sets environment.make_store. `hidden`: it gets its name later; `followed`: readers follow it while it is written. Fails
  /// where the file cannot be journalled, and must be.
  Status Make(bool writable, bool hidden, bool followed, const struct stat& found, Device& device,
              FileEnvironment& environment);

 private:
  Status Without(Fallback reason) const;
  void RemoveOldLog() const;
  void UseLog(LoggedFile parts, DirectoryEntry entry, mode_t mode,
              FileEnvironment& environment) const;

  const char* const path_;
  const FileSettings& settings_;
  const Config& config_;
  const std::shared_ptr<TierChoice> tier_;
  uint64_t old_mark_ = 0;  // of the file that is truncated; 0: it has none, or no log
};

}  // namespace tidelane
