/// \file
/// `tidelane drain`: brings files from a fast tier to their own places, and waits until they are there.
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

int DrainFiles(const Arguments& arguments);
/// All that is in the tiers, without a word where nothing was.
void DrainAll();

}  // namespace tidelane::tools
