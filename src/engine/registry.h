/// \file
/// The files that this process knows, and the lock that guards them.
///
/// Thread safety: `files` is guarded by `mutex`, which comes before a file's own.
#pragma once

#include "base/annotations.h"
#include "engine/file_table.h"

namespace tidelane {

struct Registry {
  Mutex mutex;
  FileTable files TL_GUARDED_BY(mutex);
};

}  // namespace tidelane
