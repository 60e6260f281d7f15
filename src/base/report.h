/// \file
/// Writes the end-of-run summary to where it was asked for.
///
/// Thread safety: may be called from any thread; concurrent calls write one after the other.
#pragma once

#include "base/config.h"
#include "base/status.h"

namespace tidelane {

/// `config.summary` is TIDELANE_SUMMARY's value: empty (nothing), "1" (table on stderr) or a path
/// (JSON, written to a temporary name and renamed, so that a reader never sees half of it; %p
/// becomes the process id).
Status WriteSummary(const Config& config);

}  // namespace tidelane
