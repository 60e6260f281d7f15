#include "tier/entry.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string_view>

#include "tier/text_file.h"
#include "tier/trouble.h"

namespace tidelane::tier {
namespace {

constexpr char kEntryEnd[] = ".file";
constexpr int kNew = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

std::string MarkerName(const DirectoryEntry& beside) {
  return beside.name + std::string(kMarkerEnd);
}

}  // namespace

Entry Entry::For(std::string path, const FileIdentity& file) {
  return {.name = NewName(), .path = std::move(path), .file = file};
}

int Entry::Write(const Place& place) const {
  std::string text(kFirstLine);
  text += "\ndevice " + std::to_string(file.device) + "\ninode " + std::to_string(file.inode) +
          "\npath " + path + '\n';
  const std::string whole = name + kEntryEnd;
  return WriteWhole(place, whole, whole + kDraftEnd, text);
}

int Entry::Read(const Place& place, const std::string& name, Entry& entry) {
  Lines lines;
  if (!IsNewName(name)) return EINVAL;
  if (const int error = ReadLines(place.folder.get(), name + kEntryEnd, "path", lines); error != 0)
    return error;
  uint64_t device = 0;
  uint64_t inode = 0;
  if (!ParseNumber(lines["device"], device) || !ParseNumber(lines["inode"], inode) ||
      !lines["path"].starts_with('/'))
    return EINVAL;
  entry = {.name = name, .path = lines["path"], .file = {}};
  entry.file.device = device;
  entry.file.inode = inode;
  return 0;
}

int Entry::Remove(const Place& place, const std::string& name) {
  const int error = unlinkat(place.folder.get(), (name + kEntryEnd).c_str(), 0) == 0 ? 0 : errno;
  Trouble::Remove(place, name);
  return error;
}

std::vector<std::string> Entry::AllIn(const Place& place) { return NamesBefore(place, kEntryEnd); }

void Entry::RemoveDrafts(const Place& place) {
  tier::RemoveDrafts(place, std::string(kEntryEnd) + kDraftEnd);
}

bool Marker::IsBeside(std::string_view path) {
  std::array<char, PATH_MAX> beside;
  if (path.size() + kMarkerEnd.size() >= beside.size()) return false;
  char* const end = std::ranges::copy(path, beside.data()).out;
  *std::ranges::copy(kMarkerEnd, end).out = '\0';
  return faccessat(AT_FDCWD, beside.data(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int Marker::Write(const DirectoryEntry& beside) const {
  std::string text(kFirstLine);
  text += "\nhost " + host + "\nboot " + boot + "\nmemory " + (in_memory ? "1" : "0") + "\nentry " +
          entry + "\nfolder " + tier + '\n';
  // One that is not whole tells nothing, and what it is for can be found without it.
  const Descriptor file(
      openat(beside.folder.get(), MarkerName(beside).c_str(), kNew | O_TRUNC, S_IRUSR | S_IWUSR));
  return file.valid() ? WriteText(file.get(), text) : errno;
}

int Marker::Read(const DirectoryEntry& beside, Marker& marker) {
  Lines lines;
  if (const int error = ReadLines(beside.folder.get(), MarkerName(beside), "folder", lines);
      error != 0)
    return error;
  if (!IsNewName(lines["entry"]) || !lines["folder"].starts_with('/')) return EINVAL;
  marker = {.host = lines["host"],
            .boot = lines["boot"],
            .entry = lines["entry"],
            .tier = lines["folder"],
            .in_memory = lines["memory"] == "1"};
  return 0;
}

// One that is empty was made by who was killed before he could write it.
void Marker::Remove(const DirectoryEntry& beside, const std::string& entry) {
  const std::string name = MarkerName(beside);
  Marker found;
  struct stat status{};
  const bool own = Read(beside, found) == 0 && found.entry == entry;
  const bool empty =
      fstatat(beside.folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISREG(status.st_mode) && status.st_size == 0;
  if (own || empty) unlinkat(beside.folder.get(), name.c_str(), 0);
}

std::string PathIn(const DirectoryEntry& entry) {
  std::array<char, PATH_MAX> folder{};
  const std::string link = "/proc/self/fd/" + std::to_string(entry.folder.get());
  const ssize_t size = readlink(link.c_str(), folder.data(), folder.size());
  if (size <= 0) return {};
  std::string path(folder.data(), static_cast<size_t>(size));
  if (path != "/") path += '/';
  return path + entry.name;
}

}  // namespace tidelane::tier
