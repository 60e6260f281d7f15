/// \file
/// Brings a file from a tier to its own place.
///
/// The file is moved by who has its two claims (device/claim.h) and HDF5's lock as a reader has it: readers with Tidelane go on and see it through
/// the log, who wants to write it waits, and HDF5 without Tidelane refuses it until its superblock is written, last of all.
///
/// Invariant: what is killed at any point begins again, here or in whoever opens the file, and comes to the same.
/// Thread safety: all functions may be called from any thread, one at a time for an entry.
#pragma once

#include <string>

#include "base/status.h"
#include "device/device.h"
#include "log/recovery.h"
#include "publish/directory_entry.h"
#include "tier/entry.h"
#include "tier/pace.h"
#include "tier/place.h"

namespace tidelane::tier {

enum class Drained {
  kYes,      ///< the file has everything, and the tier nothing of it
  kUseless,  ///< the file is another one now, or is gone: the tier's log was of no use to anybody
  kInUse,    ///< a program has it
  kLost,     ///< nobody knows where the file is now: the log stays
  kFailed    ///< the log stays
};

/// Opens the file of an entry by its path, or by another name in its folder, as programs rename what they have written. 0 or an errno; ENOENT:
/// nothing is there that it could be.
int OpenFileOf(const Entry& entry, Descriptor& file);

/// Removes what the tier has by the entry's name of a file that is at `path`, or was, but for what somebody has open.
void RemoveEntry(const Place& place, const std::string& entry, const std::string& path);

/// How far a file had come when somebody asked for it.
struct Interrupted {
  log::Progress progress;
  FileVersion version;  ///< of the file: if it is another one now, somebody has changed it
};

/// `handed`: an opening of the file, to write and read, which has no locks afterwards; none: it is opened by its path. `why`: of a failure.
/// `spares`: so many bytes of its segments may be kept for others (tier/spares.h). `pace`: of what is written, if any. `interrupted`: to go on
/// there, if possible.
Drained Drain(const Place& place, const Entry& entry, const Descriptor& handed, uint64_t spares,
              Status& why, Pace* pace = nullptr, Interrupted* interrupted = nullptr);

}  // namespace tidelane::tier
