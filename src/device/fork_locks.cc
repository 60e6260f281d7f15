#include "device/fork_locks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace tidelane {
namespace {

void OpenAgain(int fd) {
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd);
  const int own = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (own < 0) return;
  static_cast<void>(dup3(own, fd, O_CLOEXEC));
  close(own);
}

}  // namespace

ForkLocks& ForkLocks::Get() {
  static auto* const all = new ForkLocks;  // never destroyed: lanes may close files late
  return *all;
}

void ForkLocks::Add(int fd) {
  if (fd < 0) return;
  MutexLock lock(mutex_);
  if (std::ranges::count(descriptors_, fd) == 0) descriptors_.push_back(fd);
  count_.store(descriptors_.size(), std::memory_order_release);
}

void ForkLocks::Remove(int fd) {
  if (count_.load(std::memory_order_acquire) == 0) return;
  MutexLock lock(mutex_);
  std::erase(descriptors_, fd);
  count_.store(descriptors_.size(), std::memory_order_release);
}

// A grandchild has what this child has: nothing that was its grandparent's.
void ForkLocks::UnlockAfterFork(bool child) {
  if (child) {
    for (const int fd : descriptors_) OpenAgain(fd);
    descriptors_.clear();
    count_.store(0, std::memory_order_release);
  }
  mutex_.unlock();
}

}  // namespace tidelane
