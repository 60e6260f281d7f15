/// \file
/// The part of a request that is elements on their way from a file to a device's memory.
///
///   1. Lanes read into staging memory after the call has returned.
///   2. Whoever asks or waits for the request, under HDF5's lock, finds that all of it is there, and begins the copies to the device.
///   3. The request is done when the device has its bytes.
///
/// The copies come after what the program had put into its stream before the call, and wait for nothing that it puts there later.
///
/// Only what lies in staging memory goes this way, which bounds what reads that nobody waits for can hold.
///
/// In a forked child the request fails: neither the staging memory nor the driver is there.
///
/// Thread safety: used under HDF5's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/status.h"
#include "file/completion.h"
#include "vol/device_buffers.h"
#include "vol/request.h"

namespace tidelane::vol {

class DeviceUpload final : public DeferredPart {
 public:
  explicit DeviceUpload(std::unique_ptr<StagedRows> rows) : rows_(std::move(rows)) {}
  /// Waits for lanes that still read into its memory.
  ~DeviceUpload() override;

  StagedRows& rows() { return *rows_; }
  /// Whether lanes were left anything to read.
  bool reads() const { return in_staging_ != nullptr; }
  /// Lanes read into the rows from now on.
  void Follow(std::shared_ptr<Completion> in_staging) { in_staging_ = std::move(in_staging); }
  /// Tries once more what lanes could not read, and copies it to the device. Not to outlive this.
  std::unique_ptr<SecondTry> AfterSecondTry(std::unique_ptr<SecondTry> read);

  Completion::State Wait(uint64_t timeout_ns) override;
  Status error() const override { return error_; }

 private:
  class ReadAgain;

  Completion::State CopyUp();
  Completion::State Finish();
  bool PollUntil(uint64_t timeout_ns);
  Completion::State End(Status error);

  std::unique_ptr<StagedRows> rows_;
  std::shared_ptr<Completion> in_staging_;  // until it is done
  Completion::State state_ = Completion::State::kPending;
  Status error_;
};

}  // namespace tidelane::vol
