#include "publish/directory_entry.h"

#include <array>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace tidelane {
namespace {

constexpr int kMostLinks = 40;  // as the kernel follows
constexpr std::string_view kEnding = ".unpublished";

// What is too long is cut, where no character of UTF-8 is, and told apart by a number.
std::string Fitting(const std::string& name, size_t most) {
  if (name.size() <= most) return name;
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  char number[20];
  const auto digits = static_cast<size_t>(
      std::snprintf(number, sizeof number, "~%016llx", static_cast<unsigned long long>(hash)));
  size_t end = most - digits;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return name.substr(0, end) + number;
}

}  // namespace

int DirectoryEntry::Find(const char* path, bool follow, DirectoryEntry& entry) {
  std::string left = path;
  Descriptor folder;
  for (int links = 0; links <= kMostLinks; ++links) {
    const size_t slash = left.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : left.substr(0, slash + 1);
    std::string name = slash == std::string::npos ? left : left.substr(slash + 1);
    if (name.empty() || name == "." || name == "..") return EISDIR;
    const int from = folder.valid() ? folder.get() : AT_FDCWD;
    Descriptor next(openat(from, parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!next.valid()) return errno;
    folder = std::move(next);
    std::array<char, PATH_MAX> target;
    const ssize_t length =
        follow ? readlinkat(folder.get(), name.c_str(), target.data(), target.size()) : -1;
    if (length < 0) {
      struct stat found;
      if (fstat(folder.get(), &found) != 0) return errno;
      entry = {std::move(folder), IdentityIn(found), std::move(name)};
      return 0;
    }
    left.assign(target.data(), static_cast<size_t>(length));
  }
  return ELOOP;
}

std::string HiddenName(const std::string& name) {
  return "." + Fitting(name, NAME_MAX - 1 - kEnding.size()) + std::string(kEnding);
}

bool IsHiddenName(const std::string& name) {
  return name.size() > 1 + kEnding.size() && name.starts_with('.') && name.ends_with(kEnding);
}

std::string KeptName(const std::string& name, int number) {
  const std::string ending = std::string(kEnding) + (number == 0 ? "" : std::to_string(number));
  return Fitting(name, NAME_MAX - ending.size()) + ending;
}

}  // namespace tidelane
