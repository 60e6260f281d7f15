/// \file
/// How much memory this process may use, and how many ranks of one job share the node: what the
/// arena's default size follows from. And how much address space is left, where that is limited (`ulimit -v`).
///
/// Thread safety: reads the environment and files; must not race with setenv. AddressSpaceLeft: any thread, at any time.
#pragma once

#include <cstdint>
#include <string>

namespace tidelane {

/// The smallest of physical memory, the limits of control groups and RLIMIT_AS, RLIMIT_DATA. `root` stands in front of /proc and /sys; tests give a directory of their own.
uint64_t UsableMemoryBytes(const std::string& root = "");
/// The same for who knows the limit of the control groups, which is looked for in some files of each level.
uint64_t UsableMemoryBelow(uint64_t group_limit);

/// Bytes that RLIMIT_AS and RLIMIT_DATA still allow this process; UINT64_MAX without limits. Asks the system each time (0.3 us
/// without limits, some us with them): limits and what the program has change.
uint64_t AddressSpaceLeft();
/// Whether `bytes` more of it may be ours: the program and HDF5, which take no refusal well, must find the larger part of what is left.
inline bool MayTakeAddressSpace(uint64_t bytes) { return bytes <= AddressSpaceLeft() / 8; }

/// From the MPI launcher's variables; 1 when none is set.
unsigned RanksOnThisNode();

}  // namespace tidelane
