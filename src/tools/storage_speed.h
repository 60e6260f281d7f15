/// \file
/// How quick the storage under a folder is, in a few seconds and beside a copy in memory.
///
/// Invariant: leaves nothing behind; writes at most 128 MiB, 32 of it to the disk itself.
///
/// Thread safety: one thread.
#pragma once

#include <string>

#include "base/status.h"

namespace tidelane::tools {

struct StorageSpeed {
  double copy_rate = 0;      ///< bytes a second, memory to memory
  double write_rate = 0;     ///< as a program sees it, in requests of 1 MiB
  double disk_rate = 0;      ///< until the disk has it
  double read_rate = 0;      ///< from the disk, where the system forgets what it keeps in memory
  double small_seconds = 0;  ///< for a request of 4 KiB
  bool locks = false;        ///< flock works
  std::string file_system;   ///< "ext4", "nfs"; may be empty
};

Status MeasureStorage(const std::string& folder, StorageSpeed& speed);

}  // namespace tidelane::tools
