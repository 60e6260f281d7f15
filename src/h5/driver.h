/// \file
/// Where the driver's class comes from, and which files it has open. vfd/ writes the driver, vol/
/// puts it on files; neither knows the other.
///
/// Thread safety: the class is a constant table; files are looked up under HDF5's lock.
#pragma once

#include <cstdint>
#include <memory>

#include "h5/hdf5.h"

namespace tidelane {
class File;
}

namespace tidelane::h5 {

/// Defined in vfd/: the class to register with the libhdf5 in `slot`.
const H5FD_class_t* DriverClass(int slot);
/// Defined in vfd/: what our driver has open under the serial number (`fileno`) that the libhdf5 in
/// `slot` gave it; nullptr: nothing.
std::shared_ptr<File> FileWithSerial(int slot, unsigned long serial);
/// Whether any is open: asking HDF5 for a serial number costs a microsecond, and many programs' files are not ours.
bool HasFiles(int slot);

/// What the libhdf5 in `slot` does between its datasets and our driver of `file`.
struct AboveDriver {
  uint64_t base_address = 0;  ///< added to the addresses in the file: the size of a user block
  uint64_t allocated_end = UINT64_MAX;  ///< of the file; beyond it HDF5 reads nothing
  bool page_buffer = false;             ///< elements may be there, and not yet with the driver
};
/// Defined in vfd/.
AboveDriver Above(int slot, const File& file);

}  // namespace tidelane::h5
