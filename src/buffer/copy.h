/// \file
/// The one copy that a captured write costs.
///
/// Pieces of large writes use streaming stores: the bytes are next read by a lane, often much
/// later, and need not be fetched into the caller's cache to be overwritten there.
///
/// Thread safety: none needed.
#pragma once

#include <cstddef>

namespace tidelane {

/// Copies like memcpy. `total` is the size of the whole write that this piece belongs to, in bytes;
/// it decides how.
void CopyBytes(void* to, const void* from, size_t n, size_t total);

}  // namespace tidelane
