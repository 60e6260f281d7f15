/// \file
/// What of one file could not be stored, and who knows of it.
///
/// Invariant: a failure is *unreported* from Note until a blocking call has said so; what is lost stays lost.
/// Thread safety: none but for AnyUnreported; guarded by the file's mutex.
#pragma once

#include <atomic>
#include <utility>

#include "base/status.h"

namespace tidelane {

class FailureState {
 public:
  FailureState() = default;
  ~FailureState() { MarkReported(); }
  FailureState(const FailureState&) = delete;
  FailureState& operator=(const FailureState&) = delete;

  /// Whether something failed in the background, of any file, since a blocking call last said so.
  static bool AnyUnreported() { return unreported_files_.load(std::memory_order_relaxed) != 0; }

  /// Something failed, and may be tried again.
  void Note(Status error);
  /// Likewise: the file could not be made as long as it is to be.
  void NoteNotExtended(Status error) {
    extend_failed_ = true;
    Note(std::move(error));
  }
  /// Bytes are gone for good: no flush and no close succeeds any more.
  void NoteLost(const Status& error) { lost_ = error; }
  /// Its device could not be closed; told by whoever closes it.
  void NoteNotClosed(const Status& error) {
    close_failed_ = true;
    error_ = error;
  }
  /// What failed is tried again.
  void Retry() {
    extend_failed_ = false;
    error_ = Status();
  }
  /// Nothing is pending any more, so it need not be longer than it is.
  void Drained() { extend_failed_ = false; }
  /// A blocking call says so.
  void MarkReported() {
    if (std::exchange(unreported_, false))
      unreported_files_.fetch_sub(1, std::memory_order_relaxed);
  }

  bool unreported() const { return unreported_; }
  bool extend_failed() const { return extend_failed_; }
  bool close_failed() const { return close_failed_; }
  /// The newest failure, until a retry.
  const Status& error() const { return error_; }
  const Status& lost() const { return lost_; }
  /// How the close of the device ended.
  Status closed() const { return close_failed_ ? error_ : Status(); }

 private:
  static std::atomic<unsigned> unreported_files_;

  Status error_;
  Status lost_;
  bool unreported_ = false;
  bool extend_failed_ = false;  // error_ says how
  bool close_failed_ = false;
};

}  // namespace tidelane
