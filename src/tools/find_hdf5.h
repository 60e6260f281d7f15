/// \file
/// The HDF5 that a program uses: the library it is linked to, or the one that Python's h5py brings.
///
/// Invariant: the program itself is not run; a Python only to import h5py.
///
/// Thread safety: one thread.
#pragma once

#include <string>
#include <vector>

namespace tidelane::tools {

struct FoundHdf5 {
  std::string path;  ///< of the library; empty: not found
  std::string how;   ///< "h5py's own, in …", or why there is none
};

/// `place` is a library, or the prefix of an installation.
FoundHdf5 Hdf5At(const std::string& place);
/// Of a program: an ELF file, a script or a Python.
FoundHdf5 Hdf5Of(const std::string& program);
/// HDF5_ROOT, h5cc's or the dynamic linker's; else Python's.
FoundHdf5 Hdf5OfThisMachine();

/// Why a program that has ended did not load the plugin, in a sentence.
std::string WhyNotLoaded(const std::vector<std::string>& command);

}  // namespace tidelane::tools
