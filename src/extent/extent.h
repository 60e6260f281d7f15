/// \file
/// An extent: captured bytes that belong at an address of a file, and a run: neighbouring extents written as one request.
///
/// Invariant: an extent's bytes lie in one slab (or loan) and never change after capture; it owns one reference to it.
/// Thread safety: plain values; guarded by whoever holds them (the file's mutex; a run in flight by its lane).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "buffer/arena.h"

namespace tidelane {

struct Extent {
  uint64_t address = 0;
  uint64_t size = 0;
  const std::byte* data = nullptr;
  Slab* slab = nullptr;
  uint64_t epoch = 0;   ///< the call that captured it
  bool failed = false;  ///< a lane could not store it; kept until a retry is asked for
  /// Where the dataset or chunk begins that it lies in, if it is elements (file/element_places.h); 0: that is not known.
  uint64_t place = 0;

  uint64_t end() const { return address + size; }
};

/// Extents in address order inside [begin, end). Where they leave gaps, the store reads the gap and writes it back (what nobody
/// else can be writing: RunLimits).
struct Run {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t gap_bytes = 0;
  uint64_t write_begin_ns = 0;  ///< when storage
  uint64_t write_end_ns = 0;    ///< wrote it
  std::vector<Extent> extents;
  std::vector<std::map<uint64_t, Extent>::node_type>
      nodes;  ///< in which they were queued: they can return without memory

  uint64_t size() const { return end - begin; }
  bool Overlaps(uint64_t from, uint64_t to) const { return from < end && begin < to; }
};

/// A piece of a read: from pending bytes, or (data == nullptr) from storage. Owns a slab reference when `slab` is set.
struct Piece {
  uint64_t address = 0;
  uint64_t size = 0;
  const std::byte* data = nullptr;
  Slab* slab = nullptr;
};

}  // namespace tidelane
