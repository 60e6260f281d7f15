/// \file
/// `tidelane report` and `tidelane trace`: what runs left behind, for people and for other programs.
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

int Report(const Arguments& arguments);
int Trace(const Arguments& arguments);

}  // namespace tidelane::tools
