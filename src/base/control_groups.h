/// \file
/// The control groups that bound this process's memory and processors: version 1 and 2 of cgroups, and every level, since the limit of an ancestor
/// binds, too.
///
/// Without C++ streams: nothing else in the plugin uses them, and every program would pay for setting up their locales.
///
/// Invariant: nothing is kept: limits are changed while processes run, and these move to other groups.
/// Thread safety: reads files; any thread, at any time.
/// Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst and scheduler/sched-bwc.rst of Linux.
#pragma once

#include <cstdint>
#include <string>

namespace tidelane {

/// The smallest limit, in bytes; UINT64_MAX without one. Of version 2 memory.high counts as well as memory.max: beyond it the process is
/// slowed down until it stands still. `root` stands in front of /proc and /sys; tests give a directory of their own.
uint64_t MemoryGroupLimit(const std::string& root = "");

/// Bytes that may still be taken without anybody being killed: what is left below each limit beside an eighth of it, which is
/// the program's. Pages of files do not count as taken, since the system takes them back. UINT64_MAX without limits; then it costs some
/// ten microseconds. 0 where there is no memory to find out.
uint64_t MemoryGroupLeft(const std::string& root = {}) noexcept;

/// How many processors' time the smallest quota is, rounded up; UINT64_MAX without one, or without memory to find out.
uint64_t ProcessorGroupLimit(const std::string& root = {}) noexcept;

}  // namespace tidelane
