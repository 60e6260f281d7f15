/// \file
/// `tidelane status --tier`: what the fast tiers have, and how it goes.
///
/// Thread safety: one thread.
#pragma once

namespace tidelane::tools {

/// `watches`: again and again, until nothing is there or the program is interrupted.
int ShowTiers(bool as_json, bool watches);

}  // namespace tidelane::tools
