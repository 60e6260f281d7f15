// The folder: loading, saving, listing. What a file says is history_text.cc's.
#include "model/history.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

#include "base/fresh_file.h"

namespace tidelane::model {
namespace {

constexpr size_t kMostBytes = 64 << 10;  // ours have six or seven thousand
constexpr double kOldRuns = 0.7;         // what earlier runs count for when one more has ended
// Another process holds the lock for as long as writing a small file takes.
constexpr int kLockTries = 50;
constexpr int kLockTryMs = 1;

class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : fd_(::open((folder + "/.lock").c_str(),
                   O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666)) {
    if (fd_ < 0) {
      error_ = errno;
      return;
    }
    for (int i = 0; i < kLockTries; ++i) {
      if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
      error_ = errno;
      if (errno != EWOULDBLOCK && errno != EINTR) break;
      (void)::poll(nullptr, 0, kLockTryMs);
      error_ = EWOULDBLOCK;
    }
    ::close(fd_);
    fd_ = -1;
  }
  ~FolderLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool held() const { return fd_ >= 0; }
  int error() const { return error_; }

 private:
  int fd_;
  int error_ = 0;
};

int ReadAll(const std::string& path, std::string& text) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno;
  text.resize(kMostBytes + 1);
  size_t size = 0;
  ssize_t got = 1;
  int error = 0;
  while (got != 0 && size < text.size()) {
    got = ::read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      error = errno;
      break;
    }
    size += static_cast<size_t>(got);
  }
  ::close(fd);
  text.resize(size);
  return error == 0 && size > kMostBytes ? EFBIG : error;
}

// No std::filesystem and no streams in the plugin: they bring the C++ library's locales, and half a millisecond at its start.
int MakeFolder(const std::string& folder) {
  for (size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
    const int error = ::mkdir(folder.substr(0, end).c_str(), 0777) == 0 ? 0 : errno;
    if (end == std::string::npos) return error == EEXIST ? 0 : error;
  }
}

bool EndsInDigits(std::string_view text) {
  constexpr size_t kDigits = 16;
  return text.size() > kDigits &&
         text.substr(text.size() - kDigits).find_first_not_of("0123456789abcdef") ==
             std::string_view::npos;
}

// As HistoryFileName makes them.
bool IsHistoryName(std::string_view name) {
  constexpr std::string_view kEnd = ".json";
  if (!name.ends_with(kEnd)) return false;
  name.remove_suffix(kEnd.size());
  return EndsInDigits(name) && name.substr(0, name.size() - 16).ends_with('-');
}

// As Replace makes them. Under the folder's lock nobody is writing one.
bool IsLeftOver(std::string_view name) {
  const size_t end = name.rfind('.');
  return end != std::string_view::npos && name.size() == end + 17 && EndsInDigits(name) &&
         IsHistoryName(name.substr(0, end));
}

// The names in a folder that are of ours, as `ours` says; none where it cannot be read.
std::vector<std::string> Names(const std::string& folder, bool (*ours)(std::string_view)) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (open == nullptr) return names;
  while (const dirent* const entry = ::readdir(open.get())) {
    if (ours(entry->d_name)) names.emplace_back(entry->d_name);
  }
  return names;
}

struct OwnFile {
  std::string name;
  timespec written;
};

