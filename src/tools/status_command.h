/// \file
/// `tidelane status`: what state files are in.
///
/// Invariant: nothing is changed.
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

int ShowStatus(const Arguments& arguments);

}  // namespace tidelane::tools
