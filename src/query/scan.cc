#include "query/scan.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>
#include <utility>

#include "extent/test_hooks.h"

namespace tidelane::query {

namespace {

using predicate::Bits;
using predicate::ElementType;

// Rows without hits that are read all the same rather than in two requests: a part of a tile.
constexpr uint64_t kGapShare = 8;

template <typename Unsigned>
void SwapEach(std::byte* elements, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    std::byte* const at = elements + i * sizeof(Unsigned);
    std::reverse(at, at + sizeof(Unsigned));
  }
}

void Swap(const ElementType& type, std::byte* elements, uint64_t count) {
  if (!type.swapped) return;
  switch (type.size) {
    case 2: SwapEach<uint16_t>(elements, count); break;
    case 4: SwapEach<uint32_t>(elements, count); break;
    case 8: SwapEach<uint64_t>(elements, count); break;
    default: break;
  }
}

// What tiles are made of: whole chunks of all columns, if that is no more than `most` elements, or than one column's chunk is anyway. Rows of
// chunks in one column and columns of them in another would come to everything.
Coordinates QuantumWithin(const Columns& columns, uint64_t most) {
  const Layout& layout = columns.layout();
  Coordinates quantum = layout.quantum;
  const auto elements_of = [&layout](const Coordinates& box) {
    uint64_t elements = 1;
    for (int d = 0; d < layout.rank; ++d) elements *= std::min(box[d], layout.extent[d]);
    return elements;
  };
  for (size_t i = 0; i < columns.count(); ++i)
    most = std::max(most, elements_of(columns.layout_of(i).quantum));
  while (elements_of(quantum) > most) {
    int longest = 0;
    for (int d = 0; d < layout.rank; ++d) {
      quantum[d] = std::min(quantum[d], layout.extent[d]);
      if (quantum[d] > quantum[longest]) longest = d;
    }
    quantum[longest] = (quantum[longest] + 1) / 2;
  }
  return quantum;
}

}  // namespace

Status Scan::Open(const std::vector<ColumnSpec>& specs, predicate::Constants constants) {
  if (Status status = columns_.Open(specs); !status.ok()) return status;
  if (Status status = filter_.Make(*query_, columns_, constants); !status.ok()) return status;
  plan_.emplace(Plan(sizes_));
  return {};
}

Blocks Scan::Plan(const TileSizes& sizes) const {
  const Layout& layout = columns_.layout();
  const auto of = [this](const std::vector<bool>& columns) {
    return std::max<uint64_t>(1, columns_.RecordBytes(columns));
  };
  const uint64_t record = of(filter_.Used(columns_.count()));
  // Values are asked for tile by tile, too.
  const uint64_t most = std::max<uint64_t>(
      1, sizes.most / std::max(record, of(std::vector<bool>(columns_.count(), true))));
  const uint64_t wanted = (layout.filtered ? sizes.decoded : sizes.plain) / record;
  return {layout.rank, layout.extent, QuantumWithin(columns_, most),
          std::clamp<uint64_t>(wanted, 1, most), most};
}

void Scan::Begin() {
  block_ = plan_->At(next_first_);
  next_first_ += block_.elements;
  within_ = true;
  BeginAgain();
}

bool Scan::HaveBlock() {
  if (!within_ && next_first_ < plan_->elements()) Begin();
  return within_;
}

void Scan::BeginAgain() {
  totals_.elements -= looked_at_;
  looked_at_ = 0;
  next_tile_ = 0;
  hits_ = 0;
}

// The next tile of the block; `bits`: of the block, nullptr if they are not wanted.
Status Scan::RunTile(Bits* bits, uint64_t& hits) {
  const uint64_t tiles = plan_->TilesOf(block_);
  const Box tile = tiles == 1 ? block_.box : plan_->Tile(block_, next_tile_);
  uint64_t elements = 1;
  for (int d = 0; d < columns_.layout().rank; ++d) elements *= tile.size[d];
  if (bits == nullptr) {
    if (Status status = filter_.Count(columns_, tile, elements, hits, scratch_); !status.ok())
      return status;
  } else if (tiles == 1) {
    if (Status status = filter_.Run(columns_, tile, elements, *bits, scratch_); !status.ok())
      return status;
    hits = bits->Count();
  } else {
    if (next_tile_ == 0) bits->Reset(block_.elements);
    if (Status status = filter_.Run(columns_, tile, elements, tile_bits_, scratch_); !status.ok())
      return status;
    hits = tile_bits_.Count();
    if (hits != 0) {
      plan_->ForEachRun(block_, tile, [&](uint64_t from, uint64_t to, uint64_t count) {
        const bool shifted = next_tile_ + 1 == tiles && MutationEnabled("query_tiles");
        bits->CopyRange(to + (shifted ? 1 : 0), tile_bits_, from, count - (shifted ? 1 : 0));
      });
    }
  }
  totals_.elements += elements;
  looked_at_ += elements;
  within_ = ++next_tile_ < tiles;
  if (!within_) looked_at_ = 0;
  return {};
}

Status Scan::Next(Clock::time_point deadline, Step& step) {
  // Of a block that Count has begun there are no bits.
  if (within_ && counting_) BeginAgain();
  counting_ = false;
  do {
    if (!HaveBlock()) {
      step = Step::kEnd;
      return {};
    }
    uint64_t hits = 0;
    if (Status status = RunTile(&bits_, hits); !status.ok()) return status;
    hits_ += hits;
    if (!within_) {
      ++totals_.blocks;
      totals_.hits += hits_;
      step = Step::kBlock;
      return {};
    }
  } while (Clock::now() < deadline);
  step = Step::kLater;
  return {};
}

