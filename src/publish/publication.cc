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
#include <cstring>
#include <utility>

#include "device/claim.h"
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

// What says nothing of the folder: the open fails with it, and nothing is touched.
bool IsFailure(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case ESTALE: return true;
    default: return false;
  }
}

struct Made {
  int error = 0;          // 0: it was made
  bool locked = false;    // another program writes it
  bool no_locks = false;  // nobody can be told that this one does
};

// Whoever has claimed the file that is there by its name has it; the claim to a file that has lost its name means nothing.
Made MakeHidden(int folder, const std::string& hidden, mode_t mode, Descriptor& file) {
  for (int tries = 0, busy = 0; tries < kMostTries; ++tries) {
    constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_CREAT | O_EXCL;
    file = Descriptor(openat(folder, hidden.c_str(), kFlags, mode));
    if (!file.valid()) {
      if (errno != EEXIST) return {.error = errno};
      const int error = SweepHidden(folder, hidden);
      if (error != 0 && error != ENOENT && error != EWOULDBLOCK) return {.error = error};
      // Who sweeps has it claimed for a moment.
      if (error == EWOULDBLOCK) {
        if (++busy == kMostBusy) break;
        usleep(kBusyUs);
      }
      continue;
    }
    struct stat found;
    const int error = fstat(file.get(), &found) != 0 ? errno : Claim(file.get());
    if (error == EWOULDBLOCK) continue;  // taken for a left one
    if (error != 0) {
      unlinkat(folder, hidden.c_str(), 0);
      return {.error = error, .no_locks = true};
    }
    if (IsNowAt(folder, hidden, IdentityIn(found))) return {};
  }
  return {.error = EWOULDBLOCK, .locked = true};
}

// A name that follows links by the kernel's rules leads to the same: it may refuse to follow some, and knows others that lead to no name.
bool LeadsThere(const char* path, bool exists, const struct stat& found) {
  struct stat by_kernel;
  if (stat(path, &by_kernel) != 0) return !exists && errno == ENOENT;
  return exists && IdentityIn(by_kernel) == IdentityIn(found);
}

bool IsZombie(pid_t process) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", process);
  // Without C++ streams, as everywhere in the plugin.
  char text[1024] = {};
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  const char* const name = length <= 0 ? nullptr : std::strrchr(text, ')');
  return name != nullptr && std::strncmp(name, ") Z", 3) == 0;
}

}  // namespace

void SetExitsByError() { exits_by_error.store(true, std::memory_order_relaxed); }

void WatchExit(int library) {
#ifdef __GLIBC__
  static std::atomic<uint64_t> watched{0};
  const uint64_t bit = uint64_t{1} << (library % 64);
  if ((watched.fetch_or(bit) & bit) != 0) return;
  on_exit(
      [](int status, void*) {
        if (status != 0) SetExitsByError();
      },
      nullptr);
#endif
}

bool ExitsByError() { return exits_by_error.load(std::memory_order_relaxed); }

int SweepHidden(int folder, const std::string& hidden, bool only_look) {
  constexpr int kFlags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  Descriptor left(openat(folder, hidden.c_str(), O_RDWR | kFlags));
  const int refused = left.valid() ? 0 : errno;
  if (refused == EACCES || refused == EPERM)
    left = Descriptor(openat(folder, hidden.c_str(), O_RDONLY | kFlags));
  struct stat found;
  if (!left.valid() || fstat(left.get(), &found) != 0) return errno;
  if (!S_ISREG(found.st_mode)) return EPERM;
  if (IsClaimed(left.get())) return EWOULDBLOCK;
  if (refused != 0) return refused;
  if (found.st_uid != geteuid() && geteuid() != 0) return EPERM;
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
                         Descriptor replaced, Descriptor claim)
    : entry_(std::move(entry)),
      hidden_(HiddenName(entry_.name)),
      only_new_(only_new),
      follows_(follows),
      identity_(identity),
      process_(getpid()),
      replaced_(std::move(replaced)),
      claim_(std::move(claim)) {}

Publication::~Publication() { Unpublished::Get().Remove(entry_, this); }

