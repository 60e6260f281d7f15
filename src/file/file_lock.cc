#include "file/file_lock.h"

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "device/claim.h"

namespace tidelane {
namespace {
constexpr auto kFirstPause = std::chrono::microseconds(100);
constexpr auto kLastPause = std::chrono::microseconds(1000);
}  // namespace

FileLock::FileLock(FileLock&& other) noexcept
    : device_(std::move(other.device_)),
      held_(other.held_.exchange(false)),
      exclusive_(other.exclusive_.exchange(false)),
      handed_out_(other.handed_out_.load()),
      awaits_downgrade_(other.awaits_downgrade_.exchange(false)) {}

int FileLock::Take(bool exclusive, bool drained) {
  MutexLock lock(mutex_);
  if (exclusive_.load(std::memory_order_relaxed)) {  // of an adopted file: its writer's
    const bool later = !exclusive && !drained;
    awaits_downgrade_.store(later, std::memory_order_release);
    if (exclusive || later) return 0;
  }
  int error = device_->Lock(exclusive);
  // Of a mover, which has it for as long as a close that waits would have taken.
  while (error == EWOULDBLOCK && AwaitMove(*device_->descriptor()))
    error = device_->Lock(exclusive);
  // One that ends gives up this lock last.
  for (auto pause = kFirstPause; error == EWOULDBLOCK && pause < kLastPause; pause *= 2) {
    std::this_thread::sleep_for(pause);
    error = device_->Lock(exclusive);
  }
  if (error != 0) return error;
  exclusive_.store(exclusive, std::memory_order_relaxed);
  held_.store(true, std::memory_order_relaxed);
  return 0;
}

int FileLock::Release() {
  MutexLock lock(mutex_);
  awaits_downgrade_.store(false, std::memory_order_relaxed);
  held_.store(false, std::memory_order_relaxed);
  exclusive_.store(false, std::memory_order_relaxed);
  return device_ == nullptr ? 0 : device_->Unlock();
}

void FileLock::Downgrade() {
  MutexLock lock(mutex_);
  if (!awaits_downgrade_.exchange(false, std::memory_order_relaxed)) return;
  exclusive_.store(false, std::memory_order_relaxed);
  (void)device_->Lock(false);  // of one's own: nobody can be in the way
}

}  // namespace tidelane
