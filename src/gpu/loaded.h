/// \file
/// Which GPU drivers the program has loaded, and whose memory a pointer is.
///
/// Nothing is linked and nothing is loaded: Look, called where a file or a dataset is opened, finds the driver's library among those
/// that the program has loaded by then. As long as it has loaded none, IsLoaded is one load, and no other function is called.
///
/// A child after fork never calls the driver, which does not survive one: what it cannot read itself is no device's that can be used
/// (gpu/no_device.h).
///
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <atomic>
#include <optional>

#include "gpu/runtime.h"

namespace tidelane::gpu {

namespace internal {
extern std::atomic<bool> loaded;
}

/// Whether the program has loaded a driver, as far as Look has seen.
inline bool IsLoaded() { return internal::loaded.load(std::memory_order_relaxed); }
/// Looks for one; some hundred nanoseconds where the program has loaded no library since the last time.
void Look();
/// The device memory that `pointer` lies in; nullopt: it is the host's, or nobody knows it.
std::optional<Memory> Find(const void* pointer);
/// In a forked child.
void ForgetAfterFork();
/// Whether this process is one: what its parent has begun on a device is the parent's.
bool IsForked();

}  // namespace tidelane::gpu
