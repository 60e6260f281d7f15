/// \file
/// What is put into MPI's driver, as h5/ is to know it.
///
/// Thread safety: constant; its functions are called under HDF5's lock.
#pragma once

#include "h5/parallel_driver.h"

namespace tidelane::vfd {

extern const h5::ParallelDriverTable kMpioDriver;

}  // namespace tidelane::vfd
