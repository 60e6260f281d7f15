#include "tier/find_log.h"

#include <cerrno>
#include <utility>

#include "log/format.h"

namespace tidelane::tier {
namespace {

bool IsSegmentOf(log::Folder& folder, const std::string& name, const Superblock& marked) {
  for (const uint64_t number : {1, 2}) {
    std::unique_ptr<Device> file;
    log::Sector bytes;
    if (folder.Open(log::SegmentName(name, number), false, file) != 0 ||
        file->Read(0, bytes.data(), bytes.size()) != 0)
      continue;
    const auto header = log::SegmentHeader::Parse(bytes);
    if (header && marked.MarkedWith(header->id)) return true;
  }
  return false;
}

// A file that was renamed left its marker where it was.
bool Search(const std::string& tier, const Superblock& marked, const std::string& path,
            uint64_t inode, std::optional<FoundLog>& found) {
  const auto place = std::make_shared<Place>();
  if (!Place::OpenAt(tier, *place).ok()) return false;
  for (std::string& name : Entry::AllIn(*place)) {
    Entry entry;
    if (Entry::Read(*place, name, entry) != 0 || !IsLogOf(*place, entry, marked, path, inode))
      continue;
    found = {.place = place, .entry = std::move(name)};
    return true;
  }
  return false;
}

}  // namespace

bool IsLogOf(const Place& place, const std::string& entry, const Superblock& marked) {
  return IsSegmentOf(*log::MakeFolder(FolderOf(place), 0), entry, marked);
}

bool IsLogOf(const Place& place, const Entry& entry, const Superblock& marked,
             const std::string& path, uint64_t inode) {
  return (entry.path == path || entry.file.inode == inode) && IsLogOf(place, entry.name, marked);
}

Status FindLog(const DirectoryEntry& file, const std::string& path, const Superblock& marked,
               const std::string& tier, std::optional<FoundLog>& found) {
  found.reset();
  if (marked.mark() == kNeverCommitted) return {};
  if (IsSegmentOf(*log::MakeFolder(file.FolderAgain(), 0), file.name, marked)) return {};
  struct stat status{};
  if (const int error = file.Look(status); error != 0)
    return Status::Failed(error, "open").At(path, 0, 0);
  const uint64_t inode = status.st_ino;
  const std::string whole = PathIn(file);
  Marker marker;
  const bool has_marker = Marker::Read(file, marker) == 0;
  Status refused;
  if (has_marker) {
    const auto place = std::make_shared<Place>();
    refused = Place::OpenAt(marker.tier, *place);
    Entry entry;
    if (refused.ok() && Entry::Read(*place, marker.entry, entry) == 0 &&
        IsLogOf(*place, entry, marked, whole, inode)) {
      found = {.place = place,
               .entry = marker.entry,
               .is_announced = marker.host == HostName() && marker.boot == BootId()};
      return {};
    }
  }
  if (Search(Place::PathOf(kMemory), marked, whole, inode, found) ||
      (!tier.empty() && tier != kMemory &&
       Search(Place::PathOf(tier), marked, whole, inode, found)))
    return {};
  if (!has_marker) return {};
  const std::string where = marker.tier + " of " + marker.host;
  if (marker.host != HostName())
    return Status::Failed(EXDEV, "find the last commit, which is in " + where + ", of")
        .At(path, 0, 0);
  if (marker.in_memory && marker.boot != BootId())
    return Status::Failed(ENODATA, "find the last commit, which was in the memory of " +
                                       marker.host + " before that was started again, of")
        .At(path, 0, 0);
  return refused.code() == EPERM ? refused : Status();
}

void Forget(const Place& place, const std::string& entry, const std::string& path) {
  const auto remove_marker = [&](const std::string& file) {
    DirectoryEntry beside;
    if (!file.empty() && DirectoryEntry::Find(file.c_str(), true, beside) == 0)
      Marker::Remove(beside, entry);
  };
  Entry known;
  remove_marker(path);
  if (Entry::Read(place, entry, known) == 0) remove_marker(known.path);
  static_cast<void>(Entry::Remove(place, entry));
}

}  // namespace tidelane::tier
