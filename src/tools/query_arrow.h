/// \file
/// Hits as an Arrow stream on stdout, or as an Arrow file: coordinates, and the columns.
///
/// Invariant: a batch is written when it has some megabytes; nothing else grows with the number of hits but 24 bytes for each batch of a file.
/// Thread safety: one thread.
#pragma once

#include <string>

#include "tools/query_scan.h"

namespace tidelane::tools {

/// `path` empty: a stream on stdout. False with the reason in `error`.
bool WriteArrow(QueryScan& scan, const std::string& path, std::string& error);

}  // namespace tidelane::tools
