/// \file
/// A scan that lanes make after the call: they read, decode and compare block by block, and keep which elements match.
///
/// It is a deferred read of all that its columns have in the file (content/parallel_read.h): whoever would change those bytes ends it first, so that it
/// finds what the call would have found.
///
/// Invariant: it knows nothing of HDF5, and may be destroyed by any thread. Memory: a bit for each element of those blocks that have hits; and a tile of
/// each column for each thread that is looking now.
/// Thread safety: as parallel_read.h; `hits` when it is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/annotations.h"
#include "chunk/stored_array.h"
#include "content/parallel_read.h"
#include "predicate/bits.h"
#include "query/blocks.h"
#include "query/filter.h"
#include "query/scan.h"

namespace tidelane::query {

class LateScan final : public ParallelRead {
 public:
  /// What a scan would look at: its blocks, its filter, and its columns, whose records lie in `arrays` (one for each of the scan's readers, all of
  /// one file).
  LateScan(const Scan& scan, std::vector<StoredArray> arrays, const Blocks& blocks, Lanes& lanes,
           unsigned helpers);

  /// Of all blocks that have any, by the row-major positions of their first elements.
  const std::map<uint64_t, predicate::Bits>& hits() const TL_NO_ANALYSIS { return hits_; }

  uint64_t FileBytes() const override { return ranges_.bytes(); }
  bool Touches(uint64_t begin, uint64_t end) const override;
  bool fills_memory() const override { return false; }
  bool computes() const override { return decodes_; }

 private:
  struct Part {
    uint64_t first;  // of its block
    uint64_t tile;
  };
  struct Field {
    size_t array;
    uint64_t offset;
    uint64_t size;
  };
  // What one thread needs, for the parts of its turn.
  struct Workspace final : ReadScratch {
    std::vector<Room> records;  // of each array
    std::vector<Room> fields;   // of each column
    Filter::Scratch scratch;
    predicate::Bits bits;
  };
  class Tile;

  Status ReadPart(Reader reader, uint64_t part, ReadRooms& rooms) override;
  void Keep(const Blocks::Block& block, const Box& tile, const predicate::Bits& bits)
      TL_EXCLUDES(mutex_);

  const Blocks blocks_;
  const Filter filter_;
  const std::vector<StoredArray> arrays_;
  const int rank_;
  bool decodes_ = false;
  std::vector<Field> fields_;  // of each column
  std::vector<Part> parts_;
  StoredRanges ranges_;
  Mutex mutex_;
  std::map<uint64_t, predicate::Bits> hits_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane::query
