#include "vol/request.h"

#include <algorithm>

#include "base/trace.h"
#include "h5/error.h"
#include "vol/library_state.h"

namespace tidelane::vol {

Request::Request(std::shared_ptr<Completion> completion, std::unique_ptr<DeferredPart> late)
    : completion_(std::move(completion)), late_(std::move(late)), issued_ns_(NowNs()) {}

H5VL_request_status_t Request::status() const {
  if (!settled_) return H5VL_REQUEST_STATUS_IN_PROGRESS;
  return error_.ok() ? H5VL_REQUEST_STATUS_SUCCEED : H5VL_REQUEST_STATUS_FAIL;
}

void Request::Notify(H5VL_request_notify_t callback, void* context) {
  if (settled_) {
    callback(context, status());
    return;
  }
  notify_ = callback;
  notify_context_ = context;
}

bool Request::TriedAgain() {
  const std::unique_ptr<SecondTry> second_try = std::move(second_try_);
  return second_try != nullptr && second_try->Run(error_stack_);
}

// Both parts start before either is waited for.
Completion::State Request::Wait(uint64_t timeout_ns) {
  const uint64_t begin = NowNs();
  auto late = Completion::State::kDone;
  if (late_ != nullptr) {
    if (completion_ != nullptr) completion_->Poll();
    late = late_->Wait(timeout_ns);
    if (timeout_ns != UINT64_MAX) timeout_ns -= std::min(timeout_ns, NowNs() - begin);
  }
  const auto other =
      completion_ == nullptr ? Completion::State::kDone : completion_->Wait(timeout_ns);
  if (late == Completion::State::kPending || other == Completion::State::kPending) {
    return Completion::State::kPending;
  }
  return late == Completion::State::kFailed ? late : other;
}

Status Request::Failure() const {
  const Status late = late_ == nullptr ? Status() : late_->error();
  return late.ok() && completion_ != nullptr ? completion_->error() : late;
}

void Request::Unref() {
  if (--references_ == 0) delete this;
}

Request* RequestQueue::Issue(std::shared_ptr<Completion> completion,
                             std::unique_ptr<DeferredPart> late) {
  auto* request = new Request(std::move(completion), std::move(late));
  request->number_ = ++issued_;
  pending_in_pass_ = false;
  if (oldest_ == nullptr && request->completion_ == nullptr && request->late_ == nullptr) {
    request->settled_ = true;
    return request;
  }
  // Complete or not, it waits for its elders.
  ++request->references_;
  (oldest_ == nullptr ? oldest_ : newest_->next_) = request;
  newest_ = request;
  return request;
}

// The queue and the request are consistent before anything is called back: the callback may come
// here again.
void RequestQueue::SettleOldest(Completion::State state) {
  Request* request = oldest_;
  oldest_ = request->next_;
  if (oldest_ == nullptr) newest_ = nullptr;
  request->next_ = nullptr;
  if (state == Completion::State::kFailed && !request->TriedAgain()) {
    request->error_ = request->Failure();
    any_failed_ = true;
  }
  request->completion_.reset();
  request->late_.reset();
  request->second_try_.reset();
  request->duration_ns_ = NowNs() - request->issued_ns_;
  request->settled_ = true;
  if (request->notify_ != nullptr) request->notify_(request->notify_context_, request->status());
  request->Unref();
}

void RequestQueue::Wait(Request& request, uint64_t timeout_ns) {
  if (request.settled_) return;
  ++request.references_;  // the queue's may be the last one, and a callback may free the other
  // Its own work must start even while an elder, perhaps of another file, is what we wait for. (The eldest's starts
  // with its wait, which may do it without waking a lane.)
  if (&request != oldest_) request.Wait(0);
  const uint64_t begin = NowNs();
  auto state = Completion::State::kDone;
  while (!request.settled_ && state != Completion::State::kPending) {
    uint64_t left = timeout_ns;
    if (timeout_ns != UINT64_MAX) {
      const uint64_t waited = NowNs() - begin;
      left = waited < timeout_ns ? timeout_ns - waited : 0;
    }
    state = oldest_->Wait(left);
    if (state != Completion::State::kPending) SettleOldest(state);
  }
  request.Unref();
}

// HDF5 visits a list from its oldest request on: one that is not younger than the last begins a new
// pass, and so does one that is waited for without limit. Two event sets visited in turn may look
// like one pass; then a request is reported pending once more than it had to be, never for ever.
H5VL_request_status_t RequestQueue::Ask(Request& request, uint64_t timeout_ns) {
  if (timeout_ns == UINT64_MAX || request.number_ <= last_asked_) pending_in_pass_ = false;
  last_asked_ = request.number_;
  if (pending_in_pass_) {
    if (!request.settled_) request.Wait(0);  // its work starts all the same
    return H5VL_REQUEST_STATUS_IN_PROGRESS;
  }
  Wait(request, timeout_ns);  // the caller's reference outlives it, which the analyzer cannot know
  // NOLINTBEGIN(clang-analyzer-cplusplus.NewDelete)
  if (!request.settled_) pending_in_pass_ = true;
  return request.status();
}

// Work that is done on the way may come here again, and settle requests: those have left the queue.
bool RequestQueue::Advance() {
  bool pending = false;
  for (Request* request = oldest_; request != nullptr;) {
    ++request->references_;
    pending |= request->Wait(0) == Completion::State::kPending;
    Request* const next = request->next_;
    request->Unref();
    request = next;
  }
  return pending;
}

void RequestQueue::WaitAll() {
  while (oldest_ != nullptr) Wait(*newest_, UINT64_MAX);
}
// NOLINTEND(clang-analyzer-cplusplus.NewDelete)

herr_t RequestWait(LibraryState& library, void* request, uint64_t timeout_ns,
                   H5VL_request_status_t* status) {
  *status = library.requests.Ask(*static_cast<Request*>(request), timeout_ns);
  return 0;
}

herr_t RequestNotify(LibraryState&, void* request, H5VL_request_notify_t callback, void* context) {
  static_cast<Request*>(request)->Notify(callback, context);
  return 0;
}

// What was captured will be written: by the time anyone cancels, HDF5 has allocated and indexed it.
// A request that has finished says how; others cannot be cancelled.
herr_t RequestCancel(LibraryState& library, void* request, H5VL_request_status_t* status) {
  *status = library.requests.Ask(*static_cast<Request*>(request), 0);
  if (*status == H5VL_REQUEST_STATUS_IN_PROGRESS) *status = H5VL_REQUEST_STATUS_CANT_CANCEL;
  return 0;
}

herr_t RequestSpecific(LibraryState& library, void* request, H5VL_request_specific_args_t* args) {
  const auto* self = static_cast<const Request*>(request);
  switch (args->op_type) {
    case H5VL_REQUEST_GET_ERR_STACK:
      if (const hid_t stack = self->error_stack().get();
          stack >= 0 && library.hdf5().Iinc_ref(stack) >= 0) {
        args->args.get_err_stack.err_stack_id = stack;  // each caller's reference is its own
        return 0;
      }
      args->args.get_err_stack.err_stack_id = h5::MakeErrorStack(library.hdf5(), self->error());
      return args->args.get_err_stack.err_stack_id < 0 ? -1 : 0;
    case H5VL_REQUEST_GET_EXEC_TIME:
      *args->args.get_exec_time.exec_ts = self->issued_us();
      *args->args.get_exec_time.exec_time = self->duration_ns();
      return 0;
  }
  h5::PushError(library.hdf5(), "this operation on a request is not known to Tidelane");
  return -1;
}

herr_t RequestFree(LibraryState&, void* request) {
  static_cast<Request*>(request)->Unref();
  return 0;
}

}  // namespace tidelane::vol
