/// \file
/// What the call in progress permits and asks for, as a file needs it. The driver reads it once a callback
/// (CallContext::Current) and passes it down: nothing below asks the thread.
///
/// Invariant: a default-constructed context permits nothing. With it a file obeys flush, unlock and close like the file of
/// any honest driver.
/// Thread safety: a value of the thread that made it, valid as long as the CallScope it came from.
#pragma once

#include "engine/call_scope.h"

namespace tidelane {

class CallContext {
 public:
  CallContext() = default;
  /// Of the calling thread's innermost CallScope; permits nothing where there is none.
  static CallContext Current();

  /// A flush need do nothing: it is the one at the end of HDF5's create and open.
  bool flush_is_open() const { return allows(CallScope::kFlushMayBeSkipped); }
  /// A flush may return before the bytes are stored.
  bool MayFlushEarly(const FileSettings& settings) const {
    return allows(CallScope::kFlushMayReturnEarly) || waits_itself_ ||
           (allows(CallScope::kFlushAsSet) && settings.flush_deferred) ||
           (allows(CallScope::kCloseAsSet) && settings.close_deferred);
  }
  /// A close may return while the file drains.
  bool MayDeferClose(const FileSettings& settings) const {
    return allows(CallScope::kCloseMayBeDeferred) ||
           (allows(CallScope::kCloseAsSet) && settings.close_deferred);
  }
  /// A flush is the first step of a close.
  bool is_close() const { return allows(CallScope::kForClose); }
  /// Whoever flushes early has a request to wait for, or waits by itself.
  bool is_awaited() const { return waits_itself_ || request() != nullptr; }
  /// What is written is to be stored when the call returns.
  bool writes_through() const { return allows(CallScope::kWriteThrough); }
  /// What storage refuses is kept and tried again, and the write succeeds (KeepRefused).
  bool keeps_refused() const { return keeps_refused_; }
  bool hands_out_descriptor() const { return allows(CallScope::kHandOutDescriptor); }
  bool starts_swmr() const { return allows(CallScope::kStartSwmr); }
  // Of files that the ranks of an MPI program share, as CallScope::Permission says.
  bool captures_alone() const { return allows(CallScope::kCaptureAlone); }
  bool captures_together() const { return allows(CallScope::kCaptureTogether); }
  bool reads_alone() const { return allows(CallScope::kReadAlone); }
  bool writes_own_chunk() const { return allows(CallScope::kOwnChunk); }
  bool writes_other_chunk() const { return allows(CallScope::kOtherChunk); }

  /// The call, where a request will wait for what it leaves pending; else nullptr.
  CallScope* request() const { return scope_ != nullptr && scope_->tracks() ? scope_ : nullptr; }
  /// The call; nullptr: there is none.
  CallScope* scope() const { return scope_; }
  /// The settings for files that the call opens; nullptr: the process's.
  const FileSettings* file_settings() const {
    return scope_ == nullptr ? nullptr : scope_->file_settings();
  }

 private:
  bool allows(CallScope::Permission permission) const {
    return scope_ != nullptr && scope_->allows(permission);
  }

  CallScope* scope_ = nullptr;
  bool waits_itself_ = false;
  bool keeps_refused_ = false;
};

}  // namespace tidelane
