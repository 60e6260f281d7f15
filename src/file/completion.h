/// \file
/// What a request waits for: the bytes that one call captured, in whatever files it touched, and those that it reads
/// after it has returned.
///
/// Every tracked call (a VOL call with a request) opens an *epoch* on each file it writes; the file counts the extents
/// of each epoch that are not yet stored. A completion is done when each of its epochs is stored (or failed), not when
/// the whole file is: a failure belongs to the requests whose extents failed.
///
/// Invariant: once Poll or Wait returned kDone or kFailed, it stays so.
/// Thread safety: one completion may be polled and waited for from several threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/annotations.h"
#include "base/status.h"

namespace tidelane {

class EpochSource;
class ParallelRead;

class Completion {
 public:
  enum class State { kPending, kDone, kFailed };

  /// One part: an epoch of a file's; `and_older` makes it a barrier that waits for everything written before as well.
  struct Part {
    std::shared_ptr<EpochSource> source;
    uint64_t epoch;
    bool and_older;
  };

  explicit Completion(std::vector<Part> parts,
                      std::vector<std::shared_ptr<ParallelRead>> reads = {});
  ~Completion();
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  /// Starts the work now (no lingering for neighbours) and says how it stands.
  State Poll() TL_EXCLUDES(mutex_);
  /// Waits at most `timeout_ns`; UINT64_MAX: for ever. 0 is Poll.
  State Wait(uint64_t timeout_ns) TL_EXCLUDES(mutex_);
  /// Whether it may be done, or gets on only by being asked: a look at what was begun last. Of many reads Poll looks at each.
  bool LooksDone() const TL_EXCLUDES(mutex_);
  /// Why it failed; ok unless kFailed was returned.
  Status error() const TL_EXCLUDES(mutex_);

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  void WaitForParts(uint64_t timeout_ns, Deadline deadline) TL_REQUIRES(mutex_);
  void WaitForReads(Deadline deadline) TL_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::vector<Part> parts_
      TL_GUARDED_BY(mutex_);  // finished parts are dropped: a file must not live on in requests
  std::vector<std::shared_ptr<ParallelRead>> reads_ TL_GUARDED_BY(mutex_);  // likewise
  Status error_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane
