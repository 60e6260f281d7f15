#include "throttle/inodes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tidelane::throttle {

Inode* Inodes::look_up(int parent, const char* name, struct stat* attr) {
  const int fd = ::openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return nullptr;
  if (::fstatat(fd, "", attr, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
    const int saved = errno;
    ::close(fd);
    errno = saved;
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Inode>& slot = inodes_[{attr->st_dev, attr->st_ino}];
  if (slot) {
    ::close(fd);  // known already: the first descriptor keeps the inode alive
  } else {
    slot = std::make_unique<Inode>(Inode{.fd = fd, .key = {attr->st_dev, attr->st_ino}});
  }
  ++slot->lookups;
  return slot.get();
}

void Inodes::forget(Inode* inode, uint64_t lookups) {
  const std::lock_guard lock(mutex_);
  inode->lookups -= lookups;
  if (inode->lookups > 0) return;
  ::close(inode->fd);
  inodes_.erase(inode->key);
}

}  // namespace tidelane::throttle
