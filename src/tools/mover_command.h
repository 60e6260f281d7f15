/// \file
/// `tidelane mover`: the mover of a tier in the foreground, where and how the user wants it; otherwise programs start one by themselves.
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

int MoveFiles(const Arguments& arguments);

}  // namespace tidelane::tools
