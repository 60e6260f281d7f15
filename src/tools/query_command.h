/// \file
/// `tidelane query`: the elements of a file's datasets that fulfil a condition.
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

int Query(const Arguments& arguments);

}  // namespace tidelane::tools
