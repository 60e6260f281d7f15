/// \file
/// What the tiers of this user have: for `tidelane drain`, `status` and `recover`.
///
/// Thread safety: one thread.
#pragma once

#include <cstdint>
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

/// The tier in memory, and the one that is set, as far as they are there.
std::vector<std::shared_ptr<const tier::Place>> Tiers();
/// All that lies there, in the order of names of its files.
std::vector<TieredFile> FilesIn(const std::vector<std::shared_ptr<const tier::Place>>& places);
/// "waiting: No space left on device (since 12 s)".
std::string WaitingInWords(const tier::Trouble& trouble);
/// Where the log of a marked file is, if it is in a tier.
Status LogInTier(const std::string& path, const Superblock& marked,
                 std::optional<tier::FoundLog>& found);

}  // namespace tidelane::tools
