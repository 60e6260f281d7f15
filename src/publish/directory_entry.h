/// \file
/// Where a file's name leads: a folder that is held open, and a name in it that is no symbolic link any more, so that neither a change
/// of the working folder nor a new name of the folder changes what is meant.
///
/// Invariant: the folder stays open for the life of a DirectoryEntry.
/// Thread safety: a value.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "device/identity.h"

namespace tidelane {

/// A descriptor that is closed with it.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  void Reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  int fd_ = -1;
};

struct DirectoryEntry {
  Descriptor folder;  ///< O_PATH
  FileIdentity folder_identity;
  std::string name;

  /// As open(2) with O_CREAT would find it: 0 or an errno. The file itself need not exist. `follow`: what a symbolic link leads to is
  /// meant; otherwise the link.
  static int Find(const char* path, bool follow, DirectoryEntry& entry);

  /// The folder, opened once more for who owns a descriptor.
  Descriptor FolderAgain() const {
    return Descriptor(openat(folder.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }

  /// Looks at what is there now, without following a link: 0 or an errno.
  int Look(struct stat& found) const {
    return fstatat(folder.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
  }
};

/// The name of the hidden file that becomes `name`: the same for every process. At most NAME_MAX bytes, as names are.
std::string HiddenName(const std::string& name);
/// Whether it is one of those.
bool IsHiddenName(const std::string& name);
/// Where the bytes of a file are kept that could not be published: the `number`th try of a name, from 0.
std::string KeptName(const std::string& name, int number);

}  // namespace tidelane
