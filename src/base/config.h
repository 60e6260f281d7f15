/// \file
/// The one table of settings: name, default, what it means. Values come from TIDELANE_* environment
/// variables.
///
/// Invariant: a setting exists exactly once, in config.cc's table; parsing is strict (a bad value
/// is an error that names the variable and what it accepts), never a silent default.
///
/// Thread safety: `Config` is a value; LoadConfig reads the environment and must not race with
/// setenv.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace tidelane {

/// `kAuto` means: decide by measurement.
enum class Toggle { kOff, kOn, kAuto };

/// What a file may have set for itself (by its access list or its connector info); the process's
/// values are the defaults.
struct FileSettings {
  bool asynchronous = true;     ///< TIDELANE_MODE=async|sync; sync writes through
  bool close_deferred = false;  ///< TIDELANE_CLOSE=wait|deferred
  bool flush_deferred = false;  ///< TIDELANE_FLUSH=wait|deferred
  bool reserve = false;         ///< TIDELANE_RESERVE=on|off: ask for space when bytes are captured
  uint64_t gap_bytes =
      4096;  ///< TIDELANE_GAP: largest gap read and rewritten to join two writes; 0: none
  uint64_t copy_limit =
      UINT64_MAX;  ///< TIDELANE_COPY_LIMIT: larger explicit writes are stored from the caller's own
                   ///< buffer, without a copy
  // What only programs set, with the functions of docs/library.md.
  bool implicit_sync = false;  ///< calls without a request write through
  bool paused = false;         ///< bytes are captured and stay, until somebody wants them stored
  uint64_t delay_us = 0;  ///< so long bytes stay before storing them begins; 0: TIDELANE_LINGER

  bool operator==(const FileSettings&) const = default;
};

struct Config : FileSettings {
  unsigned lanes = 2;  ///< TIDELANE_LANES, 1..64
  uint64_t arena_bytes =
      0;  ///< TIDELANE_ARENA (k, M, G suffixes); LoadConfig puts DefaultArenaBytes()
  uint64_t linger_us = 2000;  ///< TIDELANE_LINGER: how long a small write may wait for neighbours
  Toggle read_ahead = Toggle::kAuto;  ///< TIDELANE_READAHEAD=auto|on|off
  std::string summary;  ///< TIDELANE_SUMMARY: empty, "1" (stderr) or a path (JSON; %p: pid)
  std::string trace;    ///< TIDELANE_TRACE: empty or a path (Chrome trace JSON; %p: pid)
  std::string
      test_break;  ///< TIDELANE_BREAK, only in builds with TIDELANE_BREAK: which rule to break
};

/// Reads TIDELANE_* from the environment. An unknown TIDELANE_ name or a bad value fails with
/// EINVAL, naming the variable and the nearest valid one; `config` is then unchanged. An empty
/// value means unset. TIDELANE_HDF5_ROOT, TIDELANE_TEST_* and TIDELANE_BENCH_* belong to scripts
/// and are ignored. On success `arena_bytes` is never 0.
Status LoadConfig(Config& config);

/// Every setting with what it accepts and what it means, for a person.
std::string DescribeConfig();

/// A quarter of the memory this process may use (physical memory, cgroup v1/v2 limits, RLIMIT_AS),
/// divided by the ranks of this node (MPI launchers' local-size variables), at most 4 GiB, at least
/// 16 MiB.
uint64_t DefaultArenaBytes();

}  // namespace tidelane
