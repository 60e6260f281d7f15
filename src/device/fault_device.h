/// \file
/// A device for tests: another device, or memory, with faults injected at chosen calls.
///
/// Invariant: a write that is told to fail may have written any prefix, as a real one may.
///
/// Thread safety: as Device; a plan may be called by several threads at once and must guard what it
/// captures.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/annotations.h"
#include "device/device.h"

namespace tidelane {

/// A file in memory: what a test compares against. Several devices may share one, as several opens
/// share a file.
struct MemoryFile {
  Mutex mutex;                   // a device holds it during each call
  std::vector<std::byte> bytes;  // a test may look without the mutex while no device is in a call
  unsigned shared_locks = 0;
  bool exclusive_lock = false;
  bool promises_speed = false;  // what the device's WritesToMemory says
};
std::unique_ptr<Device> MakeMemoryDevice(std::shared_ptr<MemoryFile> file);

enum class FaultPoint { kRead, kWrite, kTruncate, kReserve, kSync, kClose };

struct Fault {
  int code = 0;  ///< errno to return; 0: the call goes through
  uint64_t written_first =
      0;  ///< for writes: so many bytes reach the file before the failure (all, if fewer are asked)
};

/// Asked before every call with the point and the call's address and size.
using FaultPlan = std::function<Fault(FaultPoint, uint64_t address, uint64_t size)>;

std::unique_ptr<Device> MakeFaultDevice(std::unique_ptr<Device> inner, FaultPlan plan);

}  // namespace tidelane
