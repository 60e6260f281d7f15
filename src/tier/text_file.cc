#include "tier/text_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

#include "device/claim.h"

namespace tidelane::tier {
namespace {

constexpr size_t kDigits = 16;
constexpr int kMostTries = 3;
constexpr size_t kMost = size_t{64} << 10;  // of a path there is less

}  // namespace

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

int WriteText(int file, const std::string& text) {
  const ssize_t written = write(file, text.data(), text.size());
  return written == static_cast<ssize_t>(text.size()) ? 0 : written < 0 ? errno : ENOSPC;
}

int WriteWhole(const Place& place, const std::string& name, const std::string& draft,
               const std::string& text) {
  const int folder = place.folder.get();
  int error = 0;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const Descriptor made(openat(folder, draft.c_str(),
                                 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                                 S_IRUSR | S_IWUSR));
    if (!made.valid()) return errno;
    error = Claim(made.get());  // so that nobody takes it for one that was left
    if (error == 0) error = WriteText(made.get(), text);
    if (error == 0 && renameat(folder, draft.c_str(), folder, name.c_str()) == 0) return 0;
    if (error == 0) error = errno;
    unlinkat(folder, draft.c_str(), 0);
    // A mover that begins just now may have taken it before it was claimed.
    if (error != EWOULDBLOCK && error != ENOENT) break;
  }
  return error;
}

void RemoveDrafts(const Place& place, std::string_view end) {
  for (const std::string& name : NamesIn(place)) {
    if (!name.ends_with(end)) continue;
    const Descriptor draft(
        openat(place.folder.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (draft.valid() && Claim(draft.get()) == 0) unlinkat(place.folder.get(), name.c_str(), 0);
  }
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

bool IsNewName(std::string_view name) {
  return name.size() == kDigits &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
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

std::vector<std::string> NamesBefore(const Place& place, std::string_view end) {
  std::vector<std::string> names;
  for (const std::string& file : NamesIn(place)) {
    const std::string_view name = file;
    if (name.ends_with(end) && IsNewName(name.substr(0, name.size() - end.size())))
      names.emplace_back(name.substr(0, name.size() - end.size()));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace tidelane::tier
