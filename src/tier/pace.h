/// \file
/// How far a mover has come with a file, and how fast it may go on.
///
/// Invariant: who waits here for its turn lets go as soon as somebody wants the file.
/// Thread safety: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace tidelane::tier {

class Pace {
 public:
  /// `rate`: bytes a second, of all files together; 0: as fast as it goes.
  explicit Pace(uint64_t rate) : rate_(rate) {}

  /// A file begins. `passed` is called once, when more than so many bytes of it are written.
  void Begin(uint64_t before, std::function<void()> passed);
  /// Until so many bytes may be written. `may_change`: 0 while the file is nobody else's; else what this returns.
  int Await(const std::function<int()>& may_change) const;
  void Wrote(uint64_t bytes);

  /// Of the file that was begun last.
  uint64_t bytes() const { return bytes_; }

 private:
  const uint64_t rate_;
  std::chrono::steady_clock::time_point free_at_;
  uint64_t bytes_ = 0;
  uint64_t before_ = 0;
  std::function<void()> passed_;
};

}  // namespace tidelane::tier
