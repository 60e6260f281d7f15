/// \file
/// `tidelane check`: whether an HDF5, a machine and a folder are fit for Tidelane, and a test that it
/// works there.
///
/// Thread safety: one thread.
#pragma once

#include "tools/arguments.h"

namespace tidelane::tools {

int Check(const Arguments& arguments);

}  // namespace tidelane::tools
