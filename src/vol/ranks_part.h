/// \file
/// What a rank writes with one call to datasets that other ranks write, too: how much, in how many pieces, and where.
///
/// Invariant: bytes and places are exactly those selected, pieces an estimate. What a refusal says holds for this rank alone.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/counters.h"
#include "ranks/write_footprint.h"
#include "vol/library_state.h"
#include "vol/writing.h"

namespace tidelane::vol {

struct RankSelection {
  std::optional<Fallback> refusal;
  uint64_t bytes = 0;
  uint64_t pieces = 0;
  std::vector<Place> places;
};

/// Without the reasons that lie in the transfer list. Throws std::bad_alloc.
RankSelection PartsOf(LibraryState& library, const Writes& writes, bool collective, hid_t dxpl);

/// How what a rank reads of one dataset lies in it. All zero where that is not known: of chunks with filters HDF5 reads whole ones.
struct Scatter {
  uint64_t bytes = 0;
  uint64_t pieces = 0;  ///< about
  uint64_t span = 0;    ///< bytes from the first of them to the last one
};
Scatter ScatterOf(LibraryState& library, void* dataset, hid_t file_space, hid_t dxpl);

/// Lists that change elements on their way, or that want HDF5's older ways, are HDF5's.
bool IsKnownTransfer(LibraryState& library, hid_t dxpl);

}  // namespace tidelane::vol
