/// \file
/// `tidelane predict`: which mode the cost model (src/model/) would choose for a program that is described, and what that
/// would gain, with error bars. With `--read`, what it gains that lanes read ahead.
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

int Predict(const Arguments& arguments);

}  // namespace tidelane::tools
