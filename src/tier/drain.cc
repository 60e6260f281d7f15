#include "tier/drain.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <memory>
#include <thread>
#include <utility>

#include "device/device.h"
#include "log/format.h"
#include "log/mark.h"
#include "log/recovery.h"
#include "tier/find_log.h"
#include "tier/moved_file.h"
#include "tier/spares.h"

namespace tidelane::tier {
namespace {

constexpr int kMostLooks = 100;
constexpr auto kLook = std::chrono::milliseconds(10);
constexpr int kHow = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;

bool IsFile(int fd, const FileIdentity& file) {
  struct stat found{};
  return fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && IdentityIn(found) == file;
}

// Another mover lets go of its lease when somebody asks for the file.
int OpenWithoutLease(int folder, const char* name, Descriptor& file) {
  for (int looks = 0; looks < kMostLooks; ++looks) {
    if (looks != 0) std::this_thread::sleep_for(kLook);
    file = Descriptor(openat(folder, name, kHow));
    if (file.valid()) return 0;
    if (errno != EWOULDBLOCK) return errno;
  }
  return EWOULDBLOCK;
}

// Something else has the name, or nothing. After any other error the file may be there.
bool IsGone(int error) {
  constexpr std::array kGone{ENOENT, ENOTDIR, ELOOP, EISDIR, ENXIO, ENODEV};
  return std::ranges::find(kGone, error) != kGone.end();
}

// Where it is now, if it has a name.
std::string PathOf(int fd, const Entry& entry) {
  std::array<char, PATH_MAX> path{};
  const ssize_t size =
      readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.data(), path.size());
  return size <= 0 ? entry.path : std::string(path.data(), static_cast<size_t>(size));
}

// 0 or an errno; EWOULDBLOCK: somebody has one.
int RemoveLog(const Place& place, const std::string& entry) {
  const std::unique_ptr<log::Folder> folder = log::MakeFolder(FolderOf(place), 0);
  for (const uint64_t number : {1, 2}) {
    const std::string name = log::SegmentName(entry, number);
    std::unique_ptr<Device> segment;
    int error = folder->Open(name, true, segment);
    if (error == ENOENT) continue;
    if (error == 0) error = folder->Remove(name, *segment);
    if (error != 0) return error;
  }
  return 0;
}

// Of the log: a kill came before that could be removed.
bool HasEverything(const Place& place, const Entry& entry, const Superblock& own, Device& file) {
  const std::unique_ptr<log::Folder> folder = log::MakeFolder(FolderOf(place), 0);
  for (const uint64_t number : {1, 2}) {
    std::unique_ptr<Device> segment;
    log::Sector bytes;
    if (folder->Open(log::SegmentName(entry.name, number), false, segment) != 0 ||
        segment->Read(0, bytes.data(), bytes.size()) != 0)
      continue;
    const auto header = log::SegmentHeader::Parse(bytes);
    log::Snapshot snapshot;
    // As if the file were marked with it.
    if (header && !own.empty() && !own.marked() &&
        log::ReadSnapshot(*folder, entry.name, entry.path, own.Marked(header->id), false, snapshot)
            .ok() &&
        log::IsApplied(file, own, snapshot))
      return true;
  }
  return false;
}

// A log that may be the one which is marked, and does not say so: it must not be taken for another's.
Status FindDamage(const Place& place, const std::string& entry, const std::string& path) {
  const std::unique_ptr<log::Folder> folder = log::MakeFolder(FolderOf(place), 0);
  for (const uint64_t number : {1, 2}) {
    const std::string name = log::SegmentName(entry, number);
    std::unique_ptr<Device> segment;
    log::Sector bytes;
    uint64_t size = 0;
    int error = folder->Open(name, false, segment);
    if (error == ENOENT) continue;
    if (error == 0) error = segment->Size(size);
    if (error == 0) error = segment->Read(0, bytes.data(), bytes.size());
    if (error != 0) return Status::Failed(error, "read " + name + ", the log of").At(path, 0, 0);
    if (size != 0 && !log::SegmentHeader::Parse(bytes))
      return Status::Failed(EIO, "use " + name + ", a damaged log, to recover").At(path, 0, 0);
  }
  return {};
}

Drained Useless(const Place& place, const std::string& entry, const std::string& path) {
  // What is no log of ours is left alone.
  if (const int error = RemoveLog(place, entry); error != 0)
    return error == EWOULDBLOCK ? Drained::kInUse : Drained::kLost;
  Forget(place, entry, path);
  return Drained::kUseless;
}

Status Restore(Device& file, log::Folder& folder, const std::string& path,
               const log::Snapshot& snapshot, bool in_memory, Interrupted* interrupted) {
  if (interrupted == nullptr) return log::Restore(file, folder, path, snapshot, in_memory);
  FileVersion version;
  if (file.Version(version) != 0 || version != interrupted->version) interrupted->progress.Forget();
  Status status = log::Restore(file, folder, path, snapshot, in_memory, &interrupted->progress);
  if (!status.ok() && file.Version(interrupted->version) != 0) interrupted->progress = {};
  return status;
}

}  // namespace

