/// \file
/// Sieve or not, per write: who gathers small runs, HDF5's sieve buffer or our lanes.
///
/// Our driver takes many runs in one call (selection I/O), and HDF5 then skips its sieve: best for runs of some size,
/// because nothing is copied twice and lanes merge neighbours. An extent, however, costs about 1 µs (half of it here,
/// half on a lane), so for tiny runs the sieve is cheaper. The choice is made per write from its file selection, by
/// switching selection I/O off in the transfer list; HDF5 keeps both ways coherent.
///
/// Invariant: only writes with the default transfer list are changed: a program that brings its own has decided.
/// Cost: under 1 µs unless the selection is made of tiny runs.
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstdint>

#include "vol/instance.h"

namespace tidelane::vol {

/// Mean run length below which the sieve gathers (bytes), and how many runs a write must have to bother.
inline constexpr uint64_t kSieveBelowBytes = 256;
inline constexpr uint64_t kSieveFromRuns = 16;

/// The transfer list to write with: `dxpl` or our copy of it with selection I/O off.
hid_t ChooseSieve(Instance& instance, size_t count, void* datasets[], const hid_t memory_types[],
                  const hid_t file_spaces[], hid_t dxpl);

/// How a file selection falls into contiguous runs of elements; {0, 0} when it costs too much to say.
struct Runs {
  uint64_t count = 0;
  uint64_t elements_each = 0;
};
Runs RunsOf(h5::Library& hdf5, hid_t file_space);

/// The runs of a regular hyperslab in an extent of `rank` dimensions.
Runs RunsOfHyperslab(int rank, const hsize_t* extent, const hsize_t* stride, const hsize_t* count,
                     const hsize_t* block);

}  // namespace tidelane::vol
