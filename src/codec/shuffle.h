/// \file
/// HDF5's shuffle filter: the first bytes of all elements, then the second bytes of all, and so on.
/// Bytes beyond the last whole element stay at the end.
///
/// Invariant: Unshuffle undoes Shuffle; both write exactly `from.size()` bytes.
///
/// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <span>

namespace tidelane {

/// `to` has room for `from.size()` bytes and does not overlap `from`; `element` is not 0.
void Shuffle(std::span<const std::byte> from, size_t element, std::byte* to);
void Unshuffle(std::span<const std::byte> from, size_t element, std::byte* to);

}  // namespace tidelane
