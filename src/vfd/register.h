/// \file
/// Tells h5/ of both drivers (h5/driver.h, h5/parallel_driver.h).
///
/// Thread safety: may be called from any thread, any number of times.
#pragma once

namespace tidelane::vfd {

void RegisterDrivers();

}  // namespace tidelane::vfd
