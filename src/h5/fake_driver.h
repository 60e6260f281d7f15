/// \file
/// For tests below vfd/: a driver class that is sec2's own under another name.
///
/// Invariant: registered beside sec2, it is another driver to HDF5, and behaves the same.
/// Thread safety: made once, by the first caller.
#pragma once

#include <cstdio>

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

}  // namespace tidelane::h5
