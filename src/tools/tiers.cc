#include "tools/tiers.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/config.h"
#include "log/format.h"
#include "tools/survey.h"

namespace tidelane::tools {
namespace {

constexpr uint64_t kBlock = 512;

// A mistake in the settings is another command's to tell.
std::string TierThatIsSet() {
  Config config;
  return LoadConfig(config).ok() ? config.tier : std::string();
}

uint64_t BytesOf(const tier::Place& place, const std::string& entry) {
  uint64_t bytes = 0;
  for (const uint64_t number : {1, 2}) {
    struct stat found{};
    if (fstatat(place.folder.get(), log::SegmentName(entry, number).c_str(), &found,
                AT_SYMLINK_NOFOLLOW) == 0)
      bytes += static_cast<uint64_t>(found.st_blocks) * kBlock;
  }
  return bytes;
}

}  // namespace

std::vector<std::shared_ptr<const tier::Place>> Tiers() {
  std::vector<std::shared_ptr<const tier::Place>> places;
  std::vector<std::string> settings{tier::kMemory};
  if (std::string set = TierThatIsSet(); !set.empty() && set != tier::kMemory)
    settings.push_back(std::move(set));
  for (const std::string& setting : settings) {
    auto place = std::make_shared<tier::Place>();
    if (tier::Place::Open(setting, false, *place).ok()) places.push_back(std::move(place));
  }
  return places;
}

std::vector<TieredFile> FilesIn(const std::vector<std::shared_ptr<const tier::Place>>& places) {
  std::vector<TieredFile> files;
  for (const auto& place : places) {
    for (const std::string& name : tier::Entry::AllIn(*place)) {
      TieredFile file{.place = place, .entry = {}, .bytes = BytesOf(*place, name), .trouble = {}};
      tier::Trouble trouble;
      if (tier::Trouble::Read(*place, name, trouble)) file.trouble = trouble;
      if (tier::Entry::Read(*place, name, file.entry) == 0) files.push_back(std::move(file));
    }
  }
  std::ranges::sort(files, {}, [](const TieredFile& file) { return file.entry.path; });
  return files;
}

std::string WaitingInWords(const tier::Trouble& trouble) {
  return "waiting: " + trouble.reason + " (since " + AgeInWords(trouble.age()) + ")";
}

Status LogInTier(const std::string& path, const Superblock& marked,
                 std::optional<tier::FoundLog>& found) {
  DirectoryEntry entry;
  if (const int error = DirectoryEntry::Find(path.c_str(), true, entry); error != 0)
    return Status::Failed(error, "open").At(path, 0, 0);
  return tier::FindLog(entry, path, marked, TierThatIsSet(), found);
}

}  // namespace tidelane::tools
