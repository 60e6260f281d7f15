/// \file
/// A run as one HTML page: summaries and timelines, with everything that draws them inside. Nothing
/// is fetched from anywhere.
///
/// Thread safety: pure but for the file written.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tools/summary_file.h"
#include "tools/timeline.h"

namespace tidelane::tools {

struct PageContent {
  std::string command;  ///< the program's command line, if known
  std::vector<ProcessSummary> processes;
  Timeline timeline;  ///< arranged; may be empty
};

Status WritePage(PageContent content, const std::string& path);

}  // namespace tidelane::tools
