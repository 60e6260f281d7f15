/// \file
/// Where the log of a marked file lies: beside it, or in a tier.
///
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "log/folder.h"
#include "log/mark.h"
#include "publish/directory_entry.h"
#include "tier/entry.h"
#include "tier/place.h"

namespace tidelane::tier {

/// The log of a file, in a tier.
struct FoundLog {
  std::shared_ptr<const Place> place;
  std::string entry;
  bool is_announced =
      false;  ///< the marker beside the file names it, and the machine has run since that was written
};

/// `tier`: what the setting says, to be looked through as well as that in memory. Nothing is found: the log is beside the file, or nowhere.
/// Fails where the marker says that it is in the memory of another machine, or was in this one's before it was started.
Status FindLog(const DirectoryEntry& file, const std::string& path, const Superblock& marked,
               const std::string& tier, std::optional<FoundLog>& found);

/// Whether a segment of this entry is what the file is marked with.
bool IsLogOf(const Place& place, const std::string& entry, const Superblock& marked);
/// And the file, of this path and inode, is the one that it is of: a copy has the same mark, and must not take its log away. (Devices have other
/// numbers after the machine was started again; some file systems do not keep those of inodes either.)
bool IsLogOf(const Place& place, const Entry& entry, const Superblock& marked,
             const std::string& path, uint64_t inode);

/// The file has everything, or is of no use any more: removes the entry, of which no segment is left, and its marker, which is where the file was
/// when that was made.
/// Also that at `path`, to which it may have been taken along.
void Forget(const Place& place, const std::string& entry, const std::string& path);

}  // namespace tidelane::tier
