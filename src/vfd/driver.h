/// \file
/// The serial driver, as h5/ is to know it.
///
/// Thread safety: constant; its functions are called under HDF5's lock.
#pragma once

#include "h5/driver.h"

namespace tidelane::vfd {

extern const h5::DriverTable kSerialDriver;

}  // namespace tidelane::vfd
