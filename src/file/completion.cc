#include "file/completion.h"

#include <chrono>

#include "content/parallel_read.h"
#include "file/epoch_source.h"

namespace tidelane {

Completion::Completion(std::vector<Part> parts, std::vector<std::shared_ptr<ParallelRead>> reads)
    : parts_(std::move(parts)), reads_(std::move(reads)) {}

Completion::~Completion() = default;

Completion::State Completion::Poll() { return Wait(0); }

Completion::State Completion::Wait(uint64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  const bool for_ever = timeout_ns > static_cast<uint64_t>(INT64_MAX) / 2;
  const auto deadline =
      for_ever ? Clock::time_point::max() : Clock::now() + std::chrono::nanoseconds(timeout_ns);
  MutexLock lock(mutex_);
  WaitForParts(timeout_ns, deadline);
  WaitForReads(deadline);
  if (!parts_.empty() || !reads_.empty()) return State::kPending;
  return error_.ok() ? State::kDone : State::kFailed;
}

void Completion::WaitForReads(Deadline deadline) {
  std::erase_if(reads_, [&](const std::shared_ptr<ParallelRead>& read) TL_NO_ANALYSIS {
    if (!read->FinishUntil(deadline)) return false;
    if (error_.ok()) error_ = read->status();
    return true;
  });
}

void Completion::WaitForParts(uint64_t timeout_ns, Deadline deadline) {
  Status error;
  // All parts start before any is waited for.
  if (timeout_ns != 0 && parts_.size() > 1) {
    for (const Part& part : parts_) (void)part.source->Poll(part.epoch, part.and_older, error);
  }
  for (size_t i = 0; i < parts_.size();) {
    const Part& part = parts_[i];
    const Epochs::State state =
        timeout_ns == 0 ? part.source->Poll(part.epoch, part.and_older, error)
                        : part.source->WaitFor(part.epoch, part.and_older, deadline, error);
    if (state == Epochs::State::kPending) {
      ++i;
      continue;
    }
    if (state == Epochs::State::kFailed && error_.ok()) error_ = error;
    parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

bool Completion::LooksDone() const {
  MutexLock lock(mutex_);
  return reads_.empty() || reads_.back()->done() || !reads_.back()->helped();
}

Status Completion::error() const {
  MutexLock lock(mutex_);
  return error_;
}

}  // namespace tidelane
