/// \file
/// Request tokens: what H5ES* waits for.
///
/// A request settles when its call's bytes are stored or have failed (file/completion.h).
/// Requests of one libhdf5 settle in the order in which they were issued, whatever order storage
/// answers in: HDF5's event set loses operations when the last of its list is removed first (its
/// list's tail is not updated). For the same reason nothing is reported done in a pass over an event
/// set in which something older was reported pending, even if storage finished both in between.
///
/// Invariants:
///  1. A request in the queue is unsettled, and everything issued after it is unsettled, too.
///  2. HDF5 holds a reference until free, the queue until settled, a wait while it lasts. HDF5
///  never
///     frees the token of an operation that it could not insert into a failed event set: that one
///     stays, a few bytes.
/// Thread safety: used under HDF5's lock. Lanes never touch a request, only its Completion.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/status.h"
#include "file/completion.h"
#include "h5/owned_id.h"

namespace tidelane::vol {

class RequestQueue;

/// What may make good a request that failed, before anybody is told.
class SecondTry {
 public:
  virtual ~SecondTry() = default;
  /// Whether it did. If not, `stack` may be what there is to say instead of the request's own failure.
  virtual bool Run(h5::OwnedId& stack) = 0;
};

/// A part of a request that begins, or goes on, under HDF5's lock only (vol/chunk_batch.h).
class DeferredPart {
 public:
  virtual ~DeferredPart() = default;
  /// As Completion's. 0: does what can be done at once.
  virtual Completion::State Wait(uint64_t timeout_ns) = 0;
  virtual Status error() const = 0;
};

class Request {
 public:
  /// `completion` is null when nothing was left to wait for.
  explicit Request(std::shared_ptr<Completion> completion,
                   std::unique_ptr<DeferredPart> late = nullptr);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  bool settled() const { return settled_; }
  const Status& error() const { return error_; }
  H5VL_request_status_t status() const;
  uint64_t issued_us() const { return issued_ns_ / 1000; }
  uint64_t duration_ns() const { return duration_ns_; }

  /// Calls `callback` when the request settles, at once if it has. HDF5 calls back into the library
  /// from it.
  void Notify(H5VL_request_notify_t callback, void* context);
  void TryAgainWith(std::unique_ptr<SecondTry> second_try) { second_try_ = std::move(second_try); }
  /// What the failure is told with; not valid: as `error` says.
  const h5::OwnedId& error_stack() const { return error_stack_; }
  void Unref();

 private:
  friend class RequestQueue;
  ~Request() = default;
  bool TriedAgain();
  Completion::State Wait(uint64_t timeout_ns);
  Status Failure() const;

  std::shared_ptr<Completion> completion_;
  std::unique_ptr<DeferredPart> late_;
  std::unique_ptr<SecondTry> second_try_;
  Status error_;
  h5::OwnedId error_stack_;
  const uint64_t issued_ns_;
  uint64_t number_ = 0;
  uint64_t duration_ns_ = 0;
  H5VL_request_notify_t notify_ = nullptr;
  void* notify_context_ = nullptr;
  Request* next_ = nullptr;
  int references_ = 1;
  bool settled_ = false;
};

class RequestQueue {
 public:
  constexpr RequestQueue() = default;

  /// A token for HDF5.
  Request* Issue(std::shared_ptr<Completion> completion,
                 std::unique_ptr<DeferredPart> late = nullptr);
  /// Waits at most `timeout_ns` (0: starts the work, looks, returns; UINT64_MAX: for ever) for
  /// `request`.
  void Wait(Request& request, uint64_t timeout_ns);
  /// The same for an event set, which then removes what is done from its list.
  H5VL_request_status_t Ask(Request& request, uint64_t timeout_ns);
  /// Every request goes on as far as it can without waiting; none settles by that. Whether one is still pending.
  bool Advance();
  /// Waits for everything that was issued.
  void WaitAll();
  /// Whether one ever settled as failed.
  bool any_failed() const { return any_failed_; }

 private:
  void SettleOldest(Completion::State state);

  Request* oldest_ = nullptr;
  Request* newest_ = nullptr;
  uint64_t issued_ = 0;
  uint64_t last_asked_ = 0;  // number of the request that an event set asked for last
  bool any_failed_ = false;
  bool pending_in_pass_ = false;  // one was reported pending since this pass began
};

struct LibraryState;

// The class's callbacks.
herr_t RequestWait(LibraryState& library, void* request, uint64_t timeout_ns,
                   H5VL_request_status_t* status);
herr_t RequestNotify(LibraryState& library, void* request, H5VL_request_notify_t callback,
                     void* context);
herr_t RequestCancel(LibraryState& library, void* request, H5VL_request_status_t* status);
herr_t RequestSpecific(LibraryState& library, void* request, H5VL_request_specific_args_t* args);
herr_t RequestFree(LibraryState& library, void* request);

}  // namespace tidelane::vol
