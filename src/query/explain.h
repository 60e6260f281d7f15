/// \file
/// What a scan does and has done, as JSON (query/exports.h).
///
/// Thread safety: under HDF5's lock.
#pragma once

#include <string>

#include "query/scan.h"

namespace tidelane::query {

std::string Explain(const Scan& scan);

}  // namespace tidelane::query
