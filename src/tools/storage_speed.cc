#include "tools/storage_speed.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/trace.h"
#include "tools/locate.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

constexpr size_t kMib = size_t{1} << 20;
constexpr size_t kSyncedRequests = 32;
constexpr size_t kRequests = 128;
constexpr size_t kSmallRequests = 256;
constexpr size_t kSmall = 4096;
constexpr double kLongest = 3;  // seconds for each part

double SecondsSince(uint64_t begin_ns) { return static_cast<double>(NowNs() - begin_ns) / 1e9; }

/// A file that is gone when this is.
class Scratch {
 public:
  explicit Scratch(const std::string& folder) : path_(folder + "/tidelane-check-XXXXXX") {
    file_ = mkostemp(path_.data(), O_CLOEXEC);
    if (file_ >= 0) unlink(path_.c_str());
  }
  ~Scratch() {
    if (file_ >= 0) close(file_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  int file() const { return file_; }

 private:
  std::string path_;
  int file_;
};

// Of more than caches hold, as a checkpoint is.
double CopyRate() {
  constexpr int kTimes = 4;
  const std::vector<char> from(64 * kMib, 1);
  std::vector<char> to(from.size(), 2);
  const uint64_t begin = NowNs();
  for (int i = 0; i < kTimes; ++i) {
    std::memcpy(to.data(), from.data(), to.size());
    __asm__ volatile("" : : "r"(to.data()) : "memory");  // done each time
  }
  return kTimes * static_cast<double>(to.size()) / SecondsSince(begin);
}

// Bytes a second of requests of 1 MiB from the `first` on; 0 with errno if one failed.
double WriteRate(int file, const std::vector<char>& data, size_t first, size_t last, bool sync,
                 Progress& progress) {
  const uint64_t begin = NowNs();
  size_t done = 0;
  for (size_t i = first; i < last && SecondsSince(begin) < kLongest; ++i) {
    const auto at = static_cast<off_t>(i * kMib);
    if (pwrite(file, data.data(), kMib, at) != static_cast<ssize_t>(kMib)) return 0;
    progress.At(static_cast<double>(i) / kRequests);
    ++done;
  }
  if (sync && fdatasync(file) != 0) return 0;
  return static_cast<double>(done * kMib) / SecondsSince(begin);
}

// Of the first requests, which the disk has; 0 with errno if one failed.
double ReadRate(int file, std::vector<char>& data) {
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  const uint64_t begin = NowNs();
  size_t done = 0;
  for (; done < kSyncedRequests && SecondsSince(begin) < kLongest; ++done) {
    const auto at = static_cast<off_t>(done * kMib);
    const ssize_t got = pread(file, data.data(), kMib, at);
    if (got < 0) return 0;
    if (got == 0) break;  // a slow disk took fewer
  }
  return static_cast<double>(done * kMib) / SecondsSince(begin);
}

double SmallSeconds(int file, const std::vector<char>& data) {
  const uint64_t begin = NowNs();
  size_t done = 0;
  while (done < kSmallRequests && SecondsSince(begin) < kLongest) {
    const size_t at = done * 37 % kSmallRequests * 2 * kSmall;  // scattered
    if (pwrite(file, data.data(), kSmall, static_cast<off_t>(at)) < 0) return 0;
    ++done;
  }
  return SecondsSince(begin) / static_cast<double>(std::max<size_t>(done, 1));
}

// The longest mount point that `folder` is under.
std::string FileSystemOf(const std::string& folder) {
  std::unique_ptr<char, decltype(&free)> real(realpath(folder.c_str(), nullptr), &free);
  std::string mounts;
  if (real == nullptr || !ReadWhole("/proc/self/mounts", mounts)) return {};
  const std::string path = std::string(real.get()) + "/";
  std::string best;
  std::string type;
  for (const std::string& line : SplitAt(mounts, '\n')) {
    const std::vector<std::string> fields = SplitAt(line, ' ');
    if (fields.size() < 3) continue;
    const std::string under = fields[1] == "/" ? "/" : fields[1] + "/";
    if (!path.starts_with(under) || under.size() < best.size()) continue;
    best = under;
    type = fields[2];
  }
  return type;
}

Status Failed(const std::string& what, const std::string& folder) {
  return Status::Failed(errno == 0 ? EIO : errno, what + " " + folder);
}

}  // namespace

Status MeasureStorage(const std::string& folder, StorageSpeed& speed) {
  struct statvfs space;
  if (statvfs(folder.c_str(), &space) != 0) return Failed("use the folder", folder);
  if (uint64_t{space.f_bavail} * space.f_frsize < 2 * kRequests * kMib) {
    errno = ENOSPC;
    return Failed("write 256 MiB to", folder);
  }
  errno = 0;
  const Scratch scratch(folder);
  if (scratch.file() < 0) return Failed("make a file in", folder);
  speed.file_system = FileSystemOf(folder);
  speed.locks = flock(scratch.file(), LOCK_EX | LOCK_NB) == 0;
  std::vector<char> data(kMib);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 2654435761u >> 13);
  Progress progress("writing to " + folder);
  speed.copy_rate = CopyRate();
  speed.disk_rate = WriteRate(scratch.file(), data, 0, kSyncedRequests, true, progress);
  speed.read_rate = ReadRate(scratch.file(), data);
  speed.write_rate = WriteRate(scratch.file(), data, kSyncedRequests, kRequests, false, progress);
  speed.small_seconds = SmallSeconds(scratch.file(), data);
  if (speed.disk_rate == 0 || speed.write_rate == 0 || speed.small_seconds == 0 ||
      speed.read_rate == 0) {
    return Failed("write to", folder);
  }
  return {};
}

}  // namespace tidelane::tools
