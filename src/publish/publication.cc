#include "publish/publication.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "publish/attributes.h"
#include "publish/unpublished.h"

#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000  // since Linux 5.8
#endif

namespace tidelane {
namespace {

constexpr int kMostTries = 64;  // against others who make and remove the same hidden file
constexpr int kMostBusy = 5;
constexpr useconds_t kBusyUs = 2000;
constexpr int kMostKept = 1000;
constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE

constinit std::atomic<bool> exits_by_error{false};

// Registered after HDF5's own handler, which closes what the program has left open: so it is called before that.
void WatchExit() {
#ifdef __GLIBC__
  static const int watching = on_exit(
      [](int status, void*) {
        if (status != 0) SetExitsByError();
      },
      nullptr);
  static_cast<void>(watching);
#endif
}

bool IsNowAt(int folder, const std::string& name, const FileIdentity& identity) {
  struct stat found;
  return fstatat(folder, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         IdentityIn(found) == identity;
}

// As HDF5 locks files that it reads: whoever writes the file has it locked.
int LockForReading(int fd) {
  int result;
  do {
    result = flock(fd, LOCK_SH | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

// Says who writes a hidden file. Not HDF5's kind of lock: that must be gone when the file gets its name, and this must not. Like that
// one it belongs to what was opened, and ends with it. One byte where no file has any: MPI-IO locks what it reads and rewrites, and would
// wait for ever for a claim to that.
int Claim(int fd) {
  struct flock byte{};
  byte.l_type = F_WRLCK;
  byte.l_start = std::numeric_limits<off_t>::max() - 1;
  byte.l_len = 1;
  int result;
  do {
    result = fcntl(fd, F_OFD_SETLK, &byte);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return 0;
  return errno == EACCES || errno == EAGAIN ? EWOULDBLOCK : errno;
}

bool IsMounted(const DirectoryEntry& entry, const struct stat& folder, const struct stat& found) {
  if (folder.st_dev != found.st_dev) return true;
  struct statx more;
  return statx(entry.folder.get(), entry.name.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &more) ==
             0 &&
         (more.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

bool HasRoomFor(int folder, const struct stat& found) {
  struct statvfs room;
  if (fstatvfs(folder, &room) != 0) return true;  // then writing will say it
  return static_cast<uint64_t>(room.f_bavail) * room.f_frsize >=
         static_cast<uint64_t>(found.st_blocks) * 512;
}

// Why the file that is there cannot be replaced by another one; nothing: it can.
std::optional<Fallback> WhyKept(const DirectoryEntry& entry, const struct stat& folder,
                                const struct stat& found) {
  if (!S_ISREG(found.st_mode)) return Fallback::kPublishKind;
  if (found.st_nlink > 1) return Fallback::kPublishLinked;
  if (found.st_uid != geteuid()) return Fallback::kPublishOwner;
  if (IsMounted(entry, folder, found)) return Fallback::kPublishMount;
  if (!HasRoomFor(entry.folder.get(), found)) return Fallback::kPublishRoom;
  return std::nullopt;
}

enum class Made : uint8_t { kYes, kLocked, kNoLocks, kNo };

// Whoever has claimed the file that is there by its name has it; the claim to a file that has lost its name means nothing.
Made MakeHidden(int folder, const std::string& hidden, mode_t mode, Descriptor& file) {
  for (int tries = 0, busy = 0; tries < kMostTries; ++tries) {
    constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
    file = Descriptor(openat(folder, hidden.c_str(), kFlags | O_CREAT | O_EXCL, mode));
    const bool made = file.valid();
    if (!made) {
      if (errno != EEXIST) return Made::kNo;
      const int error = SweepHidden(folder, hidden);
      if (error != 0 && error != ENOENT && error != EWOULDBLOCK) return Made::kNo;
      // Who sweeps has it claimed for a moment.
      if (error == EWOULDBLOCK) {
        if (++busy == kMostBusy) return Made::kLocked;
        usleep(kBusyUs);
      }
      continue;
    }
    struct stat found;
    const int error = fstat(file.get(), &found) != 0 ? errno : Claim(file.get());
    if (error == EWOULDBLOCK) continue;  // taken for a left one
    if (error != 0) {
      unlinkat(folder, hidden.c_str(), 0);
      return Made::kNoLocks;
    }
    if (IsNowAt(folder, hidden, IdentityIn(found))) return Made::kYes;
  }
  return Made::kLocked;
}

}  // namespace

void SetExitsByError() { exits_by_error.store(true, std::memory_order_relaxed); }

bool ExitsByError() { return exits_by_error.load(std::memory_order_relaxed); }

int SweepHidden(int folder, const std::string& hidden, bool only_look) {
  const Descriptor left(
      openat(folder, hidden.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat found;
  if (!left.valid() || fstat(left.get(), &found) != 0) return errno;
  if (!S_ISREG(found.st_mode) || found.st_nlink != 1 || found.st_uid != geteuid()) return EPERM;
  if (const int error = Claim(left.get()); error != 0) return error;
  if (!IsNowAt(folder, hidden, IdentityIn(found))) return ENOENT;
  return only_look || unlinkat(folder, hidden.c_str(), 0) == 0 ? 0 : errno;
}

void SweepHidden(const char* path) {
  DirectoryEntry entry;
  if (DirectoryEntry::Find(path, true, entry) == 0)
    static_cast<void>(SweepHidden(entry.folder.get(), HiddenName(entry.name)));
}

bool IsBeingWritten(const char* path) {
  DirectoryEntry entry;
  return DirectoryEntry::Find(path, true, entry) == 0 && IsHiddenName(entry.name) &&
         SweepHidden(entry.folder.get(), entry.name, true) == EWOULDBLOCK;
}

Publication::Publication(DirectoryEntry entry, bool only_new, bool follows, FileIdentity identity,
                         Descriptor replaced)
    : entry_(std::move(entry)),
      hidden_(HiddenName(entry_.name)),
      only_new_(only_new),
      follows_(follows),
      identity_(identity),
      process_(getpid()),
      replaced_(std::move(replaced)) {}

Publication::~Publication() { Unpublished::Get().Remove(entry_, this); }

Publication::Beginning Publication::Begin(const char* path, bool only_new, mode_t mode,
                                          Descriptor& file,
                                          std::shared_ptr<Publication>& publication,
                                          Fallback& why) {
  DirectoryEntry entry;
  struct stat folder;
  if (DirectoryEntry::Find(path, !only_new, entry) != 0 || fstat(entry.folder.get(), &folder) != 0)
    return Beginning::kNatively;
  if (entry.name.size() > NAME_MAX) return Beginning::kNatively;
  struct stat found;
  const bool exists = entry.Look(found) == 0;
  if (exists && only_new) return Beginning::kNatively;
  const int at = entry.folder.get();
  // Only who may write a file may have another one take its place; open(2) has the words for that.
  if (exists && faccessat(at, entry.name.c_str(), R_OK | W_OK, AT_EACCESS) != 0)
    return errno == ENOENT ? Beginning::kAgain : Beginning::kNatively;
  const auto in_place = [&](Fallback reason) {
    why = reason;
    return Beginning::kInPlace;
  };
  if (exists) {
    if (const auto reason = WhyKept(entry, folder, found); reason.has_value())
      return in_place(*reason);
  }
  if ((folder.st_mode & S_ISVTX) != 0 || faccessat(at, ".", W_OK | X_OK, AT_EACCESS) != 0)
    return in_place(Fallback::kPublishFolder);
  Descriptor replaced;
  if (exists) {
    replaced = Descriptor(openat(at, entry.name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat opened;
    if (!replaced.valid() || fstat(replaced.get(), &opened) != 0 ||
        IdentityIn(opened) != IdentityIn(found))
      return Beginning::kAgain;  // it was replaced just now
    // Who writes it would go on with a file that has lost its name. From now on nobody else begins to.
    if (LockForReading(replaced.get()) == EWOULDBLOCK) return Beginning::kLocked;
  }
  switch (MakeHidden(at, HiddenName(entry.name), mode, file)) {
    case Made::kYes: break;
    case Made::kLocked: return Beginning::kLocked;
    case Made::kNoLocks: return in_place(Fallback::kPublishLocks);
    case Made::kNo: return in_place(Fallback::kPublishFolder);
  }
  struct stat hidden;
  int error = fstat(file.get(), &hidden) != 0 ? errno : 0;
  if (error == 0 && exists) error = TakeOverAttributes(replaced.get(), file.get());
  if (error != 0) {
    unlinkat(at, HiddenName(entry.name).c_str(), 0);
    file = Descriptor();
    return in_place(Fallback::kPublishAttributes);
  }
  WatchExit();
  publication.reset(
      new Publication(std::move(entry), only_new, false, IdentityIn(hidden), std::move(replaced)));
  Unpublished::Get().Add(publication->entry_, publication);
  return Beginning::kHidden;
}

int Publication::Follow(const char* path, bool only_new, uint64_t inode,
                        std::shared_ptr<Publication>& publication) {
  DirectoryEntry entry;
  if (const int error = DirectoryEntry::Find(path, !only_new, entry); error != 0) return error;
  struct stat hidden;
  const int at = entry.folder.get();
  if (fstatat(at, HiddenName(entry.name).c_str(), &hidden, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  if (hidden.st_ino != inode) return ENOENT;  // it is another machine's folder
  WatchExit();
  Descriptor replaced(
      openat(at, entry.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  publication.reset(
      new Publication(std::move(entry), only_new, true, IdentityIn(hidden), std::move(replaced)));
  Unpublished::Get().Add(publication->entry_, publication);
  return 0;
}

std::string Publication::HiddenPath() const {
  const std::string link = "/proc/self/fd/" + std::to_string(entry_.folder.get());
  std::array<char, PATH_MAX> folder;
  const ssize_t length = readlink(link.c_str(), folder.data(), folder.size());
  if (length <= 0) return {};
  std::string path(folder.data(), static_cast<size_t>(length));
  if (path.back() != '/') path += '/';
  path += hidden_;
  return IdentityAt(path.c_str()) == identity_ ? path : std::string();
}

int Publication::Open(int flags) const {
  return openat(entry_.folder.get(), hidden_.c_str(), flags | O_NOFOLLOW | O_CLOEXEC);
}

void Publication::Join() {
  MutexLock lock(mutex_);
  ++open_;
}

// A child of fork has its parent's files open, but they are the parent's to publish, as long as that lives.
bool Publication::IsAnothers() const {
  return process_ != getpid() && (kill(process_, 0) == 0 || errno != ESRCH);
}

bool Publication::HasHiddenFile() const { return IsNowAt(entry_.folder.get(), hidden_, identity_); }

// Without a way to rename that replaces nothing (NFS), a second link is made instead.
int Publication::Rename(Descriptor& other) const {
  const int at = entry_.folder.get();
  const char* const hidden = hidden_.c_str();
  const char* const name = entry_.name.c_str();
  if (only_new_) {
    if (syscall(SYS_renameat2, at, hidden, at, name, kNoReplace) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    if (linkat(at, hidden, at, name, 0) != 0) return errno;
    unlinkat(at, hidden, 0);
    return 0;
  }
  struct stat found;
  if (entry_.Look(found) == 0) {
    if (!S_ISREG(found.st_mode)) return S_ISDIR(found.st_mode) ? EISDIR : EEXIST;
    struct stat before;
    const bool same = replaced_.valid() && fstat(replaced_.get(), &before) == 0 &&
                      IdentityIn(before) == IdentityIn(found);
    if (same) {
      // What was changed meanwhile (chmod) is kept, too, as far as it can be.
      const Descriptor file(Open(O_RDONLY));
      if (file.valid()) static_cast<void>(TakeOverAttributes(replaced_.get(), file.get()));
    } else {
      // It came meanwhile: natively it would be ours all the same, unless somebody writes it.
      other = Descriptor(openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
      if (other.valid() && LockForReading(other.get()) == EWOULDBLOCK) return EWOULDBLOCK;
    }
  }
  return renameat(at, hidden, at, name) == 0 ? 0 : errno;
}

// Under a name that everybody sees; empty: it has none.
std::string Publication::Keep() const {
  const int at = entry_.folder.get();
  for (int number = 0; number < kMostKept; ++number) {
    const std::string kept = KeptName(entry_.name, number);
    if (linkat(at, hidden_.c_str(), at, kept.c_str(), 0) == 0) {
      unlinkat(at, hidden_.c_str(), 0);
      return kept;
    }
    if (errno != EEXIST) break;
  }
  return {};
}

Status Publication::Publish(const std::string& path) {
  if (state_ != State::kHidden || IsAnothers() || follows_) return {};
  if (!HasHiddenFile()) {
    return Status::Failed(ENOENT, "publish " + hidden_ + ", which was removed, as").At(path, 0, 0);
  }
  Descriptor other;
  const int error = Rename(other);
  if (error == 0) {
    state_ = State::kPublished;
    Count(Counter::kFilesPublished);
    Unpublished::Get().Remove(entry_, this);
    return {};
  }
  const std::string kept = Keep();
  state_ = State::kDiscarded;
  Unpublished::Get().Remove(entry_, this);
  return Status::Failed(error, "publish " + (kept.empty() ? hidden_ : kept) + ", beside it, as")
      .At(path, 0, 0);
}

Status Publication::Leave(bool whole, const std::string& path) {
  MutexLock lock(mutex_);
  if (!whole) withheld_ = true;
  if (--open_ != 0 || state_ != State::kHidden) return {};
  if (!withheld_) return Publish(path);
  Unpublished::Get().Remove(entry_, this);
  // What else is withheld stays until somebody creates the file again: it may be worth a look.
  if (useless_ && !IsAnothers() && !follows_ && HasHiddenFile())
    unlinkat(entry_.folder.get(), hidden_.c_str(), 0);
  return {};
}

Status Publication::PublishNow(const std::string& path) {
  MutexLock lock(mutex_);
  return withheld_ ? Status() : Publish(path);
}

void Publication::Withhold(bool useless) {
  MutexLock lock(mutex_);
  withheld_ = true;
  useless_ |= useless;
}

bool Publication::withheld() {
  MutexLock lock(mutex_);
  return withheld_;
}

bool Publication::discarded() {
  MutexLock lock(mutex_);
  return state_ == State::kDiscarded;
}

void Publication::NoteEnd() {
  MutexLock lock(mutex_);
  if (state_ != State::kHidden) return;
  state_ = State::kPublished;
  Unpublished::Get().Remove(entry_, this);
}

int Publication::Discard() {
  MutexLock lock(mutex_);
  if (state_ != State::kHidden) return ENOENT;
  const int at = entry_.folder.get();
  if (HasHiddenFile() && unlinkat(at, hidden_.c_str(), 0) != 0) return errno;
  state_ = State::kDiscarded;
  Unpublished::Get().Remove(entry_, this);
  // Natively the file that was there would have become this one.
  struct stat before;
  if (replaced_.valid() && fstat(replaced_.get(), &before) == 0 &&
      IsNowAt(at, entry_.name, IdentityIn(before)) && unlinkat(at, entry_.name.c_str(), 0) != 0)
    return errno;
  return 0;
}

}  // namespace tidelane
