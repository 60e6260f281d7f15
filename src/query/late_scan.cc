#include "query/late_scan.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/counters.h"
#include "extent/test_hooks.h"
#include "query/columns.h"

namespace tidelane::query {

namespace {

// What a lane looks at before it looks at other tasks.
constexpr uint64_t kTurn = 2u << 20;

}  // namespace

LateScan::LateScan(const Scan& scan, std::vector<StoredArray> arrays, const Blocks& blocks,
                   Lanes& lanes, unsigned helpers)
    : ParallelRead(arrays.front().source, lanes, helpers),
      blocks_(blocks),
      filter_(scan.filter()),
      arrays_(std::move(arrays)),
      rank_(scan.columns().layout().rank) {
  for (size_t i = 0; i < scan.columns().count(); ++i) {
    const Column& column = scan.columns().at(i);
    fields_.push_back({column.reader, column.offset, column.type.size});
  }
  uint64_t elements = 0;
  for (uint64_t first = 0; first < blocks_.elements(); first += elements) {
    const Blocks::Block block = blocks_.At(first);
    elements = block.elements;
    for (uint64_t tile = 0; tile < blocks_.TilesOf(block); ++tile) parts_.push_back({first, tile});
  }
  for (const StoredArray& array : arrays_) {
    decodes_ |= array.pipeline != nullptr;
    for (const ChunkLocation& chunk : *array.map) {
      if (chunk.size != 0) ranges_.Add(chunk.address, chunk.size);
    }
  }
  ranges_.Sort();
  const uint64_t part_bytes = ranges_.bytes() / std::max<uint64_t>(parts_.size(), 1);
  SetParts(parts_.size(), kTurn / std::max<uint64_t>(part_bytes, 1));
}

bool LateScan::Touches(uint64_t begin, uint64_t end) const {
  return ranges_.Touch(begin, end) && !MutationEnabled("query_late");
}

// The elements of a tile, as far as the filter asks for them.
class LateScan::Tile final : public ElementSource {
 public:
  Tile(LateScan& scan, Reader reader, ReadRooms& rooms, Workspace& work)
      : scan_(scan), reader_(reader), rooms_(rooms), work_(work), loaded_(scan.arrays_.size()) {}

  Status Load(size_t column, const Box& box, const std::byte*& elements) override {
    const Field& field = scan_.fields_[column];
    const StoredArray& array = scan_.arrays_[field.array];
    uint64_t count = 1;
    for (int d = 0; d < scan_.rank_; ++d) count *= box.size[d];
    std::byte* const records = work_.records[field.array].Get(count * array.grid.element);
    if (records == nullptr) return NoMemory();
    if (!loaded_[field.array]) {
      if (Status status = Read(array, box, records); !status.ok()) return status;
      loaded_[field.array] = true;
    }
    elements = records;
    if (array.grid.element == field.size) return {};
    std::byte* const picked = work_.fields[column].Get(count * field.size);
    if (picked == nullptr) return NoMemory();
    Pick(records + field.offset, array.grid.element, count, field.size, picked);
    elements = picked;
    return {};
  }

 private:
  Status NoMemory() const {
    return Status::Failed(ENOMEM, "have memory for a query").At(scan_.source().path(), 0, 0);
  }

  Status Read(const StoredArray& array, const Box& box, std::byte* records) {
    const auto read = [this](uint64_t address, uint64_t size, std::byte* to) {
      return scan_.ReadBytes(reader_, address, size, to);
    };
    const TouchedChunks touched(array.grid, box,
                                MemoryLayout::Packed(scan_.rank_, box.size, array.grid.element));
    for (uint64_t i = 0; i < touched.count(); ++i) {
      const ChunkPiece piece = touched.At(i);
      if (Status status = array.ReadPiece(touched, piece, records, read, rooms_); !status.ok())
        return status;
      if (array.pipeline == nullptr || (*array.map)[piece.chunk].size == 0) continue;
      Count(reader_ == Reader::kProgram ? Counter::kChunksByCallers : Counter::kChunksByLanes);
      Count(Counter::kChunkBytesRead, array.grid.ChunkBytes());
    }
    return {};
  }

  LateScan& scan_;
  const Reader reader_;
  ReadRooms& rooms_;
  Workspace& work_;
  std::vector<bool> loaded_;  // of each array
};

Status LateScan::ReadPart(Reader reader, uint64_t part, ReadRooms& rooms) {
  const Blocks::Block block = blocks_.At(parts_[part].first);
  const Box box = blocks_.Tile(block, parts_[part].tile);
  uint64_t elements = 1;
  for (int d = 0; d < rank_; ++d) elements *= box.size[d];
  if (rooms.scratch == nullptr) {
    auto made = std::make_unique<Workspace>();
    made->records.resize(arrays_.size());
    made->fields.resize(fields_.size());
    rooms.scratch = std::move(made);
  }
  Workspace& work = static_cast<Workspace&>(*rooms.scratch);
  Tile tile(*this, reader, rooms, work);
  Status status = filter_.Run(tile, box, elements, work.bits, work.scratch);
  if (status.ok() && !work.bits.None()) Keep(block, box, work.bits);
  return status;
}

void LateScan::Keep(const Blocks::Block& block, const Box& tile, const predicate::Bits& bits) {
  MutexLock lock(mutex_);
  predicate::Bits& all = hits_[block.first];
  if (all.size() == 0) all.Reset(block.elements);
  blocks_.ForEachRun(block, tile, [&](uint64_t from, uint64_t to, uint64_t count) {
    all.CopyRange(to, bits, from, count);
  });
}

}  // namespace tidelane::query
