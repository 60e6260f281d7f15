/// \file
/// `tidelane probe`: what `tidelane check` asks a copy of itself, because an HDF5 that is loaded may
/// crash, hang or end the process. Not for people.
///
///   probe load LIBRARY          whether it can be loaded at all
///   probe about LIBRARY         version and kind, as JSON on stdout
///   probe mpi LIBRARY           the threads that its MPI allows
///   probe gpus LIBRARY          the GPUs that CUDA's or HIP's driver tells of, as JSON on stdout
///   probe write LIBRARY FILE MIB   writes a file of known content
///   probe read LIBRARY FILE MIB    fails unless all of it is there
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

int Probe(const Arguments& arguments);

}  // namespace tidelane::tools
