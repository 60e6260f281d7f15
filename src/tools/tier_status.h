/// \file
/// `tidelane status --tier`: what the fast tiers have, and how it goes.
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

/// Of all files, or of those that the operands name, or that lie below them. `--watch`: again and again, until nothing is there or the
/// program is interrupted.
int ShowTiers(const Arguments& arguments);

}  // namespace tidelane::tools
