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

#include "device/claim.h"

namespace tidelane::tier {
namespace {

constexpr std::string_view kFirstLine = "tidelane tier 1";
constexpr char kEntryEnd[] = ".file";
constexpr std::string_view kMarkerEnd = "-tier";
constexpr char kDraftEnd[] = "~";
constexpr int kNew = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
constexpr size_t kDigits = 16;
constexpr size_t kMost = size_t{64} << 10;  // of a path there is less

// Lines of a name and a value; the last one may have line breaks, as paths may.
using Lines = std::map<std::string, std::string, std::less<>>;

std::string MarkerName(const DirectoryEntry& beside) {
  return beside.name + std::string(kMarkerEnd);
}

bool IsEntryName(std::string_view name) {
  return name.size() == kDigits &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

int WriteText(int file, const std::string& text) {
  const ssize_t written = write(file, text.data(), text.size());
  return written == static_cast<ssize_t>(text.size()) ? 0 : written < 0 ? errno : ENOSPC;
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

std::vector<std::string> NamesIn(const Place& place) {
  std::vector<std::string> names;
  const int listed = openat(place.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listed < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(listed), closedir);
  while (const dirent* const entry = entries != nullptr ? readdir(entries.get()) : nullptr)
    names.emplace_back(entry->d_name);
  return names;
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
  const int folder = place.folder.get();
  const std::string whole = name + kEntryEnd;
  const std::string draft = whole + kDraftEnd;
  const Descriptor made(openat(folder, draft.c_str(), kNew, S_IRUSR | S_IWUSR));
  if (!made.valid()) return errno;
  int error = Claim(made.get());  // so that nobody takes it for one that was left
  if (error == 0) error = WriteText(made.get(), text);
  if (error == 0 && renameat(folder, draft.c_str(), folder, whole.c_str()) == 0) return 0;
  if (error == 0) error = errno;
  unlinkat(folder, draft.c_str(), 0);
  return error;
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
  const std::string_view end = kEntryEnd;
  for (const std::string& file : NamesIn(place)) {
    const std::string_view name = file;
    if (name.ends_with(end) && IsEntryName(name.substr(0, name.size() - end.size())))
      names.emplace_back(name.substr(0, name.size() - end.size()));
  }
  std::ranges::sort(names);
  return names;
}

void Entry::RemoveDrafts(const Place& place) {
  const std::string end = std::string(kEntryEnd) + kDraftEnd;
  for (const std::string& name : NamesIn(place)) {
    if (!name.ends_with(end)) continue;
    const Descriptor draft(
        openat(place.folder.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (draft.valid() && Claim(draft.get()) == 0) unlinkat(place.folder.get(), name.c_str(), 0);
  }
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
  if (!IsEntryName(lines["entry"]) || !lines["folder"].starts_with('/')) return EINVAL;
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
