/// \file
/// Hits in a new HDF5 file: a dataset for each column, one of coordinates, and where all this came from.
///
/// Invariant: each dataset has as many elements as there are hits, in the order of the scan. Memory is bounded by about a megabyte for each.
/// Thread safety: one thread.
#pragma once

#include <string>

#include "tools/query_scan.h"

namespace tidelane::tools {

struct Written {
  std::string path;    ///< of the new file; what is there is truncated
  std::string query;   ///< as it was typed
  std::string source;  ///< the file's name, likewise
};

/// False with the reason in `error`.
bool WriteHits(const Hdf5& hdf5, QueryScan& scan, const Written& written, std::string& error);

}  // namespace tidelane::tools
