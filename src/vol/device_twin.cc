#include "vol/device_twin.h"

#include <string>

#include "base/counters.h"
#include "buffer/staging.h"
#include "h5/error.h"

namespace tidelane::vol {

DeviceTwin::DeviceTwin(LibraryState& library, const char* what, const gpu::Memory& memory,
                       void* device, size_t size, gpu::Stream after)
    : library_(library),
      what_(what),
      memory_(memory),
      device_(device),
      after_(after),
      bytes_(size) {}

std::vector<gpu::PlacedBox> DeviceTwin::Whole() const {
  if (bytes_.empty()) return {};
  return {{0, {.width = bytes_.size()}}};
}

bool DeviceTwin::CopyDown() {
  gpu::Copies copies(memory_, after_, bytes_.size());
  copies.Down(bytes_.data(), device_, Whole(), StagingMemory::kGranule);
  Count(Counter::kGpuBytesDown, bytes_.size());
  return copies.AwaitAll() == 0 || Fails(copies);
}

bool DeviceTwin::CopyUp() {
  gpu::Copies copies(memory_, after_, bytes_.size());
  copies.Up(device_, bytes_.data(), Whole(), StagingMemory::kGranule);
  Count(Counter::kGpuBytesUp, bytes_.size());
  return copies.AwaitAll() == 0 || Fails(copies);
}

bool DeviceTwin::Fails(const gpu::Copies& copies) const {
  const std::string message =
      std::string("cannot copy ") + what_ + " in device memory: " + copies.Describe();
  h5::PushError(library_.hdf5(), message.c_str());
  return false;
}

}  // namespace tidelane::vol
