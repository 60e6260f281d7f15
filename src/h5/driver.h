/// \file
/// The driver of serial files, for rooms that do not know it: vfd/ writes it and registers it here, vol/ puts it on files
/// and asks what it has open.
///
/// A table is registered once, by the plugin's entry points (plugin/plugin.cc) before they hand out a class: nothing can
/// be open before. Until then, and in programs that link no driver (tests of lower rooms), there is one that has nothing
/// open, so that nobody need ask whether there is any.
///
/// Invariant: a registered table is complete, constant, and there until the process ends.
/// Thread safety: tables may be registered and looked up from any thread; their functions are called under HDF5's lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "h5/hdf5.h"

namespace tidelane {
class File;
}

namespace tidelane::h5 {

/// What the libhdf5 in `slot` does between its datasets and our driver of a file.
struct AboveDriver {
  uint64_t base_address = 0;  ///< added to the addresses in the file: the size of a user block
  uint64_t allocated_end = UINT64_MAX;  ///< of the file; beyond it HDF5 reads nothing
  bool page_buffer = false;             ///< elements may be there, and not yet with the driver
};

struct DriverTable {
  /// The class to register with the libhdf5 in `slot`; nullptr: there is no driver.
  const H5FD_class_t* (*driver_class)(int slot);
  /// Whether any file is open: asking HDF5 for a serial number costs a microsecond, and many programs' files are not ours.
  bool (*has_files)(int slot);
  /// What is open under the serial number (`fileno`) that the libhdf5 in `slot` gave it; nullptr: nothing.
  std::shared_ptr<File> (*file_with_serial)(int slot, unsigned long serial);
  AboveDriver (*above)(int slot, const File& file);
  /// HDF5's own side of what is open under that number, until it is closed; nullptr: nothing of ours.
  H5FD_t* (*open_with_serial)(int slot, unsigned long serial);
  /// Whether HDF5 sees a driver that takes one piece in a call, as sec2 does, or many. It looks when a transfer begins, and
  /// goes through its sieve buffer where pieces come singly. Returns what it saw until now.
  bool (*take_singly)(H5FD_t* open, bool singly);
  /// The libhdf5 in `slot` has ended. What it has left open by then, as it has lost count of its own objects (after a create that failed, say), it
  /// will never close: that is done here, as if it had.
  void (*close_left_open)(int slot);
  /// Counts the pieces of elements that the libhdf5 in `slot` has read or written singly: its sieve buffer does, and its chunk cache.
  uint64_t (*single_pieces)(int slot);
};

namespace internal {
extern std::atomic<const DriverTable*> driver;
}

/// The same table again changes nothing; another one takes its place, which tests do before they open files.
void RegisterDriver(const DriverTable& table);
inline const DriverTable& Driver() { return *internal::driver.load(std::memory_order_acquire); }

}  // namespace tidelane::h5
