/// \file
/// The store that is the file itself: every byte rests at its own address of one device.
///
/// Invariant, thread safety: as store.h.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "store/store.h"

namespace tidelane {

class DirectStore final : public Store {
 public:
  explicit DirectStore(std::shared_ptr<Device> device);

  int Write(Run& run) override;
  int WriteBytes(Run& run, const void* bytes) override;
  int Read(uint64_t address, void* buffer, size_t n) override {
    return device_->Read(address, buffer, n);
  }
  uint64_t size() const override { return size_.load(std::memory_order_acquire); }
  int SetSize(uint64_t size) override;
  int Reserve(uint64_t address, uint64_t size) override;
  void EndReservations(uint64_t& found) override;
  int Version(FileVersion& version) override { return device_->Version(version); }
  bool memory_speed() const override { return device_->WritesToMemory(); }
  Status Publish(Publishing when) override { return device_->Publish(when); }
  void Withhold(Withholding why) override { device_->Withhold(why); }
  int Close() override { return device_->Close(); }

 private:
  int WriteParts(Run& run);
  int WriteWhole(Run& run, uint64_t stored);
  int WriteTimed(Run& run, const iovec* parts, size_t count);

  const std::shared_ptr<Device> device_;
  std::atomic<uint64_t> size_{0};
  std::atomic<bool> reserved_{false};  // something was, even if it was cut off since
};

}  // namespace tidelane
