/// \file
/// Who learned what where: names of file systems and programs that stay the same from run to run.
///
/// Thread safety: reads the environment and files; must not race with setenv.
#pragma once

#include <sys/types.h>

#include <string>

namespace tidelane::model {

/// "ext4 /dev/sda1", "lustre mgs@tcp:/work", "tmpfs tmpfs": kind and source of the file system with this device number;
/// "device 8:1" where the system does not say. `root` stands in front of /proc, for tests.
std::string FileSystemName(dev_t device, const std::string& root = "");

/// The program's file name; for an interpreter's script, that one's: "python3 train.py".
std::string ProgramName(const std::string& root = "");

/// $XDG_STATE_HOME/tidelane/history, or ~/.local/state/tidelane/history. Empty where there is no home, or it is somebody
/// else's (sudo leaves the variable as it is).
std::string DefaultHistoryFolder();

/// Of the job, from the MPI launcher's variables; 1 and 0 when none is set.
unsigned RanksOfJob();
unsigned RankInJob();

}  // namespace tidelane::model
