/// \file
/// Clang thread-safety annotations and the lock types that carry them (GCC sees plain std types).
///
/// Invariant: every field shared between threads is either atomic or marked TL_GUARDED_BY one of
/// these mutexes.
///
/// Thread safety: that is what it is for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define TL_ANNOTATE(x) __attribute__((x))
#else
#define TL_ANNOTATE(x)
#endif

#define TL_CAPABILITY(name) TL_ANNOTATE(capability(name))
#define TL_SCOPED_CAPABILITY TL_ANNOTATE(scoped_lockable)
#define TL_GUARDED_BY(m) TL_ANNOTATE(guarded_by(m))
#define TL_REQUIRES(...) TL_ANNOTATE(requires_capability(__VA_ARGS__))
#define TL_EXCLUDES(...) TL_ANNOTATE(locks_excluded(__VA_ARGS__))
#define TL_ACQUIRE(...) TL_ANNOTATE(acquire_capability(__VA_ARGS__))
#define TL_ACQUIRE_SHARED(...) TL_ANNOTATE(acquire_shared_capability(__VA_ARGS__))
#define TL_RELEASE(...) TL_ANNOTATE(release_capability(__VA_ARGS__))
#define TL_RELEASE_SHARED(...) TL_ANNOTATE(release_shared_capability(__VA_ARGS__))
#define TL_RETURN_CAPABILITY(m) TL_ANNOTATE(lock_returned(m))
#define TL_NO_ANALYSIS TL_ANNOTATE(no_thread_safety_analysis)

namespace tidelane {

class TL_CAPABILITY("mutex") Mutex {
 public:
  void lock() TL_ACQUIRE() { mutex_.lock(); }
  void unlock() TL_RELEASE() { mutex_.unlock(); }
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

class TL_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TL_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() TL_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Held by many at once, or by one alone.
class TL_CAPABILITY("shared_mutex") SharedMutex {
 public:
  void lock() TL_ACQUIRE() { mutex_.lock(); }
  void unlock() TL_RELEASE() { mutex_.unlock(); }
  void lock_shared() TL_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() TL_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class TL_SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) TL_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~SharedLock() TL_RELEASE() { mutex_.unlock_shared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class TL_SCOPED_CAPABILITY ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) TL_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~ExclusiveLock() TL_RELEASE() { mutex_.unlock(); }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

 private:
  SharedMutex& mutex_;
};

/// A condition of the state that a Mutex guards.
class Condition {
 public:
  void Wait(Mutex& mutex) TL_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.native(), std::adopt_lock);
    condition_.wait(held);
    held.release();
  }
  /// False when `deadline` passed first.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline) TL_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.native(), std::adopt_lock);
    const bool in_time = condition_.wait_until(held, deadline) == std::cv_status::no_timeout;
    held.release();
    return in_time;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace tidelane
