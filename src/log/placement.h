/// \file
/// Decides where the bytes go that are written to a file with a log: straight to the file, or to the log. When the log's place has no room for
/// bytes that the file may not have yet, the log moves to its next place, for good.
///
/// Invariant: bytes that a commit has are not written in the file itself before that commit is there as a whole.
/// Thread safety: all functions may be called from any thread; calls on overlapping bytes are ordered by the caller, and nothing may be on its way
/// to storage during Commit and Finish. Lock order: place, then the log's.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/annotations.h"
#include "log/commit_log.h"
#include "log/log_parts.h"
#include "log/marked_file.h"
#include "store/store.h"

namespace tidelane::log {

/// Functions return 0 or an errno.
class Placement {
 public:
  Placement(MarkedFile& file, LogParts& parts);

  CommitLog& log() { return log_; }
  const CommitLog& log() const { return log_; }

  /// Of the file, with all that was written.
  uint64_t size() const { return size_.load(std::memory_order_acquire); }
  /// Whatever was known of it, it is so long.
  void AssumeSize(uint64_t size) { size_.store(size, std::memory_order_release); }
  /// It reaches to `end` at least.
  void RaiseSize(uint64_t end);

  int Write(Run& run, std::span<const Part> parts) TL_EXCLUDES(place_mutex_);
  /// Of a file that has no log any more, or bytes that no commit has.
  int WriteStraight(Run& run, std::span<const Part> parts);
  int SetSize(uint64_t size) TL_EXCLUDES(place_mutex_);

  int Commit(Committing when) TL_EXCLUDES(place_mutex_);
  /// A last commit; and the file by itself is it, or, if it `may_stay` there and lies on a faster place, the log `stays`.
  int Finish(bool may_stay, bool& stays) TL_EXCLUDES(place_mutex_);

 private:
  template <typename Call>
  int WithRoom(Call call) TL_EXCLUDES(place_mutex_);
  int MakeRoom(bool was_full) TL_EXCLUDES(place_mutex_);
  int GoToNextPlace() TL_REQUIRES(place_mutex_);
  int WriteAgain() TL_REQUIRES(place_mutex_);
  int WriteNow(Run& run, std::span<const Part> parts);
  int SetSizeNow(uint64_t size);
  bool GoesToLog(uint64_t begin, uint64_t end, uint64_t taken) const;
  bool IsLogged(uint64_t begin, uint64_t end) const;

  MarkedFile& file_;
  LogParts& parts_;
  std::atomic<uint64_t> size_;
  CommitLog log_;
  SharedMutex place_mutex_;        // alone: the log's place changes, and nobody writes
  std::atomic<bool> full_{false};  // storage has said so, of the log's place
  bool behind_ TL_GUARDED_BY(place_mutex_) = false;  // log_.left_behind() is to be written again
};

}  // namespace tidelane::log
