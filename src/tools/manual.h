/// \file
/// The man page tidelane(1), from the table of commands.
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

/// Prints it; the build does so.
int Manual(const Arguments& arguments);

}  // namespace tidelane::tools
