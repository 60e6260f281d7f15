#include "content/parallel_read.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>

#include "base/activity.h"
#include "base/counters.h"

namespace tidelane {

std::byte* Room::Get(size_t size) {
  if (size <= size_) return bytes_.get();
  bytes_.reset(new (std::nothrow) std::byte[size]);
  size_ = bytes_ == nullptr ? 0 : size;
  return bytes_.get();
}

pid_t ParallelRead::OwnProcess() { return getpid(); }

void ParallelRead::SetParts(uint64_t parts, uint64_t per_turn) {
  MutexLock lock(mutex_);
  parts_ = parts;
  per_turn_ = std::max<uint64_t>(per_turn, 1);
}

void ParallelRead::Defer() {
  deferred_ = true;
  Count(Counter::kReadsDeferred);
}

Status ParallelRead::ReadBytes(Reader reader, uint64_t address, uint64_t size, std::byte* to) {
  asked_bytes_.fetch_add(size, std::memory_order_relaxed);
  return source_->ReadAlongside(reader, address, size, to);
}

Status ParallelRead::ReadAtOnce() {
  source_->BeginShared();
  Start();
  Status status = Finish();
  if (status.ok()) source_->EndShared(asked_bytes_.load(std::memory_order_relaxed));
  return status;
}

void ParallelRead::Start() {
  Seal();
  uint64_t parts = 0;
  {
    MutexLock lock(mutex_);
    parts = parts_ - next_;
  }
  try {
    for (uint64_t i = std::min<uint64_t>(helpers_, parts); i > 0; --i) {
      lanes_.Schedule(shared_from_this());
    }
  } catch (const std::bad_alloc&) {
    // Whoever was asked already touches the program's memory: go on. Who waits does the rest.
  }
}

void ParallelRead::RunOne() {
  if (getpid() != process_) return;  // a forked child has no such caller
  uint64_t most = 0;
  {
    MutexLock lock(mutex_);
    most = per_turn_;
  }
  try {
    if (Work(deferred_ ? Reader::kLater : Reader::kLane, most)) lanes_.Schedule(shared_from_this());
  } catch (const std::bad_alloc&) {
    // As above.
  }
}

Status ParallelRead::TryPart(Reader reader, uint64_t part, ReadRooms& rooms) {
  try {
    return ReadPart(reader, part, rooms);
  } catch (const std::bad_alloc&) {
    return Status::Failed(ENOMEM, "read").At(source_->path(), 0, 0);
  }
}

// Whether parts are left.
bool ParallelRead::Work(Reader reader, uint64_t most) {
  ReadRooms rooms;
  std::optional<Working> working;
  for (bool another = false;; another = true) {
    uint64_t part = 0;
    {
      MutexLock lock(mutex_);
      if (another && ++finished_ == parts_) all_finished_.NotifyAll();
      if (!status_.ok() && next_ < parts_) {
        finished_ += parts_ - next_;
        next_ = parts_;
        if (finished_ == parts_) all_finished_.NotifyAll();
      }
      if (next_ == parts_) return false;
      if (most-- == 0) return true;
      part = next_++;
    }
    if (reader == Reader::kLater && !working.has_value()) working.emplace();
    Status status = TryPart(reader, part, rooms);
    if (status.ok()) continue;
    MutexLock lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
  }
}

bool ParallelRead::FinishUntil(std::chrono::steady_clock::time_point deadline) {
  using Clock = std::chrono::steady_clock;
  Seal();
  if (deadline == Clock::time_point::max()) {
    (void)Work(Reader::kProgram, UINT64_MAX);
  } else if (!lanes_.threaded()) {
    while (Work(Reader::kProgram, 1) && Clock::now() < deadline) {
    }
  }
  MutexLock lock(mutex_);
  if (finished_ == parts_) return true;
  if (deadline != Clock::time_point::max() && Clock::now() >= deadline) return false;
  Waiting waiting(deferred_ ? Wait::kRequest : Wait::kRead, 0, Waiting::kTimed);
  bool late = false;
  while (finished_ != parts_ && !late) {
    if (deadline == Clock::time_point::max()) {
      all_finished_.Wait(mutex_);
    } else {
      late = !all_finished_.WaitUntil(mutex_, deadline);
    }
  }
  const uint64_t ns = waiting.Stop();
  if (deferred_) source_->TellWaited(ns);
  return finished_ == parts_;
}

bool ParallelRead::done() {
  MutexLock lock(mutex_);
  return finished_ == parts_;
}

Status ParallelRead::status() {
  MutexLock lock(mutex_);
  return finished_ == parts_ ? status_ : Status();
}

}  // namespace tidelane
