/// \file
/// Tells h5/ who answers queries (h5/query_operation.h).
///
/// Thread safety: may be called from any thread, any number of times.
#pragma once

namespace tidelane::query {

void RegisterOperation();

}  // namespace tidelane::query
