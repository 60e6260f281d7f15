/// \file
/// A device whose file has another name until it is published (publish/publication.h): one opening of it.
///
/// A write that storage refused was told to the program, which may have gone on: such a file is not whole, unless something was stored
/// in the same place later. (HDF5 cuts off what it could not write: the file can be read then, and still lacks something.)
///
/// Invariant: it leaves the publication once, at the latest when it is closed; whoever has written and never says that all is stored
/// (Publish) has spoiled it.
/// Thread safety: as Device.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/annotations.h"
#include "device/device.h"
#include "extent/ranges.h"
#include "publish/publication.h"

namespace tidelane {

class PublishedDevice final : public Device {
 public:
  /// `made`: this opening has made the file.
  PublishedDevice(std::unique_ptr<Device> inner, std::shared_ptr<Publication> publication,
                  std::string path, bool made);
  ~PublishedDevice() override { static_cast<void>(Leave(!wrote())); }

  int Read(uint64_t address, void* buffer, size_t n) override {
    return inner_->Read(address, buffer, n);
  }
  int Write(uint64_t address, const struct iovec* parts, size_t count) override;
  int Truncate(uint64_t size) override { return inner_->Truncate(size); }
  int Reserve(uint64_t address, uint64_t size) override { return inner_->Reserve(address, size); }
  int Size(uint64_t& size) override { return inner_->Size(size); }
  int Version(FileVersion& version) override { return inner_->Version(version); }
  int Lock(bool exclusive) override { return inner_->Lock(exclusive); }
  int Unlock() override { return inner_->Unlock(); }
  int Sync() override { return inner_->Sync(); }
  Status Publish(Publishing when) override;
  void Withhold(Withholding why) override;
  int Close() override {
    static_cast<void>(Leave(!wrote()));
    return inner_->Close();
  }
  bool WritesToMemory() const override { return inner_->WritesToMemory(); }
  int* descriptor() override { return inner_->descriptor(); }

 private:
  /// Whether the file may have something from this opening; who has only looked has spoiled nothing.
  bool wrote() const { return made_ || wrote_.load(std::memory_order_relaxed); }
  Status Leave(bool whole) {
    return std::exchange(left_, true) ? Status() : publication_->Leave(whole, path_);
  }
  void Note(uint64_t begin, uint64_t end, bool stored) TL_EXCLUDES(mutex_);

  const std::unique_ptr<Device> inner_;
  const std::shared_ptr<Publication> publication_;
  const std::string path_;
  const bool made_;
  bool left_ = false;
  bool told_ = false;  // that it is withheld
  std::atomic<bool> wrote_{false};
  std::atomic<bool> any_refused_{false};
  Mutex mutex_;
  Ranges refused_ TL_GUARDED_BY(mutex_);  // and not stored since
};

}  // namespace tidelane
