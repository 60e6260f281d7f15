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
      : fd_(::open((folder + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
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

// The paths of a folder's histories; none where it cannot be read.
std::vector<std::string> Files(const std::string& folder) {
  std::vector<std::string> files;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (open == nullptr) return files;
  while (const dirent* const entry = ::readdir(open.get())) {
    if (std::string_view(entry->d_name).ends_with(".json"))
      files.push_back(folder + "/" + entry->d_name);
  }
  return files;
}

// Makes room for one more: the file that was written longest ago goes.
void DropOldest(const std::string& folder) {
  const std::vector<std::string> files = Files(folder);
  if (files.size() < kMostHistories) return;
  const std::string* oldest = nullptr;
  timespec when{};
  for (const std::string& file : files) {
    struct stat found;
    if (::stat(file.c_str(), &found) != 0) continue;
    const timespec& written = found.st_mtim;
    if (oldest != nullptr && (written.tv_sec != when.tv_sec ? written.tv_sec > when.tv_sec
                                                            : written.tv_nsec >= when.tv_nsec))
      continue;
    oldest = &file, when = written;
  }
  if (oldest != nullptr) ::unlink(oldest->c_str());
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

// Under the folder's lock, so one name for the new file is enough; one that a killed process left is written over.
Status Replace(const std::string& path, const HistoryEntry& entry) {
  const std::string temporary = path + ".new";
  const std::string text = HistoryText(entry);
  std::FILE* const file = std::fopen(temporary.c_str(), "we");  // e: not inherited across exec
  int error = file == nullptr ? errno : 0;
  if (file != nullptr && std::fwrite(text.data(), 1, text.size(), file) != text.size())
    error = errno;
  if (file != nullptr && std::fclose(file) != 0 && error == 0)
    error = errno;  // a full disk shows here
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(temporary.c_str());
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
  for (const std::string& file : Files(folder)) {
    HistoryEntry entry;
    if (Load(file, entry).ok() && entry.runs != 0) entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, std::ranges::greater(), &HistoryEntry::updated);
  return entries;
}

}  // namespace tidelane::model