// Those that this user may have made: the folder may be others', too, and hold what is nobody's history.
std::vector<OwnFile> OwnFiles(const std::string& folder, bool (*ours)(std::string_view)) {
  std::vector<OwnFile> files;
  for (std::string& name : Names(folder, ours)) {
    struct stat found;
    if (::lstat((folder + "/" + name).c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
        found.st_uid == ::geteuid())
      files.push_back({std::move(name), found.st_mtim});
  }
  return files;
}

Status Load(const std::string& path, HistoryEntry& entry);

// Makes room for one more: the history that was written longest ago goes. A name alone makes none.
void DropOldest(const std::string& folder) {
  for (const OwnFile& left : OwnFiles(folder, IsLeftOver))
    ::unlink((folder + "/" + left.name).c_str());
  std::vector<OwnFile> files = OwnFiles(folder, IsHistoryName);
  if (files.size() < kMostHistories) return;
  std::ranges::sort(files, [](const OwnFile& a, const OwnFile& b) {
    return a.written.tv_sec != b.written.tv_sec ? a.written.tv_sec < b.written.tv_sec
                                                : a.written.tv_nsec < b.written.tv_nsec;
  });
  for (const OwnFile& file : files) {
    const std::string path = folder + "/" + file.name;
    HistoryEntry entry;
    if (!Load(path, entry).ok() || entry.runs == 0 || HistoryFileName(entry.key) != file.name)
      continue;
    ::unlink(path.c_str());
    return;
  }
}

Status Load(const std::string& path, HistoryEntry& entry) {
  std::string text;
  if (const int error = ReadAll(path, text); error != 0) {
    if (error == ENOENT || error == ENOTDIR) return {};
    return Status::Failed(error, "read the history").At(path, 0, 0);
  }
  Status status = ParseHistory(text, entry);
  return status.ok() ? Status() : std::move(status).At(path, 0, 0);
}

Status Replace(const std::string& path, const HistoryEntry& entry) {
  std::string temporary;
  const std::string text = HistoryText(entry);
  const int fd = CreateFresh(path, 0666, temporary);
  std::FILE* const file = fd < 0 ? nullptr : ::fdopen(fd, "w");
  int error = file == nullptr ? errno : 0;
  if (file == nullptr && fd >= 0) ::close(fd);
  if (file != nullptr && std::fwrite(text.data(), 1, text.size(), file) != text.size())
    error = errno;
  if (file != nullptr && std::fclose(file) != 0 && error == 0)
    error = errno;  // a full disk shows here
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  if (fd >= 0) ::unlink(temporary.c_str());
  return Status::Failed(error, "write the history").At(path, 0, 0);
}

uint64_t Hash(std::string_view text, uint64_t hash) {
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;  // FNV-1a
  return hash;
}

}  // namespace

std::string HistoryFileName(const HistoryKey& key) {
  constexpr size_t kLongestName = 40;
  std::string name;
  for (const char c : key.program.substr(0, kLongestName)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += plain || c == '.' || c == '_' || c == '-' ? c : '_';
  }
  if (name.starts_with(".")) name[0] = '_';
  const uint64_t hash = Hash(key.program, Hash(key.file_system + '\n', 0xcbf29ce484222325));
  char text[24];
  std::snprintf(text, sizeof text, "-%016" PRIx64 ".json", hash);
  return name + text;
}

Status LoadHistory(const std::string& folder, const HistoryKey& key, HistoryEntry& entry) {
  HistoryEntry read;
  if (Status status = Load(folder + "/" + HistoryFileName(key), read); !status.ok()) return status;
  entry = read.key == key ? std::move(read) : HistoryEntry{};
  entry.key = key;
  return {};
}

Status SaveHistory(const std::string& folder, const HistoryKey& key, const Learned& learned) {
  if (const int error = MakeFolder(folder); error != 0)
    return Status::Failed(error, "make the history's folder").At(folder, 0, 0);
  const FolderLock lock(folder);
  if (!lock.held()) return Status::Failed(lock.error(), "lock the history").At(folder, 0, 0);
  HistoryEntry entry;
  Status status = LoadHistory(folder, key, entry);
  if (status.code() == EPROTONOSUPPORT) return status;
  if (!status.ok()) entry = {};
  const std::string path = folder + "/" + HistoryFileName(key);
  if (status.ok() && entry.runs == 0) DropOldest(folder);
  entry.key = key;
  for (IoRate* rate : {&entry.learned.sync, &entry.learned.lanes, &entry.learned.reads.sync,
                       &entry.learned.reads.lanes})
    rate->Fade(kOldRuns);
  entry.learned.Merge(learned);
  ++entry.runs;
  entry.updated = static_cast<int64_t>(std::time(nullptr));
  return Replace(path, entry);
}

std::vector<HistoryEntry> ListHistory(const std::string& folder) {
  std::vector<HistoryEntry> entries;
  for (const std::string& name : Names(folder, IsHistoryName)) {
    HistoryEntry entry;
    if (Load(folder + "/" + name, entry).ok() && entry.runs != 0)
      entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, std::ranges::greater(), &HistoryEntry::updated);
  return entries;
}

}  // namespace tidelane::model
