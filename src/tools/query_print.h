/// \file
/// Hits on stdout: a table for people, CSV for programs.
///
/// Invariant: neither keeps more than some hundred rows.
/// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/query_scan.h"

namespace tidelane::tools {

/// The functions below return false with the reason in `error`.

/// The first `limit` hits (0: all), and how many there are. `before_lines` is called before anything is printed while the scan goes on.
bool PrintTable(QueryScan& scan, uint64_t limit, const std::function<void()>& before_lines,
                std::string& error);
/// "3 hits in 10 elements"
std::string HitsInWords(uint64_t hits, const QueryScan& scan);
/// "index", or one for each dimension.
std::vector<std::string> IndexNames(size_t rank);
/// All hits.
bool PrintCsv(QueryScan& scan, std::string& error);
/// How it is, or was, done.
void PrintExplained(const QueryScan& scan, bool counted, double seconds);

}  // namespace tidelane::tools
