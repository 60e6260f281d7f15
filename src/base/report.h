/// \file
/// The end-of-run summary: counters and fallbacks as a short table on stderr, or as JSON in a file.
///
/// Thread safety: may be called from any thread; concurrent calls write one after the other.
#pragma once

#include <string>

#include "base/status.h"

namespace tidelane {

/// `where` is TIDELANE_SUMMARY's value: empty (nothing), "1" (table on stderr) or a path (JSON,
/// written to a temporary name and renamed, so that a reader never sees half of it; %p becomes the
/// process id).
Status WriteSummary(const std::string& where);

}  // namespace tidelane
