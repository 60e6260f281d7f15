/// \file
/// What a program that asked for it is told while it runs: files that run natively, and why.
///
/// Who listens gives two functions: `tell`, which is to run where the program can be spoken to, and
/// `schedule`, which sees to that and returns at once (Python's Py_AddPendingCall). We are inside
/// HDF5 then, perhaps with its lock, and must not call a program from there.
///
/// Invariant: bounded: so many notices are kept until they are taken, none where nobody listens; a
/// file and a reason are told once.
///
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <string>
#include <vector>

#include "base/counters.h"

namespace tidelane {

struct Notice {
  Fallback reason;
  std::string path;
};

using TellNotices = int (*)(void* nothing);
using ScheduleTelling = int (*)(TellNotices tell, void* nothing);

/// From now on; nullptr: nobody listens any more.
void ListenForNotices(ScheduleTelling schedule, TellNotices tell);

/// The file at `path` runs natively because of `reason`.
void NoteNative(Fallback reason, const std::string& path);

/// Those that nobody has taken yet.
std::vector<Notice> TakeNotices();

}  // namespace tidelane
