// The files the kernel knows about: each is an O_PATH descriptor in the backing directory.
//
// Holding a descriptor, not a path, is what makes rename, unlink of an open file and fstat after
// unlink behave as on any local file system. The inode numbers shown to programs are the backing
// file system's own, so they are stable and hard links are recognised.
//
// Invariant: a (device, inode) pair has at most one Inode, alive while the kernel holds lookups.
// Thread safety: every member function may be called from any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace tidelane::throttle {

struct Inode {
  int fd = -1;
  std::pair<dev_t, ino_t> key;
  uint64_t lookups = 0;  // guarded by Inodes::mutex_
};

class Inodes {
 public:
  // Takes one more lookup on `name` in the directory `parent`; fills `attr`.
  // Returns null with errno set when there is no such name.
  Inode* look_up(int parent, const char* name, struct stat* attr);
  void forget(Inode* inode, uint64_t lookups);

 private:
  std::mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, std::unique_ptr<Inode>> inodes_;
};

}  // namespace tidelane::throttle
