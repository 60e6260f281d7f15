/// \file
/// The one copy that a captured write costs.
///
/// Large copies use streaming stores: the bytes are next read by a lane much later, and keeping
/// them out of the cache leaves it to the program.
///
/// Thread safety: none needed.
#pragma once

#include <cstddef>

namespace tidelane {

/// Copies like memcpy. `total` is the size of the whole write that this piece belongs to, in bytes;
/// it decides how.
void CopyBytes(void* to, const void* from, size_t n, size_t total);

}  // namespace tidelane
