/// \file
/// How far a mover has come with a file, and how fast it may go on.
///
/// Invariant: who waits here for its turn lets go as soon as somebody wants the file.
/// Thread safety: a Rate: any thread; a Pace: one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/annotations.h"

namespace tidelane::tier {

/// Bytes a second, of all files together.
class Rate {
 public:
  /// 0: as fast as it goes.
  explicit Rate(uint64_t bytes) : bytes_(bytes) {}

  /// How long until more may be written; not above 0: at once.
  std::chrono::nanoseconds Left() const TL_EXCLUDES(mutex_);
  void Wrote(uint64_t bytes) TL_EXCLUDES(mutex_);

 private:
  const uint64_t bytes_;
  mutable Mutex mutex_;
  std::chrono::steady_clock::time_point free_at_ TL_GUARDED_BY(mutex_);
};

class Pace {
 public:
  explicit Pace(Rate& rate) : rate_(rate) {}

  /// A file begins. `passed` is called once, when more than so many bytes of it are written.
  void Begin(uint64_t before, std::function<void()> passed);
  /// Until so many bytes may be written. `may_change`: 0 while the file is nobody else's; else what this returns.
  int Await(const std::function<int()>& may_change);
  void Wrote(uint64_t bytes);

  // Of the file that was begun last.

  uint64_t bytes() const { return bytes_; }
  /// Whether somebody has come so far as to write to it.
  bool writes() const { return writes_; }

 private:
  Rate& rate_;
  uint64_t bytes_ = 0;
  bool writes_ = false;
  uint64_t before_ = 0;
  std::function<void()> passed_;
};

}  // namespace tidelane::tier