int OpenFileOf(const Entry& entry, Descriptor& file) {
  Descriptor at_its_path;
  int error = OpenWithoutLease(AT_FDCWD, entry.path.c_str(), at_its_path);
  if (error == 0 && IsFile(at_its_path.get(), entry.file)) {
    file = std::move(at_its_path);
    return 0;
  }
  const std::string folder = entry.path.substr(0, entry.path.rfind('/') + 1);
  const std::unique_ptr<DIR, int (*)(DIR*)> names(opendir(folder.c_str()), closedir);
  while (const dirent* const name = names != nullptr ? readdir(names.get()) : nullptr) {
    if (name->d_ino != entry.file.inode) continue;
    const int refused = OpenWithoutLease(dirfd(names.get()), name->d_name, file);
    if (refused == 0 && IsFile(file.get(), entry.file)) return 0;
    if (refused != 0 && !IsGone(refused)) return refused;
  }
  // Not every file system keeps the numbers of inodes: the mark says the rest.
  file = std::move(at_its_path);
  return IsGone(error) ? ENOENT : error;
}

void RemoveEntry(const Place& place, const std::string& entry, const std::string& path) {
  static_cast<void>(Useless(place, entry, path));
}

Drained Drain(const Place& place, const Entry& entry, const Descriptor& handed, uint64_t spares,
              Status& why, Pace* pace, Interrupted* interrupted) {
  const auto failed = [&](int error, const char* what) {
    why = Status::Failed(error, what).At(entry.path, 0, 0);
    return error == EWOULDBLOCK ? Drained::kInUse : Drained::kFailed;
  };
  Descriptor opened;
  if (const int error = handed.valid() ? 0 : OpenFileOf(entry, opened); error != 0)
    return error == ENOENT ? Drained::kLost : failed(error, "open");
  const int fd = handed.valid() ? handed.get() : opened.get();
  struct stat found{};
  if (fstat(fd, &found) != 0) return failed(errno, "look at");
  const std::string path = PathOf(fd, entry);
  MovedFile file(fd);
  if (const int error = file.Lock(); error != 0) return failed(error, "lock");
  // Who has opened it, and looked at nothing yet, may need the log.
  if (found.st_nlink == 0)
    return file.is_open_elsewhere() ? Drained::kInUse : Useless(place, entry.name, {});
  Superblock superblock;
  if (const int error = file.Find(superblock); error != 0) return failed(error, "read");
  // Somebody has put another one in its place between two looks.
  if (superblock.marked() && !file.is_locked()) return Drained::kInUse;
  const bool never_committed = superblock.marked() && superblock.mark() == kNeverCommitted;
  const bool is_anothers =
      superblock.marked() && !never_committed && !IsLogOf(place, entry.name, superblock);
  if (is_anothers) why = FindDamage(place, entry.name, path);
  if (!why.ok()) return why.code() == EWOULDBLOCK ? Drained::kInUse : Drained::kFailed;
  if (!superblock.marked() || is_anothers)
    return IdentityIn(found) == entry.file || handed.valid() ||
                   HasEverything(place, entry, superblock, *file.Changed(superblock))
               ? Useless(place, entry.name, path)
               : Drained::kLost;
  const std::unique_ptr<Device> device = file.Changed(superblock, pace);
  const std::unique_ptr<log::Folder> folder = MakeSparingFolder(place, spares);
  log::Snapshot snapshot;
  why = log::ReadSnapshot(
      *folder, entry.name, path, superblock, true, snapshot,
      interrupted == nullptr ? log::KnownCommits() : interrupted->progress.known());
  if (why.ok()) why = log::CheckLength(*device, path, snapshot);
  if (why.ok()) why = Restore(*device, *folder, path, snapshot, place.in_memory, interrupted);
  if (!why.ok()) return why.code() == EWOULDBLOCK ? Drained::kInUse : Drained::kFailed;
  static_cast<void>(RemoveLog(place, entry.name));
  Forget(place, entry.name, path);
  return Drained::kYes;
}

}  // namespace tidelane::tier
