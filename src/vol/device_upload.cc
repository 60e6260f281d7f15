#include "vol/device_upload.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/activity.h"
#include "base/trace.h"
#include "gpu/loaded.h"

namespace tidelane::vol {

namespace {

constexpr uint64_t kPauseNs = 100'000;  // the driver's waits have no time limit

}  // namespace

class DeviceUpload::ReadAgain final : public SecondTry {
 public:
  ReadAgain(DeviceUpload& upload, std::unique_ptr<SecondTry> read)
      : upload_(upload), read_(std::move(read)) {}

  // Only what the read has left undone: a device that has failed is not asked again.
  bool Run(h5::OwnedId& stack) override {
    return !gpu::IsForked() && upload_.in_staging_ != nullptr && read_->Run(stack) &&
           upload_.CopyUp() == Completion::State::kDone;
  }

 private:
  DeviceUpload& upload_;
  const std::unique_ptr<SecondTry> read_;
};

DeviceUpload::~DeviceUpload() {
  if (in_staging_ != nullptr && !gpu::IsForked()) in_staging_->Wait(UINT64_MAX);
}

std::unique_ptr<SecondTry> DeviceUpload::AfterSecondTry(std::unique_ptr<SecondTry> read) {
  return std::make_unique<ReadAgain>(*this, std::move(read));
}

Completion::State DeviceUpload::End(Status error) {
  error_ = std::move(error);
  state_ = error_.ok() ? Completion::State::kDone : Completion::State::kFailed;
  return state_;
}

Completion::State DeviceUpload::CopyUp() {
  rows_->BeginUp();
  return Finish();
}

// The memory goes back at once: elder requests may keep this one from settling.
Completion::State DeviceUpload::Finish() {
  End(rows_->FinishUp() ? Status() : rows_->failure());
  rows_.reset();
  return state_;
}

bool DeviceUpload::PollUntil(uint64_t timeout_ns) {
  const uint64_t begin = NowNs();
  while (!rows_->PollUp()) {
    const uint64_t waited = NowNs() - begin;
    if (waited >= timeout_ns) return false;
    const Waiting waiting(Wait::kRequest);
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(timeout_ns - waited, kPauseNs)));
  }
  return true;
}

Completion::State DeviceUpload::Wait(uint64_t timeout_ns) {
  using State = Completion::State;
  if (state_ != State::kPending) return state_;
  if (gpu::IsForked()) return End(Status::Failed(ECANCELED, "read what the parent process reads"));
  const uint64_t begin = NowNs();
  if (in_staging_ != nullptr) {
    const State read = in_staging_->Wait(timeout_ns);
    if (read == State::kPending) return read;
    // The memory stays: it may be read once more.
    if (read == State::kFailed) return End(in_staging_->error());
    in_staging_.reset();
    rows_->BeginUp();
    if (timeout_ns != UINT64_MAX) timeout_ns -= std::min(timeout_ns, NowNs() - begin);
  }
  if (timeout_ns != UINT64_MAX && !PollUntil(timeout_ns)) return State::kPending;
  return Finish();
}

}  // namespace tidelane::vol
