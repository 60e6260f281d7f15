/// \file
/// The process that brings files from a tier to their own places after their programs have closed them, or ended: one for each user and tier.
///
/// Programs hand files over by a socket in the tier (HandOver); what nobody has handed over is found there. Both end the same way, in Drain.
///
/// Invariant: it may be killed at any moment, and the next one goes on.
/// Thread safety: RunMover owns its process; the others may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tier/entry.h"
#include "tier/place.h"

namespace tidelane::tier {

struct MoverOptions {
  std::chrono::milliseconds idle = std::chrono::seconds(5);  ///< then it ends
  uint64_t rate = 0;     ///< bytes a second, of all files together; 0: as fast as it goes
  unsigned streams = 2;  ///< so many files are written at once
};

/// What a program asks of the mover that it starts. One that is there already goes on as it is.
struct MoverStart {
  uint64_t rate = 0;
  unsigned niceness = 10;
  unsigned streams = 2;
};

/// Moves until there is nothing more to do. 0; or an errno, where the tier cannot be used. 0 at once where there is a mover already.
int RunMover(const std::string& path, const MoverOptions& options);

/// Hands the file of `entry` over, open as `fd`. False: there is no mover.
bool HandOver(const Place& place, const std::string& entry, int fd);
/// Whether a mover is there.
bool HasMover(const Place& place);
/// Starts one that outlives this process, is no child of it, and has nothing of it: the program `tidelane-mover` beside the plugin. False:
/// there is no such program, or no process.
bool StartMover(const Place& place, const MoverStart& start);

}  // namespace tidelane::tier