Publication::Beginning Publication::Begin(const char* path, bool only_new, mode_t mode,
                                          Begun& begun) {
  DirectoryEntry entry;
  struct stat folder;
  begun.error = DirectoryEntry::Find(path, !only_new, entry);
  if (begun.error == 0 && fstat(entry.folder.get(), &folder) != 0) begun.error = errno;
  if (begun.error != 0) return IsFailure(begun.error) ? Beginning::kFailed : Beginning::kNatively;
  if (entry.name.size() > NAME_MAX) return Beginning::kNatively;
  struct stat found;
  const bool exists = entry.Look(found) == 0;
  const auto is_another = [&] {
    struct stat now;
    return (entry.Look(now) == 0) != exists || (exists && IdentityIn(now) != IdentityIn(found));
  };
  if (exists && only_new) return Beginning::kNatively;
  if (!only_new && !LeadsThere(path, exists, found))
    return is_another() ? Beginning::kAgain : Beginning::kNatively;
  const int at = entry.folder.get();
  // Only who may write a file may have another one take its place; open(2) has the words for that.
  if (exists && faccessat(at, entry.name.c_str(), R_OK | W_OK, AT_EACCESS) != 0)
    return errno == ENOENT ? Beginning::kAgain : Beginning::kNatively;
  const auto in_place = [&](Fallback reason) {
    begun.why = reason;
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
    begun.error = replaced.valid() ? 0 : errno;
    if (IsFailure(begun.error)) return Beginning::kFailed;
    struct stat opened;
    if (!replaced.valid() || fstat(replaced.get(), &opened) != 0 ||
        IdentityIn(opened) != IdentityIn(found))
      return Beginning::kAgain;  // it was replaced just now
    // Who writes it would go on with a file that has lost its name. From now on nobody else begins to.
    if (LockForReading(replaced.get()) == EWOULDBLOCK) return Beginning::kLocked;
  }
  const std::string hidden = HiddenName(entry.name);
  // What replaces a file is nobody else's before it has that one's mode.
  const Made made = MakeHidden(at, hidden, exists ? mode & 0600 : mode, begun.file);
  begun.error = made.error;
  if (made.locked) return Beginning::kLocked;
  if (made.no_locks) return in_place(Fallback::kPublishLocks);
  if (IsFailure(made.error)) return Beginning::kFailed;
  if (made.error != 0) return in_place(Fallback::kPublishFolder);
  const auto unmake = [&](Beginning instead) {
    unlinkat(at, hidden.c_str(), 0);
    begun.file = Descriptor();
    return instead;
  };
  // Another one may just have published what this one is not to replace, or will replace.
  if (is_another()) return unmake(Beginning::kAgain);
  struct stat own;
  Descriptor claim(fcntl(begun.file.get(), F_DUPFD_CLOEXEC, 0));
  begun.error = !claim.valid() || fstat(begun.file.get(), &own) != 0 ? errno : 0;
  if (begun.error != 0) return unmake(Beginning::kFailed);
  if (exists && TakeOverAttributes(replaced.get(), begun.file.get()) != 0)
    return unmake(in_place(Fallback::kPublishAttributes));
  begun.publication.reset(new Publication(std::move(entry), only_new, false, IdentityIn(own),
                                          std::move(replaced), std::move(claim)));
  Unpublished::Get().Add(begun.publication->entry_, begun.publication);
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
  Descriptor replaced(
      openat(at, entry.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  publication.reset(new Publication(std::move(entry), only_new, true, IdentityIn(hidden),
                                    std::move(replaced), Descriptor()));
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

int Publication::Open(int flags, Descriptor& file) const {
  file = Descriptor(openat(entry_.folder.get(), hidden_.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
  struct stat found;
  int error = file.valid() && fstat(file.get(), &found) == 0 ? 0 : errno;
  if (error == 0 && IdentityIn(found) != identity_) error = ENOENT;  // another program's by now
  if (error == 0) return 0;
  file = Descriptor();
  // Published just now, or removed by somebody: the name means what is there.
  if (error == ENOENT) Unpublished::Get().Remove(entry_, this);
  return error;
}

void Publication::Join() {
  MutexLock lock(mutex_);
  ++open_;
}

// A child of fork has its parent's files open, but they are the parent's to publish, as long as that lives.
bool Publication::IsAnothers() const {
  if (process_ == getpid()) return false;
  return getppid() == process_ ||
         ((kill(process_, 0) == 0 || errno != ESRCH) && !IsZombie(process_));
}

bool Publication::HasHiddenFile() const { return IsNowAt(entry_.folder.get(), hidden_, identity_); }

// Gives it a name that nothing has. Where there is no rename that replaces nothing (NFS), by a second link; where there are no links
// either, after a look.
bool Publication::Link(const std::string& name) const {
  const int at = entry_.folder.get();
  if (linkat(at, hidden_.c_str(), at, name.c_str(), 0) == 0) {
    unlinkat(at, hidden_.c_str(), 0);
    return true;
  }
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK) return false;
  if (faccessat(at, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return false;
  }
  return renameat(at, hidden_.c_str(), at, name.c_str()) == 0;
}

int Publication::Rename(Descriptor& other) const {
  const int at = entry_.folder.get();
  const char* const hidden = hidden_.c_str();
  const char* const name = entry_.name.c_str();
  if (only_new_) {
    if (syscall(SYS_renameat2, at, hidden, at, name, kNoReplace) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    return Link(entry_.name) ? 0 : errno;
  }
  struct stat found;
  if (entry_.Look(found) == 0) {
    if (!S_ISREG(found.st_mode)) return S_ISDIR(found.st_mode) ? EISDIR : EEXIST;
    struct stat before;
    const bool same = replaced_.valid() && fstat(replaced_.get(), &before) == 0 &&
                      IdentityIn(before) == IdentityIn(found);
    if (same) {
      // What was changed meanwhile (chmod) is kept, too, as far as it can be.
      static_cast<void>(TakeOverAttributes(replaced_.get(), claim_.get()));
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
  for (int number = 0; number < kMostKept; ++number) {
    std::string kept = KeptName(entry_.name, number);
    if (Link(kept)) return kept;
    if (errno != EEXIST) break;
  }
  return {};
}

// Write-back of some file systems (NFS) fails where a descriptor is closed; and there the claim may have gone with HDF5's lock.
int Publication::Settle() const {
  const int copy = fcntl(claim_.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0 || close(copy) != 0) return errno;
  return Claim(claim_.get());
}

// Nothing of it is of use any more: the name means what is there.
void Publication::End(State state) {
  state_ = state;
  Unpublished::Get().Remove(entry_, this);
  // A forked child shares the claim, and would keep it.
  if (process_ == getpid()) GiveUpClaim(claim_.get());
  claim_ = Descriptor();
  replaced_ = Descriptor();
}

Status Publication::Publish(const std::string& path) {
  if (state_ != State::kHidden || IsAnothers() || follows_) return {};
  struct stat found;
  if (fstat(claim_.get(), &found) == 0 && found.st_size == 0)
    useless_ = true;  // HDF5 made no file of it
  if (useless_) {
    Remove();
    return {};
  }
  if (const int error = Settle(); error != 0) {
    End(State::kDiscarded);
    return Status::Failed(error, "publish " + hidden_ + " as").At(path, 0, 0);
  }
  if (!HasHiddenFile()) {
    End(State::kDiscarded);
    // With its folder the file is gone as an open one is natively.
    if (fstat(entry_.folder.get(), &found) == 0 && found.st_nlink == 0) return {};
    return Status::Failed(ENOENT, "publish " + hidden_ + ", which was removed, as").At(path, 0, 0);
  }
  Descriptor other;
  const int error = Rename(other);
  if (error == 0) {
    Count(Counter::kFilesPublished);
    End(State::kPublished);
    return {};
  }
  const std::string kept = Keep();
  End(State::kDiscarded);
  return Status::Failed(error, "publish " + (kept.empty() ? hidden_ : kept) + ", beside it, as")
      .At(path, 0, 0);
}

void Publication::Remove() {
  if (!IsAnothers() && HasHiddenFile()) unlinkat(entry_.folder.get(), hidden_.c_str(), 0);
  End(State::kDiscarded);
}

Status Publication::Leave(bool whole, const std::string& path) {
  MutexLock lock(mutex_);
  if (!whole) withheld_ = true;
  if (--open_ != 0 || state_ != State::kHidden) return {};
  if (!withheld_) return Publish(path);
  // What else is withheld stays until somebody creates the file again: it may be worth a look.
  useless_ && !follows_ ? Remove() : End(State::kDiscarded);
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
  // Natively the file that was there would have become this one.
  struct stat before;
  int error = 0;
  if (replaced_.valid() && fstat(replaced_.get(), &before) == 0 &&
      IsNowAt(at, entry_.name, IdentityIn(before)) && unlinkat(at, entry_.name.c_str(), 0) != 0)
    error = errno;
  End(State::kDiscarded);
  return error;
}

}  // namespace tidelane
