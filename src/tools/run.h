/// \file
/// `tidelane run`: a program with Tidelane, and at its end what happened.
///
/// Invariant: the program's own words and status are left as they are: what we say goes to stderr,
/// after its end.
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

int Run(const Arguments& arguments);

}  // namespace tidelane::tools
