/// \file
/// The fault-injecting device and the memory device.
///
/// Thread safety: as device.h: a memory file carries its own lock, the fault device has no state
/// but the plan.
#include "device/fault_device.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tidelane {
namespace {

uint64_t TotalBytes(const struct iovec* parts, size_t count) {
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i) total += parts[i].iov_len;
  return total;
}

class MemoryDevice final : public Device {
 public:
  explicit MemoryDevice(std::shared_ptr<MemoryFile> file) : file_(std::move(file)) {}
  ~MemoryDevice() override { Unlock(); }

  int Read(uint64_t address, void* buffer, size_t n) override {
    MutexLock lock(file_->mutex);
    const uint64_t end = file_->bytes.size();
    const size_t there = address >= end ? 0 : std::min<uint64_t>(n, end - address);
    if (there > 0) std::memcpy(buffer, file_->bytes.data() + address, there);
    if (there < n) std::memset(static_cast<std::byte*>(buffer) + there, 0, n - there);
    return 0;
  }

  int Write(uint64_t address, const struct iovec* parts, size_t count) override {
    MutexLock lock(file_->mutex);
    const uint64_t total = TotalBytes(parts, count);
    if (total == 0) return 0;
    if (file_->bytes.size() < address + total) file_->bytes.resize(address + total);
    std::byte* to = file_->bytes.data() + address;
    for (size_t i = 0; i < count; ++i) {
      if (parts[i].iov_len == 0) continue;
      std::memcpy(to, parts[i].iov_base, parts[i].iov_len);
      to += parts[i].iov_len;
    }
    return 0;
  }

  int Truncate(uint64_t size) override {
    MutexLock lock(file_->mutex);
    file_->bytes.resize(size);
    return 0;
  }

  int Reserve(uint64_t, uint64_t) override { return 0; }

  int Size(uint64_t& size) override {
    MutexLock lock(file_->mutex);
    size = file_->bytes.size();
    return 0;
  }

  // As flock: a second lock by the same device converts the first.
  int Lock(bool exclusive) override {
    MutexLock lock(file_->mutex);
    const unsigned others_shared = file_->shared_locks - (held_ == Held::kShared ? 1 : 0);
    const bool other_exclusive = file_->exclusive_lock && held_ != Held::kExclusive;
    if (other_exclusive || (exclusive && others_shared > 0)) return EWOULDBLOCK;
    file_->shared_locks = others_shared + (exclusive ? 0 : 1);
    file_->exclusive_lock = exclusive;
    held_ = exclusive ? Held::kExclusive : Held::kShared;
    return 0;
  }

  int Unlock() override {
    MutexLock lock(file_->mutex);
    if (held_ == Held::kShared) --file_->shared_locks;
    if (held_ == Held::kExclusive) file_->exclusive_lock = false;
    held_ = Held::kNothing;
    return 0;
  }

  int Sync() override { return 0; }
  int Close() override { return Unlock(); }
  bool WritesToMemory() const override { return file_->promises_speed; }
  int* descriptor() override { return &no_descriptor_; }

 private:
  enum class Held { kNothing, kShared, kExclusive };

  const std::shared_ptr<MemoryFile> file_;
  Held held_ = Held::kNothing;  // changed only with the file's mutex held
  int no_descriptor_ = -1;
};

class FaultDevice final : public Device {
 public:
  FaultDevice(std::unique_ptr<Device> inner, FaultPlan plan)
      : inner_(std::move(inner)), plan_(std::move(plan)) {}

  int Read(uint64_t address, void* buffer, size_t n) override {
    const Fault fault = plan_(FaultPoint::kRead, address, n);
    return fault.code != 0 ? fault.code : inner_->Read(address, buffer, n);
  }

  int Write(uint64_t address, const struct iovec* parts, size_t count) override {
    const Fault fault = plan_(FaultPoint::kWrite, address, TotalBytes(parts, count));
    if (fault.code == 0) return inner_->Write(address, parts, count);
    uint64_t left = fault.written_first;
    std::vector<struct iovec> prefix;
    for (size_t i = 0; i < count && left > 0; ++i) {
      prefix.push_back(parts[i]);
      prefix.back().iov_len = std::min<uint64_t>(left, parts[i].iov_len);
      left -= prefix.back().iov_len;
    }
    const int error = inner_->Write(address, prefix.data(), prefix.size());
    return error != 0 ? error : fault.code;
  }

  int Truncate(uint64_t size) override {
    const Fault fault = plan_(FaultPoint::kTruncate, 0, size);
    return fault.code != 0 ? fault.code : inner_->Truncate(size);
  }

  int Reserve(uint64_t address, uint64_t size) override {
    const Fault fault = plan_(FaultPoint::kReserve, address, size);
    return fault.code != 0 ? fault.code : inner_->Reserve(address, size);
  }

  int Sync() override {
    const Fault fault = plan_(FaultPoint::kSync, 0, 0);
    return fault.code != 0 ? fault.code : inner_->Sync();
  }

  // As close(2): the file is closed even when that fails.
  int Close() override {
    const Fault fault = plan_(FaultPoint::kClose, 0, 0);
    const int error = inner_->Close();
    return fault.code != 0 ? fault.code : error;
  }

  int Size(uint64_t& size) override { return inner_->Size(size); }
  int Lock(bool exclusive) override { return inner_->Lock(exclusive); }
  int Unlock() override { return inner_->Unlock(); }
  bool WritesToMemory() const override { return inner_->WritesToMemory(); }
  int* descriptor() override { return inner_->descriptor(); }

 private:
  const std::unique_ptr<Device> inner_;
  const FaultPlan plan_;
};

}  // namespace

std::unique_ptr<Device> MakeMemoryDevice(std::shared_ptr<MemoryFile> file) {
  return std::make_unique<MemoryDevice>(std::move(file));
}

std::unique_ptr<Device> MakeFaultDevice(std::unique_ptr<Device> inner, FaultPlan plan) {
  return std::make_unique<FaultDevice>(std::move(inner), std::move(plan));
}

}  // namespace tidelane
