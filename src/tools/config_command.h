/// \file
/// `tidelane config`: the settings in force, where each came from, and what is wrong with them.
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

int ShowConfig(const Arguments& arguments);

}  // namespace tidelane::tools
