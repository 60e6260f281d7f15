/// \file
/// The settings in force, and where each came from. What there is to set, and what it means, says
/// base/settings.h.
///
/// Sources, each overriding the ones before it:
///   1. the built-in defaults;
///   2. the file that TIDELANE_CONFIG names (lines `name = value`, comments from #);
///   3. the HDF5_ASYNC_* variables of the existing asynchronous connector;
///   4. TIDELANE_* variables;
///   5. the connector info string in HDF5_VOL_CONNECTOR ("tidelane close=deferred;arena=256M").
/// A file's own settings (base/connector_info.h) come on top of that, for that file.
///
/// Invariant: parsing is strict (an unknown name or a bad value is an error that says where it
/// stands and what would be right), never a silent default.
///
/// Thread safety: `Config` is a value; LoadConfig reads the environment and must not race with
/// setenv.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace tidelane {

/// `kAuto` means: decide by measurement.
enum class Toggle { kOff, kOn, kAuto };

/// `kAuto`: asynchronous where that hides something (model/cost_model.h).
enum class Mode { kAuto, kAsync, kSync };

/// What compresses and decompresses (codec/deflate.h).
enum class DeflateWith {
  kLibdeflate,  ///< faster than zlib, about as small
  kIsal,        ///< another five times as fast, less small; where it is installed
  kZlib,        ///< byte by byte what native HDF5 writes (with the same version of zlib)
  kNative,      ///< HDF5 itself, with its own zlib
};

/// Whose chunks lanes filter.
enum class ParallelWrites {
  kOff,
  kOn,
  kSerial,  ///< those of files that no other rank has open
};

/// Which writes of an MPI program are deferred.
enum class Consistency {
  kAuto,    ///< those that other ranks cannot miss
  kMpi,     ///< all
  kStrict,  ///< none, but those with an event set
};

/// Which ends a file survives that is open for writing (docs/formats/log.md).
enum class Journal {
  kOff,
  kProcess,  ///< the program's: the file is its last commit then, or newer
  kPower,    ///< and the machine's
};

/// Which flushes of a journalled file commit: those that are due by either. At least one is not 0.
struct JournalCommits {
  uint64_t flushes = 1;  ///< every so many flushes since the last commit; 0: number does not count
  uint64_t us = 0;       ///< the first one so long after the last commit; 0: time does not count

  bool operator==(const JournalCommits&) const = default;
};

/// What a file may have set for itself (by its access list or its connector info); the process's
/// values are the defaults.
struct FileSettings {
  Mode mode = Mode::kAuto;      ///< kSync writes through
  bool close_deferred = false;  ///< close=wait|deferred|tier|tier_deferred
  bool close_in_tier = false;   ///< the last two of these
  bool flush_deferred = false;  ///< flush=wait|deferred
  bool reserve = false;         ///< ask for space when bytes are captured
  bool publish_atomic = false;  ///< publish=inplace|atomic
  Journal journal = Journal::kOff;
  bool journal_required = false;  ///< a file that cannot be journalled is not opened
  JournalCommits journal_commits;
  /// Largest gap that is read and rewritten to join writes; 0: none; UINT64_MAX: learned.
  uint64_t gap_bytes = UINT64_MAX;
  /// Larger explicit writes are stored from the caller's own buffer, without a copy.
  uint64_t copy_limit = UINT64_MAX;
  Consistency consistency = Consistency::kAuto;  ///< of files that MPI programs share
  uint64_t collective_piece = UINT64_MAX;  ///< smaller pieces are left to MPI; UINT64_MAX: learned
  // What only programs set, with the functions of docs/library.md.
  bool implicit_sync = false;  ///< calls without a request write through
  bool paused = false;         ///< bytes are captured and stay, until somebody wants them stored
  uint64_t delay_us = 0;       ///< so long bytes stay before storing them begins; 0: linger

  bool operator==(const FileSettings&) const = default;
  /// Whether flushes or closes return before everything is stored.
  bool defers() const { return close_deferred || flush_deferred; }
};

/// One setting as it is in force, for a person.
struct SettingValue {
  std::string name;    ///< "close"; or a variable that has no effect here
  std::string value;   ///< as it could be given
  std::string origin;  ///< "default", "run.conf:3", "TIDELANE_CLOSE", "HDF5_VOL_CONNECTOR"
  std::string note;    ///< why a variable has no effect; empty for settings
};

inline constexpr unsigned kLanes = 2;  // for everything
inline constexpr unsigned kMostLanes = 64;

struct Config : FileSettings {
  unsigned lanes = 0;  ///< 0: kLanes, and for filters as many as there are processors
  unsigned lanes_for_all() const { return lanes != 0 ? lanes : kLanes; }
  uint64_t arena_bytes = 0;    ///< LoadConfig puts DefaultArenaBytes()
  bool forked_defers = false;  ///< also where this process came from a fork
  uint64_t linger_us = 2000;   ///< how long a small write may wait for neighbours
  Toggle read_ahead = Toggle::kAuto;
  uint64_t read_ahead_limit =
      UINT64_MAX;  ///< bytes fetched ahead at most; half the arena in any case
  DeflateWith deflate = DeflateWith::kLibdeflate;
  bool parallel_reads = true;  ///< lanes help to decode filtered chunks that are read
  ParallelWrites parallel_writes =
      ParallelWrites::kOn;       ///< lanes run the filters of chunks that are written
  std::string history = "auto";  ///< folder of what earlier runs learned; empty: none
  std::string tier;              ///< empty: none; "memory", or a folder
  uint64_t tier_bytes = 0;       ///< what it may have; 0: chosen
  uint64_t tier_rate = 0;        ///< bytes a second of its mover; 0: as fast as it goes
  unsigned tier_streams = 2;     ///< so many files the mover writes at once
  unsigned tier_nice = 10;       ///< of the mover
  bool tier_drained = false;     ///< somebody drains it before the job ends
  std::string summary;           ///< empty, "1" (stderr) or a path (JSON; %p: process id)
  std::string trace;             ///< empty or a path (Chrome trace JSON; %p: process id)
  std::string config_file;       ///< where settings were read from; may be empty
  std::string test_break;  ///< only in builds with TIDELANE_BREAK: which rules to break, as a+b

  std::map<std::string, std::string, std::less<>> origins;  ///< of what is not the default
  std::vector<SettingValue> without_effect;                 ///< HDF5_ASYNC_* variables
};

/// Reads all sources. A mistake in one of them fails with EINVAL (or what reading the file came to)
/// and a message for a person; `config` is then unchanged. An empty value means: not set.
/// TIDELANE_HDF5_ROOT, TIDELANE_TEST_* and TIDELANE_BENCH_* belong to scripts and are ignored.
/// On success `arena_bytes` is never 0.
Status LoadConfig(Config& config);

/// What is in force, in the table's order, then variables that were given and have no effect.
std::vector<SettingValue> EffectiveSettings(const Config& config);

/// A quarter of the memory this process may use (physical memory, RLIMIT_AS), an eighth where a control group limits it.
uint64_t ShareOfMemory();
/// The same, divided by the ranks of this node (MPI launchers' local-size variables), at most 4 GiB, at least
/// 16 MiB, in whole MiB.
uint64_t DefaultArenaBytes();

}  // namespace tidelane
