/// \file
/// How a process asks another one of this machine for something that only that one has, and gets it while that one's program does
/// whatever it does: a thread of the other process answers.
///
/// The desk is a socket with a name that nobody can guess. While its process holds anything that others may ask for, a thread
/// listens to it; some seconds after the last of it is gone the thread ends, so that it keeps no process from ending, and
/// closes the socket. Both sides look at who the other one is: only processes of one user answer one another.
///
/// Invariants:
///  1. As long as something is held, somebody listens: who could not start a thread does not hold anything.
///  2. Who asks waits as long as the other process lives, and no longer.
/// Thread safety: all functions may be called from any thread, LockForFork and UnlockAfterFork around a fork. An Inquiry is one
/// thread's. Lock order: a file's lock, then the desk's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/annotations.h"

namespace tidelane {

class InquiryDesk {
 public:
  /// Sends so many bytes to who has asked; false: nobody is there any more.
  using Send = std::function<bool(const void*, size_t)>;
  /// May throw std::bad_alloc: then who asks learns that there is no answer.
  using Answer = std::function<void(std::span<const uint64_t> question, const Send& send)>;

  static InquiryDesk& Get();  ///< this process's; it lives for ever
  /// What others ask it by; 0: there is none.
  uint64_t number() TL_EXCLUDES(mutex_);
  /// A number for questions that this answers, for as long as `whose` is there.
  uint64_t Add(std::weak_ptr<void> whose, Answer answer) TL_EXCLUDES(mutex_);

  /// Something is held until as many calls of LetGo as of Hold. False: nobody could answer for it, and it does not count.
  bool Hold() TL_EXCLUDES(mutex_);
  void LetGo() TL_EXCLUDES(mutex_);

  /// The child has no desk, and no thread, of its parent's.
  void LockForFork() TL_NO_ANALYSIS { mutex_.lock(); }
  void UnlockAfterFork(bool child) TL_NO_ANALYSIS;

 private:
  struct Subject {
    uint64_t number;
    std::weak_ptr<void> whose;
    Answer answer;
  };
  InquiryDesk() = default;
  bool StartListening() TL_REQUIRES(mutex_);
  void Listen() TL_EXCLUDES(mutex_);
  bool MayEnd() TL_EXCLUDES(mutex_);
  void EndListening() TL_REQUIRES(mutex_);
  void AnswerOn(int connection) TL_EXCLUDES(mutex_);

  Mutex mutex_;
  uint64_t number_ TL_GUARDED_BY(mutex_) = 0;
  uint64_t subject_numbers_ TL_GUARDED_BY(mutex_) = 0;
  int socket_ TL_GUARDED_BY(mutex_) = -1;  // while somebody listens
  bool listening_ TL_GUARDED_BY(mutex_) = false;
  uint64_t held_ TL_GUARDED_BY(mutex_) = 0;
  bool recently_held_ TL_GUARDED_BY(mutex_) = false;
  std::vector<Subject> subjects_ TL_GUARDED_BY(mutex_);
};

/// A question that was put to a desk; its answer is read from it.
class Inquiry {
 public:
  /// nullopt: there is no such desk, or it is somebody else's.
  static std::optional<Inquiry> Ask(uint64_t desk, uint64_t subject,
                                    std::span<const uint64_t> question);
  Inquiry(Inquiry&& other) noexcept;
  ~Inquiry();
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;
  Inquiry& operator=(Inquiry&&) = delete;

  /// False: so many bytes do not come.
  bool Read(void* to, size_t bytes);

 private:
  explicit Inquiry(int connection) : connection_(connection) {}

  int connection_;
};

}  // namespace tidelane
