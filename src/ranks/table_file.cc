#include "ranks/table_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "base/fresh_file.h"

namespace tidelane {
namespace {

constexpr off_t kUse = 0;  // the byte whose lock says that the file is used; parts' bytes follow
constexpr int kAttempts = 2000;
constexpr auto kBetweenAttempts = std::chrono::microseconds(200);

// Locks of an open file: they are nobody's who opens it again, and end with the last descriptor of this one.
bool SetLock(int descriptor, short kind, off_t begin, off_t size) {
  struct flock lock{};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = begin;
  lock.l_len = size;
  return fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

off_t BytesOf(const TableFile::Shape& shape) {
  return static_cast<off_t>(sizeof(TableFile::Head) + shape.common_bytes +
                            shape.part_bytes * shape.parts);
}

// Space now: a store to a full /dev/shm would be a signal.
bool Allocate(int descriptor, off_t begin, off_t size) {
  int error = 0;
  do {
    error = posix_fallocate(descriptor, begin, size);
  } while (error == EINTR);
  return error == 0;
}

// A file longer than this process may make one would be a signal, too.
bool MayBeSoLong(off_t bytes) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= static_cast<rlim_t>(bytes);
}

// Natively there would be none: programs that open many files need theirs for them.
bool MayHave(int descriptor) {
  rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         static_cast<rlim_t>(descriptor) < limit.rlim_cur / 2;
}

// Not blocking: what has the name may be a pipe.
int OpenFile(const char* path, int more) {
  return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | more, 0600);
}

// Of nobody else, who could cut it short later: that would be a signal here.
bool IsOurs(int descriptor, struct stat& found) {
  return fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid() &&
         (found.st_mode & 0077) == 0;
}

enum class Use { kAlone, kShared, kAgain, kNever };

// How this process may use the file; with `kAlone` nobody else does until the lock is shared.
Use Enter(int descriptor, struct stat& found) {
  if (!IsOurs(descriptor, found)) return Use::kNever;
  const bool alone = SetLock(descriptor, F_WRLCK, kUse, 1);
  // Somebody makes the head, or takes the name away: neither takes long.
  if (!alone && !SetLock(descriptor, F_RDLCK, kUse, 1))
    return errno == EAGAIN || errno == EACCES ? Use::kAgain : Use::kNever;
  if (fstat(descriptor, &found) != 0) return Use::kNever;
  if (found.st_nlink == 0) return Use::kAgain;
  return alone ? Use::kAlone : Use::kShared;
}

// Nobody may use it, or nobody else is to.
void RemoveName(int descriptor, const char* path) {
  struct stat found;
  if (fstat(descriptor, &found) == 0 && found.st_nlink != 0) unlink(path);
}

// Of the file's head; 0: it has none, because it is new or who was about to write it was killed. False: it is something else.
bool ReadMagic(int descriptor, const struct stat& found, uint64_t& magic) {
  magic = 0;
  return found.st_size == 0 || pread(descriptor, &magic, sizeof magic, 0) == sizeof magic;
}

}  // namespace

TableFile::TableFile(int descriptor, void* memory, std::string path, const Shape& shape)
    : descriptor_(descriptor),
      memory_(memory),
      path_(std::move(path)),
      shape_(shape),
      process_(getpid()) {}

bool TableFile::ours() const { return getpid() == process_; }

TableFile::~TableFile() {
  munmap(memory_, static_cast<size_t>(BytesOf(shape_)));
  if (ours()) {
    // First the shared lock goes: of several that are about to leave, the last one finds itself alone.
    SetLock(descriptor_, F_UNLCK, 0, 0);
    if (SetLock(descriptor_, F_WRLCK, kUse, 1)) RemoveName(descriptor_, path_.c_str());
  }
  close(descriptor_);
}

// What was made by somebody else is as large already.
void* TableFile::Map(int descriptor, const Shape& shape, bool alone) {
  const off_t bytes = BytesOf(shape);
  const auto front = static_cast<off_t>(sizeof(Head) + shape.common_bytes);
  if (alone &&
      (!MayBeSoLong(bytes) || !Allocate(descriptor, 0, front) || ftruncate(descriptor, bytes) != 0))
    return nullptr;
  void* const memory =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (alone) new (memory) Head{shape.magic, (RandomBits() >> 1) | 1, 0, 0};
  return memory;
}

std::unique_ptr<TableFile> TableFile::Open(const std::string& path, const Shape& shape,
                                           Missing missing) {
  const bool make = missing == Missing::kMake;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int descriptor = OpenFile(path.c_str(), make ? O_CREAT : 0);
    if (descriptor < 0) return nullptr;
    if (!MayHave(descriptor)) {
      close(descriptor);
      return nullptr;
    }
    struct stat found;
    const Use use = Enter(descriptor, found);
    void* memory = nullptr;
    if (use == Use::kAlone || use == Use::kShared) {
      const bool alone = use == Use::kAlone;
      uint64_t magic = 0;
      const bool known = ReadMagic(descriptor, found, magic);
      const bool usable =
          known && (magic == 0 ? alone : magic == shape.magic && found.st_size == BytesOf(shape));
      if (usable && (make || !alone)) memory = Map(descriptor, shape, alone);
      if (memory == nullptr && usable && alone) RemoveName(descriptor, path.c_str());
      if (memory != nullptr && alone) SetLock(descriptor, F_RDLCK, kUse, 1);
    }
    if (memory != nullptr)
      return std::unique_ptr<TableFile>(new TableFile(descriptor, memory, path, shape));
    close(descriptor);
    if (use != Use::kAgain) return nullptr;
    std::this_thread::sleep_for(kBetweenAttempts);
  }
  return nullptr;
}

void TableFile::RemoveUnused(const std::string& prefix, uint64_t magic) {
  const size_t name_at = prefix.rfind('/') + 1;
  const std::string folder = prefix.substr(0, name_at);
  DIR* const entries = opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = readdir(entries)) {
    const std::string path = folder + entry->d_name;
    if (!path.starts_with(prefix)) continue;
    const int descriptor = OpenFile(path.c_str(), 0);
    if (descriptor < 0) continue;
    struct stat found;
    // No shared lock, not for a moment: who is about to leave would take us for a user.
    if (IsOurs(descriptor, found) && SetLock(descriptor, F_WRLCK, kUse, 1)) {
      uint64_t its = 0;
      if (ReadMagic(descriptor, found, its) && (its == 0 || its == magic))
        RemoveName(descriptor, path.c_str());
    }
    close(descriptor);
  }
  closedir(entries);
}

void TableFile::TakeNameAway() { RemoveName(descriptor_, path_.c_str()); }

std::byte* TableFile::part(uint64_t number) const {
  return common() + shape_.common_bytes + shape_.part_bytes * number;
}

TableFile::Claiming TableFile::TryClaim(uint64_t number) {
  const auto byte = static_cast<off_t>(kUse + 1 + number);
  if (!SetLock(descriptor_, F_WRLCK, byte, 1)) return Claiming::kTaken;
  // With those before it, where others look at them, claimed or not.
  const off_t begin = shape_.apart ? part(number) - static_cast<std::byte*>(memory_) : 0;
  const off_t end = part(number + 1) - static_cast<std::byte*>(memory_);
  if (Allocate(descriptor_, begin, end - begin)) return Claiming::kDone;
  SetLock(descriptor_, F_UNLCK, byte, 1);
  return Claiming::kNoMemory;
}

void TableFile::Release(uint64_t number) {
  SetLock(descriptor_, F_UNLCK, static_cast<off_t>(kUse + 1 + number), 1);
}

bool TableFile::Claimed(uint64_t number) const {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(kUse + 1 + number);
  lock.l_len = 1;
  return fcntl(descriptor_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace tidelane
