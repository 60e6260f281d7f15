/// \file
/// What a program is told of a file that it wants journalled, and that cannot be (journal_required).
///
/// Thread safety: any thread.
#pragma once

#include <string_view>

#include "base/counters.h"
#include "base/status.h"

namespace tidelane {

/// The failure of what would have it written without a journal.
Status NotJournalled(Fallback reason, std::string_view path);

}  // namespace tidelane
