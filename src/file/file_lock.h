/// \file
/// Who else may see an open file: the lock that we hold on it, and whether the program has its descriptor.
///
/// A lock belongs to the device that it was taken through, and ends with it. FileLock can be moved, so that whoever goes on with a
/// closed file can hold it (what is left behind holds nothing, and Release does nothing there); nobody does yet.
///
/// Invariant: nobody else writes the file while `held`, nor looks at it while `exclusive`, but through a descriptor that was
/// handed out.
/// Thread safety: questions from any thread; Take, Release and moves belong to one caller at a time; Downgrade may come from
/// any thread beside them. The mutex is a leaf; a request for a lock never blocks.
#pragma once

#include <atomic>
#include <memory>

#include "base/annotations.h"
#include "device/device.h"

namespace tidelane {

class FileLock {
 public:
  explicit FileLock(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  FileLock(FileLock&& other) noexcept TL_NO_ANALYSIS;

  /// Takes it, or changes what it is: 0 or an errno. A lock that is exclusive becomes a shared one only when nothing is
  /// pending (`drained`): until Downgrade nobody else may look.
  int Take(bool exclusive, bool drained) TL_EXCLUDES(mutex_);
  /// Gives it back: 0 or an errno.
  int Release() TL_EXCLUDES(mutex_);
  /// Whether Downgrade has something to do.
  bool awaits_downgrade() const { return awaits_downgrade_.load(std::memory_order_acquire); }
  /// Nothing is pending any more.
  void Downgrade() TL_EXCLUDES(mutex_);
  /// The program gets the descriptor, and may do with it what it wants.
  void HandOut() { handed_out_.store(true, std::memory_order_relaxed); }

  bool held() const { return held_.load(std::memory_order_relaxed); }
  /// Nobody else can look at the file or change it.
  bool alone() const {
    return exclusive_.load(std::memory_order_relaxed) &&
           !handed_out_.load(std::memory_order_relaxed);
  }

 private:
  std::shared_ptr<Device> device_;
  std::atomic<bool> held_{false};
  std::atomic<bool> exclusive_{false};
  std::atomic<bool> handed_out_{false};
  std::atomic<bool> awaits_downgrade_{false};
  Mutex mutex_;  // of changes
};

}  // namespace tidelane
