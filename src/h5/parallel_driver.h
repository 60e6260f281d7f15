/// \file
/// The callbacks that are put into MPI's driver, for rooms that do not know them: vfd/ writes them and registers them here,
/// vol/ has them put into files. As for the serial driver (h5/driver.h), whose rules on registering hold here, too.
///
/// Thread safety: tables may be registered and looked up from any thread; their functions are called under HDF5's lock.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/counters.h"
#include "h5/hdf5.h"

namespace tidelane::h5 {

class Library;
class ParallelFile;
class ParallelReading;
struct ParallelOpening;

struct ParallelDriverTable {
  /// Collective, after the native open of `name`, whose driver has the id `driver` and gave `vfd_handle` when it was asked for
  /// its handle. From now on the driver's raw writes come to us where a CallScope says so. nullptr, the same on all ranks:
  /// the file stays native, and `reason` says why. A rank that does not want it, as its settings are its own, leaves `reason`
  /// as it is; the others do not wait for it in vain.
  std::shared_ptr<ParallelFile> (*capture)(Library& library, hid_t driver, void* vfd_handle,
                                           const char* name, bool wanted, Fallback& reason);
  /// After the native open of a file that is not captured: this rank finds what other processes of this machine hold of it
  /// stored.
  void (*watch)(Library& library, hid_t driver, void* vfd_handle, const char* name, bool writable);
  /// Whether a file of that name can be hidden until it is published: MPI-IO has no meaning of its own for the name, or for the file
  /// system.
  bool (*may_hide)(const char* name);
  /// After the native open of a file that is not published yet, before it is captured or watched: its close ends the opening. False, and
  /// nothing is taken: that cannot be.
  bool (*publish)(hid_t driver, void* vfd_handle, std::unique_ptr<ParallelOpening>& opening);
  /// What the program calls the file that has been opened so and has that serial number; nullptr: there is none.
  const std::string* (*name_of)(int slot, unsigned long serial);
  /// The file `name` is opened, with whatever driver: where it is captured already, this rank captures no more, and what the
  /// ranks of its machine held is stored. HDF5 does not see that it is the same file.
  void (*note_opened_again)(int slot, const char* name);
  /// Whether any captured file is open.
  bool (*has_files)(int slot);
  /// The captured file with that serial number; nullptr: none.
  std::shared_ptr<ParallelFile> (*file_with_serial)(int slot, unsigned long serial);
  /// As `capture`, of a file that was opened for reading only.
  std::shared_ptr<ParallelReading> (*capture_reading)(Library& library, hid_t driver,
                                                      void* vfd_handle, const char* name,
                                                      bool wanted, Fallback& reason);
  /// Whether any such file is open.
  bool (*has_readings)(int slot);
  /// The one with that serial number; nullptr: none.
  std::shared_ptr<ParallelReading> (*reading_with_serial)(int slot, unsigned long serial);
};

namespace internal {
extern std::atomic<const ParallelDriverTable*> parallel_driver;
}

void RegisterParallelDriver(const ParallelDriverTable& table);
inline const ParallelDriverTable& ParallelDriver() {
  return *internal::parallel_driver.load(std::memory_order_acquire);
}

}  // namespace tidelane::h5
