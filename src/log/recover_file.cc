#include "log/recover_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "device/claim.h"
#include "log/format.h"

namespace tidelane::log {
namespace {

constexpr size_t kIdDigits = 16;

bool AreLocksMissing(int error) { return error == ENOSYS || error == EOPNOTSUPP; }

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool Continues(const FoundSegment& one, const FoundSegment& other) {
  return other.id != 0 && one.before == other.id;
}

}  // namespace

bool IsLogName(const std::string& name, std::string& file) {
  if (IsSegmentName(name, file)) return true;
  const size_t point = name.rfind('.');
  return point != std::string::npos && name.size() - point - 1 == kIdDigits &&
         name.find_first_not_of("0123456789abcdef", point + 1) == std::string::npos &&
         IsSegmentName(name.substr(0, point), file);
}

int LookAtSegment(const std::string& path, FoundSegment& found) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return errno;
  const std::unique_ptr<Device> file = MakePosixDevice(fd);
  struct stat status;
  if (fstat(fd, &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return EINVAL;
  found = {.path = path,
           .name = path.substr(path.rfind('/') + 1),
           .of = {},
           .size = static_cast<uint64_t>(status.st_size),
           .modified = status.st_mtim.tv_sec,
           .in_use = IsClaimed(fd)};
  Sector bytes;
  if (const int error = file->Read(0, bytes.data(), bytes.size()); error != 0) return error;
  if (const auto header = SegmentHeader::Parse(bytes); header && header->version <= kVersion) {
    found.id = header->id;
    found.before = header->before;
    found.of = header->path;
  }
  return 0;
}

std::vector<FoundSegment> LogsIn(const std::string& folder) {
  std::vector<FoundSegment> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
  if (entries == nullptr) return found;
  const std::string before = folder.ends_with('/') ? folder : folder + '/';
  while (const dirent* const entry = readdir(entries.get())) {
    std::string whose;
    FoundSegment segment;
    if (IsLogName(entry->d_name, whose) && LookAtSegment(before + entry->d_name, segment) == 0)
      found.push_back(std::move(segment));
  }
  std::ranges::sort(found, {}, &FoundSegment::name);
  return found;
}

std::vector<FoundSegment> SegmentsBeside(const std::string& path) {
  std::vector<FoundSegment> found;
  std::string file = path;
  struct stat status;
  // A log lies where a symbolic link leads to.
  if (lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
    const std::unique_ptr<char, void (*)(void*)> target(realpath(path.c_str(), nullptr), std::free);
    if (target == nullptr) return found;
    file = target.get();
  }
  for (const uint64_t number : {1, 2}) {
    FoundSegment segment;
    if (LookAtSegment(SegmentName(file, number), segment) == 0) found.push_back(std::move(segment));
  }
  return found;
}

uint64_t BytesLogged(const Snapshot& snapshot) {
  uint64_t bytes = 0;
  const auto add = [&](uint64_t begin, uint64_t end, uint64_t offset) {
    if (offset != 0) bytes += end - begin;
  };
  for (const Layer& layer : snapshot.layers)
    layer.pieces.Visit(0, UINT64_MAX, add, [](uint64_t, uint64_t) {});
  return bytes;
}

Status FileByName::Failed(int error, const char* operation) const {
  return Status::Failed(error, operation).At(path_, 0, 0);
}

Status FileByName::Open(const std::string& path, Purpose purpose) {
  path_ = path;
  purpose_ = purpose;
  DirectoryEntry entry;
  if (const int error = DirectoryEntry::Find(path.c_str(), true, entry); error != 0)
    return Failed(error, "open");
  const int flags = purpose == Purpose::kChange ? O_RDWR : O_RDONLY;
  const int fd = OpenAfterMove(entry.folder.get(), entry.name.c_str(), flags | O_NOFOLLOW);
  if (fd < 0) return Failed(errno, "open");
  file_ = MakePosixDevice(fd);
  struct stat found;
  if (fstat(fd, &found) != 0) return Failed(errno, "open");
  if (!S_ISREG(found.st_mode)) return Failed(EINVAL, "use what is no file:");
  names_ = {SegmentName(entry.name, 1), SegmentName(entry.name, 2)};
  folder_ = MakeFolder(std::move(entry.folder), found.st_mode & 0777);
  if (Status status = LockIt(); !status.ok()) return status;
  if (const int error = Superblock::Find(*file_, superblock_); error != 0)
    return Failed(error, "read");
  if (const int error = file_->Size(size_); error != 0) return Failed(error, "read");
  return {};
}

// Who changes it has it for himself, before he looks at it.
Status FileByName::LockIt() {
  if (purpose_ == Purpose::kLook) {
    in_use_ = HasWriter();
    return {};
  }
  int error = file_->Lock(true);
  if (error == 0 || AreLocksMissing(error)) error = Claim(*file_->descriptor());
  if (error != 0) return Failed(error, "lock");
  return {};
}

// HDF5's own lock cannot be asked for but by taking it: as a reader does, for a moment.
bool FileByName::HasWriter() const {
  if (IsClaimed(*file_->descriptor())) return true;
  const int error = file_->Lock(false);
  if (error == 0) static_cast<void>(file_->Unlock());
  return error == EWOULDBLOCK;
}

int FileByName::UseLog(const std::string& segment) {
  FoundSegment first;
  if (const int error = LookAtSegment(segment, first); error != 0) return error;
  names_ = {first.name, {}};
  for (const FoundSegment& other : LogsIn(FolderOf(segment))) {
    if (Continues(first, other) || Continues(other, first)) names_[1] = other.name;
  }
  DirectoryEntry entry;
  if (const int error = DirectoryEntry::Find(segment.c_str(), false, entry); error != 0)
    return error;
  folder_ = MakeFolder(std::move(entry.folder), 0600);
  return 0;
}

Status FileByName::Read(Snapshot& snapshot) {
  Status status =
      ReadSnapshot(*folder_, names_, path_, superblock_, purpose_ == Purpose::kChange, snapshot);
  return status.ok() ? CheckLength(*file_, path_, snapshot) : status;
}

Status FileByName::Recover(const Snapshot& snapshot) {
  return Restore(*file_, *folder_, path_, snapshot);
}

int FileByName::Store(const Superblock& superblock) {
  const iovec part{const_cast<std::byte*>(superblock.bytes().data()), superblock.size()};
  const int error = file_->Write(superblock.base(), &part, 1);
  return error == 0 ? file_->Sync() : error;
}

Status FileByName::ClearMark() {
  const int error = Store(superblock_.Unmarked(size_).Closed());
  return error == 0 ? Status() : Failed(error, "clear the mark of");
}

Status FileByName::FindSpentLog(std::vector<std::string>& spent, bool removes) {
  if (superblock_.empty() || marked()) return {};
  const std::vector<FoundSegment> beside = SegmentsBeside(path_);
  // Its mark may be on storage yet, if its program has been killed while it took that back.
  bool stored = false;
  const auto store = [&] {
    const int error = stored ? 0 : Store(superblock_);
    stored |= error == 0;
    return error;
  };
  for (const FoundSegment& last : beside) {
    // Made, and not begun.
    if (last.id == 0 && last.size == 0 && !last.in_use) {
      std::unique_ptr<Device> made;
      int error = folder_->Open(last.name, removes, made);
      if (error == 0 && removes) {
        if (error = store(); error != 0) return Failed(error, "sync");
        error = folder_->Remove(last.name, *made);
      }
      if (error == 0) spent.push_back(last.name);
      continue;
    }
    const auto goes_on = [&](const FoundSegment& other) { return Continues(other, last); };
    if (last.id == 0 || last.in_use || std::ranges::any_of(beside, goes_on)) continue;
    Snapshot snapshot;
    // As if the file were marked with it.
    const Status status =
        ReadSnapshot(*folder_, names_, path_, superblock_.Marked(last.id), removes, snapshot);
    if (!status.ok() || !IsApplied(*file_, superblock_, snapshot)) continue;
    std::vector<std::shared_ptr<Segment>> segments;
    if (snapshot.moved != nullptr) segments.push_back(snapshot.moved);
    for (const Layer& layer : snapshot.layers) segments.push_back(layer.segment);
    if (const int error = removes ? store() : 0; error != 0) return Failed(error, "sync");
    for (const auto& segment : segments) {
      const int error = removes ? folder_->Remove(segment->name(), segment->file()) : 0;
      if (error != 0 && error != ENOENT) return Failed(error, "remove the log of");
      spent.push_back(segment->name());
    }
  }
  return {};
}

}  // namespace tidelane::log
