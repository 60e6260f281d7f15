/// \file
/// How much memory this process may use, and how many ranks of one job share the node: what the
/// arena's default size follows from.
///
/// Thread safety: reads the environment and files; must not race with setenv.
#pragma once

#include <cstdint>
#include <string>

namespace tidelane {

/// The smallest of physical memory, the cgroup limits (v1 and v2, every level up) and RLIMIT_AS,
/// RLIMIT_DATA. `root` stands in front of /proc and /sys; tests give a directory of their own.
uint64_t UsableMemoryBytes(const std::string& root = "");

/// From the MPI launcher's variables; 1 when none is set.
unsigned RanksOnThisNode();

}  // namespace tidelane
