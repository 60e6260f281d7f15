#include "file/file_epochs.h"

#include "base/trace.h"

namespace tidelane {

std::shared_ptr<EpochSource> FileEpochs::Self() { return {file_.whole(), this}; }

uint64_t FileEpochs::OfCall(Backlog& backlog, const CallContext& call) {
  CallScope* const request = call.request();
  if (request == nullptr) return backlog.epoch.OfOthers();
  const uint64_t last = request->EpochOf(this);
  const uint64_t epoch = backlog.epoch.OfRequest(last);
  if (epoch != last) request->Touch(Self(), epoch, false);
  return epoch;
}

void FileEpochs::AddBarrier(Backlog& backlog, const CallContext& call) {
  if (CallScope* const request = call.request(); request != nullptr)
    request->Touch(Self(), backlog.epoch.Barrier(), true);
}

void FileEpochs::EndLoans() {
  MutexLock lock(drainer_.mutex());
  EndLoansLocked();
}

void FileEpochs::EndLoansLocked() {
  Backlog& backlog = drainer_.backlog();
  backlog.loans.over = true;
  if (!backlog.loans.any) return;
  if (backlog.pending.LentInFlight()) {
    const Waiting waiting(Wait::kRequest);
    drainer_.AwaitLocked(Drainer::By::kSleeping, kForEver,
                         [&] { return !backlog.pending.LentInFlight(); });
  }
  backlog.Keep(Slab::Kind::kLent, "keep a copy of what could not be written");
  backlog.loans.any = false;
}

Epochs::State FileEpochs::Poll(uint64_t epoch, bool and_older, Status& error) {
  MutexLock lock(drainer_.mutex());
  const Epochs::State state = drainer_.backlog().StateOf(epoch, and_older, error);
  if (state == Epochs::State::kFailed) EndLoansLocked();
  if (state != Epochs::State::kPending) return state;
  drainer_.backlog().Want(and_older);
  drainer_.ScheduleLocked();
  return state;
}

Epochs::State FileEpochs::WaitFor(uint64_t epoch, bool and_older,
                                  std::chrono::steady_clock::time_point deadline, Status& error) {
  const uint64_t asked_ns = NowNs();
  file_.costs.Asked(asked_ns);
  MutexLock lock(drainer_.mutex());
  Backlog& backlog = drainer_.backlog();
  Epochs::State state = backlog.StateOf(epoch, and_older, error);
  if (state == Epochs::State::kPending) {
    const Waiting waiting(Wait::kRequest);
    drainer_.AwaitLocked(Drainer::By::kHelping, deadline, [&] {
      state = backlog.StateOf(epoch, and_older, error);
      if (state != Epochs::State::kPending) return true;
      backlog.Want(and_older);
      return false;
    });
    file_.costs.Waited(NowNs() - asked_ns);
  }
  if (state == Epochs::State::kFailed) EndLoansLocked();
  return state;
}

}  // namespace tidelane
