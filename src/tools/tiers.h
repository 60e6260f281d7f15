/// \file
/// What the tiers of this user have: for `tidelane drain`, `status` and `recover`.
///
/// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/mark.h"
#include "tier/entry.h"
#include "tier/find_log.h"
#include "tier/place.h"
#include "tier/trouble.h"

namespace tidelane::tools {

/// A file that is in a tier.
struct TieredFile {
  std::shared_ptr<const tier::Place> place;
  tier::Entry entry;
  uint64_t bytes = 0;  ///< of its log
  std::optional<tier::Trouble> trouble;
};

using Places = std::vector<std::shared_ptr<const tier::Place>>;

/// The operands of a command as whole paths: kUsage, told, where one is not there.
int WholePaths(const std::vector<std::string>& operands, std::vector<std::filesystem::path>& paths);
/// Whether the file is one of these, or below one; true where there are none.
bool IsBelow(const std::string& path, const std::vector<std::filesystem::path>& operands);

/// Files with a marker beside them.
struct Marked {
  std::vector<std::string> files;
  std::vector<Status> unread;  ///< folders that could not be read
};

/// Of these files, and of those below these folders; links to folders are not followed.
Marked FilesWithMarkers(const std::vector<std::filesystem::path>& operands);

/// The tier in memory, the one that is set, and those which the markers of these files name (a program may have had another one set than
/// this command has): as far as they are there.
Places Tiers(const std::vector<std::string>& with_markers = {});
/// All that lies there, in the order of names of its files.
std::vector<TieredFile> FilesIn(const Places& places);
/// "waiting: No space left on device (since 12 s)".
std::string WaitingInWords(const tier::Trouble& trouble);
/// Where the log of a marked file is, if it is in a tier.
Status LogInTier(const std::string& path, const Superblock& marked,
                 std::optional<tier::FoundLog>& found);

}  // namespace tidelane::tools
