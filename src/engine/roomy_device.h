/// \file
/// A device that asks for room once before it says that storage is full: closed files that nobody can miss may hold some.
///
/// Invariant: what the device under it answers is answered, but "no space", which is asked again after room was made.
/// Thread safety: as Device; `make_room` is called with no lock held, by any thread.
#pragma once

#include <cerrno>
#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "device/device.h"

namespace tidelane {

class RoomyDevice final : public Device {
 public:
  /// `make_room`: whether there is some now that was not there before.
  RoomyDevice(std::unique_ptr<Device> inner, std::function<bool()> make_room)
      : inner_(std::move(inner)), make_room_(std::move(make_room)) {}

  int Read(uint64_t address, void* buffer, size_t n) override {
    return inner_->Read(address, buffer, n);
  }
  int Write(uint64_t address, const struct iovec* parts, size_t count) override {
    return WithRoom([&] { return inner_->Write(address, parts, count); });
  }
  int Truncate(uint64_t size) override {
    return WithRoom([&] { return inner_->Truncate(size); });
  }
  int Reserve(uint64_t address, uint64_t size) override {
    return WithRoom([&] { return inner_->Reserve(address, size); });
  }
  int Size(uint64_t& size) override { return inner_->Size(size); }
  int Version(FileVersion& version) override { return inner_->Version(version); }
  int Lock(bool exclusive) override { return inner_->Lock(exclusive); }
  int Unlock() override { return inner_->Unlock(); }
  int Sync() override { return inner_->Sync(); }
  Status Publish(Publishing when) override { return inner_->Publish(when); }
  void Withhold(Withholding why) override { inner_->Withhold(why); }
  int Close() override { return inner_->Close(); }
  bool WritesToMemory() const override { return inner_->WritesToMemory(); }
  int* descriptor() override { return inner_->descriptor(); }

 private:
  template <typename Call>
  int WithRoom(Call call) {
    const int error = call();
    const bool full = error == ENOSPC || error == EDQUOT;
    try {
      return full && make_room_() ? call() : error;
    } catch (const std::bad_alloc&) {
      return error;
    }
  }

  const std::unique_ptr<Device> inner_;
  const std::function<bool()> make_room_;
};

}  // namespace tidelane
