/// \file
/// Stores what one file's backlog has: lanes take runs of it, and whoever waits helps them.
///
/// It owns the file's mutex and lends it together with the backlog, to those who capture, close, or answer requests. When lanes come
/// and what they do is in drainer.cc; who waits for them, and how, in drain_wait.cc.
///
/// Invariant: while something is worthwhile to be stored a lane is scheduled, or somebody stores here; where the program stores what it
/// gathers (WritePolicy::ProgramStores), its next write or wait does.
/// Thread safety: functions with `Locked` in their names need the mutex, and may release it while they wait; all others may be called from
/// any thread without it. Lock order: mutex, then lanes, then arena. Storage is asked with no lock held.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/activity.h"
#include "base/annotations.h"
#include "base/status.h"
#include "extent/extent.h"
#include "file/backlog.h"
#include "file/file_context.h"
#include "lane/lanes.h"

namespace tidelane {

/// A deadline that does not come.
inline constexpr auto kForEver = std::chrono::steady_clock::time_point::max();

class Drainer final : public LaneTask {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  explicit Drainer(FileContext& file) : file_(file), backlog_(file) {}

  Mutex& mutex() const TL_RETURN_CAPABILITY(mutex_) { return mutex_; }
  Backlog& backlog() TL_REQUIRES(mutex_) { return backlog_; }
  const Backlog& backlog() const TL_REQUIRES(mutex_) { return backlog_; }

  void RunOne() override TL_EXCLUDES(mutex_);

  // When lanes come ---------------------------------------------------------------------------------------------

  /// A lane comes as soon as there is one.
  void ScheduleLocked() TL_REQUIRES(mutex_);
  /// Something was captured, or a reason to wait is gone: a lane comes if that is worth it by now, or later.
  void MaybeScheduleLocked() TL_REQUIRES(mutex_);
  /// Somebody wants what is queued, or its memory.
  void HurryLocked() TL_REQUIRES(mutex_);
  /// Whether the program, which stores what it gathers, has gathered enough (StoreInline).
  bool ShouldStoreInlineLocked() const TL_REQUIRES(mutex_);
  void StoreInline() TL_EXCLUDES(mutex_);

  // Who waits ---------------------------------------------------------------------------------------------------

  /// How to wait for lanes: doing their next piece of work where that is quicker than waking one; making sure that one comes;
  /// or for what is on its way already.
  enum class By : uint8_t { kHelping, kKicking, kSleeping };
  /// Until `done()`, asked once a turn under the lock. False: too late.
  template <typename Done>
  bool AwaitLocked(By by, Deadline deadline, Done done) TL_REQUIRES(mutex_) {
    bool in_time = true;
    bool is_done = done();
    while (!is_done && in_time) {
      if (by == By::kHelping) {
        in_time = StoreOrWaitLocked(deadline);
      } else if (by == By::kSleeping || ScheduleOrStoreLocked()) {
        in_time = WaitLocked(deadline);
      }
      is_done = done();
    }
    if (by == By::kHelping) HandOverLocked();
    return is_done;
  }
  /// Until something changed. False: too late.
  bool WaitLocked(Deadline deadline) TL_REQUIRES(mutex_);
  /// For those who wait.
  void NotifyLocked() TL_REQUIRES(mutex_) { changed_.NotifyAll(); }
  /// Until nobody stores bytes of [begin, end), nor changes storage's size.
  void AwaitInFlightLocked(uint64_t begin, uint64_t end) TL_REQUIRES(mutex_);
  /// Until a superblock that is to be stored before anything else is, or cannot be.
  void AwaitFirstSuperblockLocked() TL_REQUIRES(mutex_);

  /// Waits until everything is stored; retries what failed first. `why` says on whose account.
  Status Drain(Wait why) TL_EXCLUDES(mutex_);
  /// The same, but no longer than until `deadline`; `drained`: it came to that.
  Status DrainUntil(Wait why, Deadline deadline, bool& drained) TL_EXCLUDES(mutex_);
  /// Starts to store everything, and tries again what failed. Never waits.
  void StartLocked() TL_REQUIRES(mutex_);
  /// For programs that ask about a file: whether everything captured is stored. Starts the work; never waits.
  Status Test(bool& stored) TL_EXCLUDES(mutex_);
  /// If a write of this file failed in the background, and nobody was told: tries again, and says how that went. For calls that change
  /// the file.
  Status RetryAndReport() TL_EXCLUDES(mutex_);

  // Questions ---------------------------------------------------------------------------------------------------

  /// Whether nothing is pending, a truncation included.
  bool drained() const TL_EXCLUDES(mutex_);
  /// Nothing more can be stored without a retry.
  bool stuck() const TL_EXCLUDES(mutex_);
  /// Something could not be stored at the last attempt.
  bool failing() const TL_EXCLUDES(mutex_);
  /// Whether bytes of [address, address + size) are pending.
  bool HasPending(uint64_t address, uint64_t size) const TL_EXCLUDES(mutex_);
  /// What was captured since lanes last stored some of it is counted now, for who reads the counters.
  void CountCaptured() TL_EXCLUDES(mutex_);

  /// A lock that waits for a drained file becomes what it is to be.
  void DowngradeIfDrained() TL_EXCLUDES(mutex_);
  /// fork: hold the lock across it.
  void LockForFork() TL_NO_ANALYSIS;
  void UnlockAfterFork(bool child) TL_NO_ANALYSIS;

 private:
  enum class Here : bool { kIfQuick, kAnyway };
  // Stores a run on this thread, if storage takes a write for a copy and nobody else stores, or anyway. False: it did not.
  bool StoreHereLocked(Here when) TL_REQUIRES(mutex_);
  // Asks for a lane, for which there may be no memory: then this thread has done a lane's work once. False: that was so.
  bool ScheduleOrStoreLocked() TL_REQUIRES(mutex_);
  // One step of a wait for lanes: until something changed, or by doing their next piece of work. False: too late.
  bool StoreOrWaitLocked(Deadline deadline) TL_REQUIRES(mutex_);
  // A wait is over: while it stored, lanes were told of nothing, and take over what is left.
  void HandOverLocked() TL_REQUIRES(mutex_);
  void LingerLocked(std::chrono::steady_clock::duration linger) TL_REQUIRES(mutex_);
  void StoreOne() noexcept TL_EXCLUDES(mutex_);
  void StoreNext() TL_EXCLUDES(mutex_);
  void AfterRun(Run& run, int error) TL_EXCLUDES(mutex_);
  void GoOnLocked(const Run& run, int error) TL_REQUIRES(mutex_);
  void NoMemoryLocked() TL_REQUIRES(mutex_);
  void TruncateUp() TL_EXCLUDES(mutex_);
  void Finish() TL_EXCLUDES(mutex_);

  FileContext& file_;
  mutable Mutex mutex_;
  Condition changed_;
  Backlog backlog_ TL_GUARDED_BY(mutex_);
  bool scheduled_ TL_GUARDED_BY(mutex_) = false;
  // Who waits does the lanes' work: they need not come before it hands over.
  bool storing_here_ TL_GUARDED_BY(mutex_) = false;
};

}  // namespace tidelane
