/// \file
/// How a process that waits for bytes tells the one that holds them, which would otherwise let them linger: it rings that one's bell.
///
/// The bell is a socket. While the process holds bytes a thread listens to it, which has lanes store what is awaited. It ends when
/// nothing was held for some seconds, so that it keeps no process from ending, and closes the socket. A ring that nobody hears,
/// or that comes from a stranger, does no harm: what is held is stored after its linger in any case, or before.
///
/// Invariant: as long as something is held, somebody listens, unless the system refuses a socket or a thread.
/// Thread safety: all functions may be called from any thread, LockForFork and UnlockAfterFork around a fork. Lock order: a file's
/// lock, then the bell's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/annotations.h"

namespace tidelane {

class Bell {
 public:
  /// This process's; it lives for ever.
  static Bell& Get();
  /// What others ring it by; 0: there is none.
  uint64_t number() TL_EXCLUDES(mutex_);
  /// Another process's.
  static void Ring(uint64_t number);

  /// What is done when it rings, for as long as `whose` is there.
  void Add(std::weak_ptr<void> whose, std::function<void()> answer) TL_EXCLUDES(mutex_);
  /// Bytes are held, until as many calls of LetGo as of Hold.
  void Hold() TL_EXCLUDES(mutex_);
  void LetGo() TL_EXCLUDES(mutex_);

  /// The child has no bell, and no thread, of its parent's.
  void LockForFork() TL_NO_ANALYSIS { mutex_.lock(); }
  void UnlockAfterFork(bool child) TL_NO_ANALYSIS;

 private:
  struct Answer {
    std::weak_ptr<void> whose;
    std::function<void()> answer;
  };
  Bell() = default;
  void StartListening() TL_REQUIRES(mutex_);
  void Listen() TL_EXCLUDES(mutex_);
  bool MayEnd() TL_EXCLUDES(mutex_);
  void EndListening() TL_REQUIRES(mutex_);
  void AnswerAll() TL_EXCLUDES(mutex_);

  Mutex mutex_;
  uint64_t number_ TL_GUARDED_BY(mutex_) = 0;
  int socket_ TL_GUARDED_BY(mutex_) = -1;  // while somebody listens
  bool listening_ TL_GUARDED_BY(mutex_) = false;
  uint64_t held_ TL_GUARDED_BY(mutex_) = 0;
  bool recently_held_ TL_GUARDED_BY(mutex_) = false;
  std::vector<Answer> answers_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane
