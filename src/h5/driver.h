/// \file
/// Where the driver's class comes from. vfd/ writes the driver, vol/ puts it on files; neither
/// knows the other.
///
/// Thread safety: a constant table.
#pragma once

#include "h5/hdf5.h"

namespace tidelane::h5 {

/// Defined in vfd/: the class to register with the libhdf5 in `slot`.
const H5FD_class_t* DriverClass(int slot);

}  // namespace tidelane::h5