Status Scan::Count(Clock::time_point deadline, uint64_t& count, Step& step) {
  counting_ = true;
  do {
    if (!HaveBlock()) {
      step = Step::kEnd;
      return {};
    }
    uint64_t hits = 0;
    if (Status status = RunTile(nullptr, hits); !status.ok()) return status;
    hits_ += hits;
    if (within_) continue;
    ++totals_.blocks;
    totals_.hits += hits_;
    count += hits_;
  } while (Clock::now() < deadline);
  step = Step::kLater;
  return {};
}

Status Scan::Values(size_t column, std::byte* to) {
  if (column >= columns_.count())
    return Status::Failed(EINVAL, "find column number " + std::to_string(column));
  const ElementType& type = columns_.at(column).type;
  if (type.kind == ElementType::Kind::kVariableString)
    return Status::Failed(
        EINVAL, "give strings of variable length, of column '" + columns_.at(column).name + "'");
  if (within_ || counting_) return Status::Failed(EINVAL, "give values of no block");
  if (hits_ == 0) return {};
  Status status = plan_->TilesOf(block_) == 1 ? GatherRows(column, to) : GatherTiles(column, to);
  if (status.ok()) Swap(type, to, hits_);
  return status;
}

// A block in one tile: what has been compared is in memory still. Else the rows that have hits, with what is between them where that is little.
Status Scan::GatherRows(size_t column, std::byte* to) {
  const Layout& layout = columns_.layout();
  const uint64_t size = columns_.at(column).type.size;
  if (columns_.Holds(column, block_.box)) {
    const std::byte* elements = nullptr;
    Status status = columns_.Load(column, block_.box, elements);
    if (status.ok()) bits_.Gather(elements, size, to);
    return status;
  }
  int d = 0;
  while (d + 1 < layout.rank && block_.box.size[d] == 1) ++d;
  const uint64_t inner = block_.elements / block_.box.size[d];
  const uint64_t quantum = columns_.layout_of(column).quantum[d];
  const uint64_t gap = std::max<uint64_t>(quantum * inner, sizes_.plain / kGapShare / size);
  auto run = bits_.NextRun(0);
  while (run.first < bits_.size()) {
    uint64_t end = run.second;
    auto next = bits_.NextRun(end);
    while (next.first < bits_.size() && next.first - end < gap) {
      end = next.second;
      next = bits_.NextRun(end);
    }
    Box rows = block_.box;
    const uint64_t first = run.first / inner;
    const uint64_t last = (end - 1) / inner;
    rows.start[d] += first;
    rows.size[d] = last - first + 1;
    const std::byte* elements = nullptr;
    // Half of the block is as good as all that is left of it.
    if (2 * rows.size[d] >= block_.box.size[d]) {
      if (Status status = columns_.Load(column, block_.box, elements); !status.ok()) return status;
      Bits rest(bits_.size());
      rest.CopyRange(run.first, bits_, run.first, bits_.size() - run.first);
      rest.Gather(elements, size, to);
      return {};
    }
    if (Status status = columns_.Load(column, rows, elements); !status.ok()) return status;
    Bits some(rows.size[d] * inner);
    some.CopyRange(0, bits_, first * inner, some.size());
    some.Gather(elements, size, to);
    to += some.Count() * size;
    run = bits_.NextRun((last + 1) * inner);
  }
  return {};
}

// The tiles one by one: how many hits are before a place in the block says where its elements go.
Status Scan::GatherTiles(size_t column, std::byte* to) {
  const uint64_t size = columns_.at(column).type.size;
  std::vector<uint64_t> before(bits_.word_count() + 1);
  for (size_t word = 0; word < bits_.word_count(); ++word)
    before[word + 1] = before[word] + static_cast<uint64_t>(std::popcount(bits_.words()[word]));
  const auto rank = [&](uint64_t at) {
    const uint64_t rest = at % 64;
    const uint64_t lower = rest == 0 ? 0 : bits_.words()[at / 64] << (64 - rest);
    return before[at / 64] + static_cast<uint64_t>(std::popcount(lower));
  };
  for (uint64_t i = 0; i < plan_->TilesOf(block_); ++i) {
    const Box tile = plan_->Tile(block_, i);
    const std::byte* elements = nullptr;
    Status status;
    Bits some;
    plan_->ForEachRun(block_, tile, [&](uint64_t from, uint64_t at, uint64_t count) {
      const uint64_t first = rank(at);
      if (!status.ok() || rank(at + count) == first) return;
      if (elements == nullptr) status = columns_.Load(column, tile, elements);
      if (!status.ok()) return;
      some.Reset(count);
      some.CopyRange(0, bits_, at, count);
      some.Gather(elements + from * size, size, to + first * size);
    });
    if (!status.ok()) return status;
  }
  return {};
}

Status Scan::Rewind() {
  if (Status status = columns_.Refresh(); !status.ok()) return status;
  plan_.emplace(Plan(sizes_));
  within_ = false;
  looked_at_ = 0;
  next_first_ = 0;
  hits_ = 0;
  totals_ = {};
  return {};
}

}  // namespace tidelane::query
