/// \file
/// Files that all ranks have opened for reading only, through MPI's driver.
///
/// Thread safety: under HDF5's lock.
#pragma once

#include <memory>

#include "base/counters.h"
#include "h5/library.h"
#include "h5/parallel_reading.h"

namespace tidelane::vfd {

// See h5::ParallelDriverTable.
std::shared_ptr<h5::ParallelReading> CaptureMpioReading(h5::Library& library, hid_t driver,
                                                        void* vfd_handle, const char* name,
                                                        bool wanted, Fallback& reason);
bool HasReadings(int slot);
std::shared_ptr<h5::ParallelReading> ReadingWithSerial(int slot, unsigned long serial);

}  // namespace tidelane::vfd
