/// \file
/// A file's content while it is open: what is pending, over what its store has.
///
/// Invariant: as byte_source.h; storage is asked with no lock held.
/// Thread safety: as byte_source.h; what is pending answers for itself.
#pragma once

#include <cstdint>
#include <vector>

#include "content/byte_source.h"
#include "extent/extent.h"
#include "lane/lanes.h"
#include "store/store.h"

namespace tidelane {

/// Pieces of a read, whose slabs stay until it is done or given up.
class Pieces {
 public:
  Pieces() = default;
  ~Pieces() {
    for (const Piece& piece : list) {
      if (piece.slab != nullptr) Arena::Unref(piece.slab);
    }
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  std::vector<Piece> list;
};

/// What is not stored yet.
class PendingBytes {
 public:
  virtual ~PendingBytes() = default;

  /// Splits [address, address + size) into what is pending and what is not; empty: nothing is. Of lent bytes (buffer/loan.h), which
  /// are the program's again as soon as they are stored, a copy is in `out` already, and the piece has data but no slab;
  /// `lent` says whether there were any. `stored`: storage has nothing from there on, and nobody else writes there.
  virtual void Overlay(uint64_t address, uint64_t size, std::byte* out, Pieces& pieces, bool& lent,
                       uint64_t& stored) = 0;
};

/// Reads [address, address + size) of `pending` over `store`. `path` is for messages.
Status ReadContent(PendingBytes& pending, Store& store, Lanes& lanes, const std::string& path,
                   Reader reader, uint64_t address, uint64_t size, void* buffer, ReadTimes& times);

}  // namespace tidelane
