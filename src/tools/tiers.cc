#include "tools/tiers.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/config.h"
#include "log/format.h"
#include "publish/directory_entry.h"
#include "tools/arguments.h"
#include "tools/survey.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

namespace fs = std::filesystem;

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

int WholePaths(const std::vector<std::string>& operands, std::vector<fs::path>& paths) {
  for (const std::string& operand : operands) {
    std::error_code error;
    paths.push_back(fs::canonical(operand, error));
    if (error) return Fail(kUsage, operand + ": " + error.message());
  }
  return kDone;
}

bool IsBelow(const std::string& path, const std::vector<fs::path>& operands) {
  for (const fs::path& operand : operands) {
    const fs::path rest = fs::path(path).lexically_relative(operand);
    if (!rest.empty() && *rest.begin() != "..") return true;
  }
  return operands.empty();
}

Marked FilesWithMarkers(const std::vector<fs::path>& operands) {
  Marked found;
  std::vector<fs::path> folders;
  for (const fs::path& operand : operands) {
    if (tier::Marker::IsBeside(operand.native())) found.files.push_back(operand);
    std::error_code ignored;
    if (fs::is_directory(operand, ignored)) folders.push_back(operand);
  }
  // Folder by folder: one that cannot be read, or is removed meanwhile, does not end the walk through the others.
  while (!folders.empty()) {
    const fs::path folder = std::move(folders.back());
    folders.pop_back();
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string_view path = at->path().native();
      if (path.ends_with(tier::kMarkerEnd))
        found.files.emplace_back(path.substr(0, path.size() - tier::kMarkerEnd.size()));
      std::error_code ignored;
      if (at->is_directory(ignored) && !at->is_symlink(ignored)) folders.push_back(at->path());
    }
    if (error && error != std::errc::no_such_file_or_directory)
      found.unread.push_back(
          Status::Failed(error.value(), "look for files of a tier in").At(folder.native(), 0, 0));
  }
  return found;
}

Places Tiers(const std::vector<std::string>& with_markers) {
  Places places;
  std::vector<std::string> settings{tier::kMemory};
  if (std::string set = TierThatIsSet(); !set.empty() && set != tier::kMemory)
    settings.push_back(std::move(set));
  for (const std::string& setting : settings) {
    auto place = std::make_shared<tier::Place>();
    if (tier::Place::Open(setting, false, *place).ok()) places.push_back(std::move(place));
  }
  for (const std::string& file : with_markers) {
    DirectoryEntry beside;
    tier::Marker marker;
    if (DirectoryEntry::Find(file.c_str(), true, beside) != 0 ||
        tier::Marker::Read(beside, marker) != 0)
      continue;
    auto place = std::make_shared<tier::Place>();
    const auto is_known = [&](const auto& known) { return known->path == marker.tier; };
    if (std::ranges::none_of(places, is_known) && tier::Place::OpenAt(marker.tier, *place).ok())
      places.push_back(std::move(place));
  }
  return places;
}

std::vector<TieredFile> FilesIn(const Places& places) {
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
