#include "tier/entry.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <map>
#include <memory>
#include <string_view>

namespace tidelane::tier {
namespace {

constexpr std::string_view kFirstLine = "tidelane tier 1";
constexpr char kEntryEnd[] = ".file";
constexpr char kMarkerEnd[] = "-tier";
constexpr size_t kDigits = 16;
constexpr size_t kMost = size_t{64} << 10;  // of a path there is less

// Lines of a name and a value; the last one may have line breaks, as paths may.
using Lines = std::map<std::string, std::string, std::less<>>;

bool IsEntryName(std::string_view name) {
  return name.size() == kDigits &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

int WriteWhole(int folder, const std::string& name, const std::string& text) {
  std::string draft = name;
  draft += '~';
  const Descriptor file(openat(folder, draft.c_str(),
                               O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                               S_IRUSR | S_IWUSR));
  if (!file.valid()) return errno;
  const bool whole =
      write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (whole && renameat(folder, draft.c_str(), folder, name.c_str()) == 0) return 0;
  const int error = errno != 0 ? errno : EIO;
  unlinkat(folder, draft.c_str(), 0);
  return error;
}

// `last`: the name of the last line.
int ReadLines(int folder, const std::string& name, std::string_view last, Lines& lines) {
  const Descriptor file(
      openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found{};
  if (!file.valid() || fstat(file.get(), &found) != 0) return errno;
  if (!S_ISREG(found.st_mode) || static_cast<uint64_t>(found.st_size) > kMost) return EINVAL;
  std::string text(static_cast<size_t>(found.st_size), '\0');
  if (read(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return EIO;
  std::string_view rest = text;
  const auto take = [&rest](char end) {
    const size_t at = std::min(rest.find(end), rest.size());
    const std::string_view taken = rest.substr(0, at);
    rest.remove_prefix(std::min(at + 1, rest.size()));
    return taken;
  };
  if (take('\n') != kFirstLine) return EINVAL;
  while (!rest.empty()) {
    const std::string_view what = take(' ');
    if (what == last) {
      if (!rest.ends_with('\n')) return EINVAL;
      lines[std::string(what)] = rest.substr(0, rest.size() - 1);
      return 0;
    }
    lines[std::string(what)] = take('\n');
  }
  return EINVAL;
}

bool ParseNumber(const std::string& text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string NewName() {
  std::array<unsigned char, kDigits / 2> bytes{};
  while (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
  }
  std::string name;
  std::array<char, 3> digits{};
  for (const unsigned char byte : bytes) {
    std::snprintf(digits.data(), digits.size(), "%02x", byte);
    name += digits.data();
  }
  return name;
}

}  // namespace

Entry Entry::For(std::string path, const FileIdentity& file) {
  return {.name = NewName(), .path = std::move(path), .file = file};
}

int Entry::Write(const Place& place) const {
  std::string text(kFirstLine);
  text += "\ndevice " + std::to_string(file.device) + "\ninode " + std::to_string(file.inode) +
          "\npath " + path + '\n';
  return WriteWhole(place.folder.get(), name + kEntryEnd, text);
}

int Entry::Read(const Place& place, const std::string& name, Entry& entry) {
  Lines lines;
  if (!IsEntryName(name)) return EINVAL;
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
  return unlinkat(place.folder.get(), (name + kEntryEnd).c_str(), 0) == 0 ? 0 : errno;
}

std::vector<std::string> Entry::AllIn(const Place& place) {
  std::vector<std::string> names;
  const int listed = openat(place.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listed < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(listed), closedir);
  while (const dirent* const entry = entries != nullptr ? readdir(entries.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    const std::string_view end = kEntryEnd;
    if (name.ends_with(end) && IsEntryName(name.substr(0, name.size() - end.size())))
      names.emplace_back(name.substr(0, name.size() - end.size()));
  }
  std::ranges::sort(names);
  return names;
}

int Marker::Write(const DirectoryEntry& beside) const {
  std::string text(kFirstLine);
  text += "\nhost " + host + "\nboot " + boot + "\nmemory " + (in_memory ? "1" : "0") + "\nentry " +
          entry + "\nfolder " + tier + '\n';
  return WriteWhole(beside.folder.get(), beside.name + kMarkerEnd, text);
}

int Marker::Read(const DirectoryEntry& beside, Marker& marker) {
  Lines lines;
  if (const int error = ReadLines(beside.folder.get(), beside.name + kMarkerEnd, "folder", lines);
      error != 0)
    return error;
  if (!IsEntryName(lines["entry"]) || !lines["folder"].starts_with('/')) return EINVAL;
  marker = {.host = lines["host"],
            .boot = lines["boot"],
            .entry = lines["entry"],
            .tier = lines["folder"],
            .in_memory = lines["memory"] == "1"};
  return 0;
}

void Marker::Remove(const DirectoryEntry& beside, const std::string& entry) {
  Marker found;
  if (Read(beside, found) == 0 && found.entry == entry)
    unlinkat(beside.folder.get(), (beside.name + kMarkerEnd).c_str(), 0);
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
