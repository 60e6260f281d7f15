/// \file
/// Worker lanes: a few threads that do files' background I/O. They know nothing of HDF5 and never need its lock, so any
/// thread may wait for them while holding it: no deadlock by construction.
///
/// A task is queued when it has something to do now (Schedule) or soon (ScheduleAfter: small writes linger for
/// neighbours). A lane calls RunOne, which does one bounded piece of work and schedules its task again if there is more,
/// so several lanes share one busy task and several busy tasks share the lanes in turn.
///
/// Tasks that only compute (filters) have a queue of their own, so that storage does not stand still behind them: a lane takes one of
/// them when there is nothing else to do, or when half of the lanes are busy with something else. They may have more threads than all others
/// together (SetMostComputing): processors are many, and storage is one.
///
/// A thread starts when a task finds none idle, and ends when it has been idle for some seconds (the last one when there is no more idle
/// work to come): a process whose last thread has ended
/// ends, and none of ours may keep it. Threads widen a one-core affinity mask that a launcher imposed. They block all signals, which are
/// the program's, until they find that no thread of the program is left to receive any.
///
/// Without memory a lane tries again a moment later.
///
/// Invariant: the queue holds a task at most once per Schedule; it is as long as there are files with something to do.
/// Thread safety: all functions may be called from any thread. Lanes are never joined; see Stop for tests.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/annotations.h"

namespace tidelane {

class LaneTask {
 public:
  virtual ~LaneTask() = default;
  /// One bounded piece of work.
  virtual void RunOne() = 0;
  /// Whether it only computes, or mostly does.
  virtual bool computes() const { return false; }
};

class Lanes {
 public:
  using Clock = std::chrono::steady_clock;

  /// Up to `count` threads, started lazily, for everything. With 0 nothing runs by itself: a test or simulator calls RunQueued.
  explicit Lanes(unsigned count, Clock::duration longest_idle = std::chrono::seconds(5))
      : count_(count), longest_idle_(longest_idle), threads_(count) {}
  ~Lanes();  // only tests destroy lanes; stops the threads
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  void Schedule(std::shared_ptr<LaneTask> task) TL_EXCLUDES(mutex_);
  void ScheduleAfter(std::shared_ptr<LaneTask> task, Clock::duration delay) TL_EXCLUDES(mutex_);

  /// Runs one queued task on the calling thread; false when the queue is empty. Lingering tasks count as due.
  bool RunQueued() TL_EXCLUDES(mutex_);

  /// What idle lanes do before they sleep, grow and trim the arena: returns after how long one of them is to do it again, which may be
  /// none (zero), or for ever (max). The last lane stays so long. Set before the first task.
  void SetIdleWork(std::function<Clock::duration()> work) { idle_work_ = std::move(work); }

  /// Asked once, when tasks that only compute would first have more threads than the lanes are: how many threads there may be then.
  /// Set before the first task.
  void SetMostComputing(std::function<unsigned()> most) { most_computing_ = std::move(most); }

  /// So much nicer than the program are lanes: processors that both want are the program's first. Set before the first task.
  void SetNiceness(int more) { niceness_ = more; }

  /// Whether lanes work by themselves. If not (or if the system refuses threads), whoever waits calls RunQueued.
  bool threaded() const { return count_ != 0 && !refused_.load(std::memory_order_relaxed); }

  /// While the process exits, on whichever thread, its lanes stay: were the last thread to end, it would exit again.
  void Stay(bool stay) TL_EXCLUDES(mutex_);

  /// Nothing queued or running. What lingers may do so for long: who needs its work now schedules it.
  bool idle() TL_EXCLUDES(mutex_);

  /// The program itself reads storage while such an object lives: lanes hold their next write back for a moment.
  class ForegroundRead {
   public:
    explicit ForegroundRead(Lanes& lanes);
    ~ForegroundRead();
    ForegroundRead(const ForegroundRead&) = delete;
    ForegroundRead& operator=(const ForegroundRead&) = delete;

