#include "vol/late_query.h"

#include <cerrno>
#include <cstdint>
#include <new>
#include <utility>

#include "file/call_scope.h"
#include "h5/error.h"
#include "h5/query_operation.h"
#include "vol/call_inside.h"
#include "vol/call_queue.h"

namespace tidelane::vol {

namespace {

// What the work and the request share.
struct Outcome {
  bool told = false;
  Status error;
};

Status Told(const tl_query_later_args& args, Status status) {
  if (args.done(args.query.context, status.ok() ? 0 : 1) >= 0 || !status.ok()) return status;
  return Status::Failed(EIO, "make the view of a query");
}

// A query that fails is not tried again: its request says so, and no other call.
class QueryWork final : public CallWork {
 public:
  QueryWork(LibraryState& library, std::shared_ptr<File> for_file, const tl_query_later_args& args,
            std::unique_ptr<h5::PendingQuery> pending, std::shared_ptr<Completion> lanes,
            std::shared_ptr<Outcome> outcome)
      : CallWork(std::move(for_file)),
        library_(library),
        args_(args),
        pending_(std::move(pending)),
        lanes_(std::move(lanes)),
        outcome_(std::move(outcome)),
        changes_(library.changes) {}

  bool ready() const override {
    return lanes_ == nullptr ||
           (lanes_->LooksDone() && lanes_->Poll() != Completion::State::kPending);
  }
  bool unwanted() const override { return false; }
  void Help() override {}
  void Await() override {
    if (lanes_ != nullptr) static_cast<void>(lanes_->Wait(UINT64_MAX));
  }
  bool holds_ids() const override { return true; }
  uint64_t bytes() const override { return 0; }
  Wait waits_as() const override { return Wait::kRequest; }
  bool Do(Attempt) override {
    const CallQueue::Alone alone(CallQueue::Of(library_));
    outcome_->error = Told(args_, Finish());
    outcome_->told = true;
    pending_ = nullptr;
    return true;
  }
  void Gone() override {}
  const char* what(Attempt) const override { return "answer a query"; }

 private:
  Status Finish() {
    try {  // HDF5 is between us and whoever could catch it
      return pending_->Finish(changes_ == library_.changes);
    } catch (const std::bad_alloc&) {
      return Status::Failed(ENOMEM, "have memory for a query");
    }
  }

  LibraryState& library_;
  const tl_query_later_args args_;
  std::unique_ptr<h5::PendingQuery> pending_;
  const std::shared_ptr<Completion> lanes_;
  const std::shared_ptr<Outcome> outcome_;
  const uint64_t changes_;
};

class QueryPart final : public DeferredPart {
 public:
  QueryPart(LibraryState& library, std::shared_ptr<Outcome> outcome)
      : library_(library), outcome_(std::move(outcome)) {}

  Completion::State Wait(uint64_t timeout_ns) override {
    CallQueue* const calls = library_.call_queue;
    const auto told = [this] { return outcome_->told; };
    if (!told() && calls != nullptr && !calls->DoUntil(told, timeout_ns)) Fail(ENOMEM);
    // Forked while another thread was inside HDF5 (vol/fork.cc): the parent has the answer.
    if (!told() && (calls == nullptr || calls->empty())) Fail(ECANCELED);
    if (!told()) return Completion::State::kPending;
    return outcome_->error.ok() ? Completion::State::kDone : Completion::State::kFailed;
  }
  Status error() const override { return outcome_->error; }

 private:
  void Fail(int error) {
    outcome_->error = Status::Failed(error, "answer a query");
    outcome_->told = true;
  }

  LibraryState& library_;
  const std::shared_ptr<Outcome> outcome_;
};

}  // namespace

herr_t QueryLater(LibraryState& library, std::shared_ptr<File> file, tl_query_later_args& args,
                  void** request) {
  const bool later =
      request != nullptr && file != nullptr && !library.requests.any_failed() && !library.closing;
  std::unique_ptr<h5::PendingQuery> pending;
  CallScope scope(CallScope::kNone);
  Status status = h5::Query(library.hdf5(), args.query, later ? &pending : nullptr);
  if (!status.ok()) {
    h5::PushError(library.hdf5(), status);
    return -1;
  }
  if (!later) {
    args.accepted = 1;
    status = Told(args, {});
    if (status.ok()) return 0;
    h5::PushError(library.hdf5(), status);
    return -1;
  }
  const auto outcome = std::make_shared<Outcome>();
  auto work = std::make_unique<QueryWork>(library, std::move(file), args, std::move(pending),
                                          scope.TakeCompletion(), outcome);
  auto part = std::make_unique<QueryPart>(library, outcome);
  CallQueue::Of(library).Add(std::move(work));
  args.accepted = 1;
  *request = library.requests.Issue(nullptr, std::move(part));
  return 0;
}

}  // namespace tidelane::vol
