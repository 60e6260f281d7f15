/// \file
/// `tidelane recover`: makes files that were journalled what they were at their last commit, and removes what programs that were killed have
/// left of files that they had not published (publish=atomic).
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

int Recover(const Arguments& arguments);

}  // namespace tidelane::tools
