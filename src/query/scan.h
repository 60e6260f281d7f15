/// \file
/// One query over columns of equal shape, block by block: the strategy that is always right, and that indexes are to beat.
///
/// Invariant: what a block's bits say is what H5Dread would have given when the block was read. Memory is bounded by a tile (blocks.h) of each
/// column and the bits of a block.
/// Thread safety: under HDF5's lock; one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "predicate/bits.h"
#include "predicate/query.h"
#include "query/blocks.h"
#include "query/columns.h"
#include "query/filter.h"

namespace tidelane::query {

/// Bytes of a tile, of all columns that a query needs. What has to be decoded comes in pieces that all lanes have something to do with, and
/// that no chunk cache of usual size holds; everything else in pieces that stay in a processor's cache while they are compared.
struct TileSizes {
  uint64_t decoded = 16u << 20;
  uint64_t plain = 512u << 10;
  uint64_t most = 64u << 20;  ///< of rows that are longer than those
};

class Scan {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Step { kEnd = 0, kBlock = 1, kLater = 2 };

  Scan(h5::Library& hdf5, predicate::QueryPtr query, TileSizes sizes = {})
      : sizes_(sizes), query_(std::move(query)), columns_(hdf5) {}
  Status Open(const std::vector<ColumnSpec>& specs, predicate::Constants constants);

  /// The next block, unless `deadline` comes first.
  Status Next(Clock::time_point deadline, Step& step);
  /// Adds the hits of all blocks that are left to `count`, block by block; kEnd or kLater. What Next has begun, it goes on with; what it
  /// has begun itself, Next begins again, so that each block is given or counted, whoever asks first.
  Status Count(Clock::time_point deadline, uint64_t& count, Step& step);

  /// What Next gave last.
  const Blocks::Block& block() const { return block_; }
  const predicate::Bits& bits() const { return bits_; }
  uint64_t hits() const { return hits_; }
  /// Its hits' elements of a column, in the machine's order of bytes. EINVAL: strings of variable length; Next gave no block last.
  Status Values(size_t column, std::byte* to);

  Status Rewind();

  struct Totals {
    uint64_t blocks = 0;
    uint64_t elements = 0;
    uint64_t hits = 0;
  };
  const Totals& totals() const { return totals_; }
  const predicate::Query& query() const { return *query_; }
  const predicate::QueryPtr& query_ptr() const { return query_; }
  const Filter& filter() const { return filter_; }
  /// How it would be cut by other sizes.
  Blocks Plan(const TileSizes& sizes) const;
  const Columns& columns() const { return columns_; }
  const Blocks& blocks() const { return *plan_; }

 private:
  void Begin();
  bool HaveBlock();  // begun, or begins the next one
  void BeginAgain();
  Status RunTile(predicate::Bits* bits, uint64_t& hits);
  Status GatherRows(size_t column, std::byte* to);
  Status GatherTiles(size_t column, std::byte* to);

  const TileSizes sizes_;
  predicate::QueryPtr query_;
  Columns columns_;
  Filter filter_;
  Filter::Scratch scratch_;
  std::optional<Blocks> plan_;
  Totals totals_;
  // The block that is, or was last, looked at.
  Blocks::Block block_;
  bool within_ = false;    // some of its tiles are still to come
  bool counting_ = false;  // by Count: its bits are not known
  uint64_t next_tile_ = 0;
  uint64_t looked_at_ = 0;   // elements of a block that is not at its end
  uint64_t next_first_ = 0;  // where the next block begins
  predicate::Bits bits_;
  predicate::Bits tile_bits_;
  uint64_t hits_ = 0;
};

}  // namespace tidelane::query