   private:
    Lanes& lanes_;
  };
  /// Called by tasks before a background write: waits for foreground reads, but never for long.
  void YieldToReads() TL_EXCLUDES(mutex_);

  /// Before fork, and before any lock is taken for it: waits until every lane is between two tasks, and keeps it there. A
  /// lane inside an allocator that does not prepare for fork (the sanitizers' do not) would leave the child its locks.
  /// No lane starts before Resume.
  void Pause() TL_EXCLUDES(mutex_);
  /// In the parent, after it.
  void Resume() TL_EXCLUDES(mutex_);
  void LockForFork() TL_NO_ANALYSIS { mutex_.lock(); }
  void UnlockAfterFork() TL_NO_ANALYSIS { mutex_.unlock(); }
  /// In the child: the threads are gone; the next task starts new ones. Call with the lock held by LockForFork.
  void ForgetThreadsAfterFork() TL_NO_ANALYSIS;

 private:
  struct Lingering {
    Clock::time_point due;
    std::shared_ptr<LaneTask> task;
  };

  void StartThread() TL_REQUIRES(mutex_);
  void WakeOne() TL_REQUIRES(mutex_);
  bool MayStore() const TL_REQUIRES(mutex_) { return others_ < count_; }
  /// Whether a lane would find something to do.
  bool Takeable() const TL_REQUIRES(mutex_) {
    return !computing_.empty() || (!ready_.empty() && MayStore());
  }
  void AllowMoreThreads() TL_REQUIRES(mutex_);
  void ThreadMain(unsigned number) TL_EXCLUDES(mutex_);
  std::shared_ptr<LaneTask> Next(unsigned number) TL_EXCLUDES(mutex_);
  bool Idle(Clock::time_point due) TL_REQUIRES(mutex_);
  Clock::time_point DoIdleWork() TL_REQUIRES(mutex_);
  unsigned alive() const TL_REQUIRES(mutex_);
  void CollectDue(Clock::time_point now) TL_REQUIRES(mutex_);
  bool OthersLinger(const LaneTask& task) const TL_REQUIRES(mutex_);
  bool AnyReady() const TL_REQUIRES(mutex_) { return !ready_.empty() || !computing_.empty(); }
  std::shared_ptr<LaneTask> TakeReady() TL_REQUIRES(mutex_);

  const unsigned count_;
  const Clock::duration longest_idle_;
  std::function<Clock::duration()> idle_work_;
  std::function<unsigned()> most_computing_;  // until it was asked
  int niceness_ = 0;
  std::atomic<bool> refused_{false};  // the system gave us no thread
  std::atomic<unsigned> foreground_reads_{0};
  std::atomic<unsigned> yielding_{0};
  Mutex mutex_;
  Condition work_;
  Condition reads_done_;
  Condition parked_;
  std::deque<std::shared_ptr<LaneTask>> ready_ TL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<LaneTask>> computing_ TL_GUARDED_BY(mutex_);  // ready, and computes
  unsigned others_ TL_GUARDED_BY(mutex_) = 0;  // tasks being run that do not only compute
  std::vector<Lingering> lingering_ TL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ TL_GUARDED_BY(mutex_);  // by number; empty ones do not run
  bool waking_ TL_GUARDED_BY(mutex_) = false;  // one that was woken, or started, has not looked yet
  bool stay_ TL_GUARDED_BY(mutex_) = false;
  unsigned running_ TL_GUARDED_BY(mutex_) = 0;  // lanes that are not between two tasks
  bool no_more_ TL_GUARDED_BY(mutex_) = false;  // the system refused a thread
  bool stopping_ TL_GUARDED_BY(mutex_) = false;
  unsigned paused_ TL_GUARDED_BY(mutex_) = 0;  // how many forks are under way
  void TaskDone() TL_REQUIRES(mutex_);
  void Run(std::shared_ptr<LaneTask> task) TL_EXCLUDES(mutex_);
};

}  // namespace tidelane
