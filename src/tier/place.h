/// \file
/// Where a fast tier is: a folder of the user's own, on a faster place than the files.
///
/// Invariant: a place that was opened is a folder of this user's that nobody else may look into, and no symbolic link.
/// Thread safety: a value; functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "publish/directory_entry.h"

namespace tidelane::tier {

/// As settings say it: "memory", or a folder.
inline constexpr char kMemory[] = "memory";

struct Place {
  std::string path;
  bool in_memory = false;
  Descriptor folder;  ///< O_PATH

  /// The path of the tier that a setting names.
  static std::string PathOf(const std::string& setting);
  /// Opens that of a setting; `make`: makes it where it is not there.
  static Status Open(const std::string& setting, bool make, Place& place);
  /// Opens one by its own path.
  static Status OpenAt(const std::string& path, Place& place);

  // In bytes; 0 where that is not known.

  /// What files take that wait there; spares make room.
  uint64_t used() const;
  /// Of its file system, whoever uses it.
  struct Space {
    uint64_t taken = 0;
    uint64_t room = 0;
  };
  Space space() const;
};

/// What the names of spare segments begin with (tier/spares.h).
inline constexpr std::string_view kSpare = "spare.";

/// Another opening of the place's folder, for who owns one.
Descriptor FolderOf(const Place& place);

/// This machine, and since when it has run.
std::string HostName();
std::string BootId();

}  // namespace tidelane::tier
