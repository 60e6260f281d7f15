/// \file
/// For tests below vfd/: a driver whose class is sec2's own under another name, and of whose files we know nothing.
///
/// Invariant: its class, registered beside sec2's, is another driver to HDF5, and behaves the same.
/// Thread safety: the class is made once, by the first caller.
#pragma once

#include <cstdio>
#include <memory>

#include "h5/driver.h"
#include "h5/hdf5.h"

namespace tidelane::h5 {

inline const H5FD_class_t* Sec2Clone() {
  static H5FD_class_t* const made = [] {
    auto* clone = new H5FD_class_t;
    const char* name = "fake_driver.tmp";
    const hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_sec2(fapl);
    H5FD_t* file =
        H5FDopen(name, H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC, fapl, haddr_t{1} << 40);
    *clone = *file->cls;
    clone->value = 601;
    clone->name = "fake";
    clone->terminate = nullptr;
    H5FDclose(file);
    H5Pclose(fapl);
    std::remove(name);
    return clone;
  }();
  return made;
}

/// A table to register, as it is or with functions of the test's own.
inline DriverTable FakeDriver() {
  DriverTable table = Driver();
  table.driver_class = [](int) { return Sec2Clone(); };
  return table;
}

}  // namespace tidelane::h5
