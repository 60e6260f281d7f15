/// \file
/// How one file's writes go out, as every write needs to know it: without the file's lock.
///
/// Invariant: a file that is written through stays so, and its reason is known before it is.
/// Thread safety: questions from any thread; changes are the program's side's.
#pragma once

#include <atomic>

#include "base/config.h"
#include "base/counters.h"

namespace tidelane {

class WriteMode {
 public:
  explicit WriteMode(Mode mode) : mode_(mode) {}

  void Set(const FileSettings& settings) {
    implicit_sync_.store(settings.implicit_sync, std::memory_order_relaxed);
    mode_.store(settings.mode, std::memory_order_relaxed);
  }
  /// From now on everything is written through. False: it was already.
  bool SetThrough(Fallback reason) {
    if (through()) return false;
    reason_.store(reason, std::memory_order_relaxed);
    through_.store(true, std::memory_order_release);
    return true;
  }

  bool through() const { return through_.load(std::memory_order_acquire); }
  /// Why, where it is.
  Fallback reason() const { return reason_.load(std::memory_order_relaxed); }
  /// Calls without a request are synchronous.
  bool implicit_sync() const { return implicit_sync_.load(std::memory_order_relaxed); }
  Mode mode() const { return through() ? Mode::kSync : mode_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> through_{false};
  std::atomic<bool> implicit_sync_{false};
  std::atomic<Mode> mode_;
  std::atomic<Fallback> reason_{};
};

}  // namespace tidelane
