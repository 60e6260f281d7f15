/// \file
/// `tidelane completion`: what makes a shell complete our commands, options and values, from the
/// table of commands.
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

int Completion(const Arguments& arguments);

}  // namespace tidelane::tools
