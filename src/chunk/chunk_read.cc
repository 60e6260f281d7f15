#include "chunk/chunk_read.h"

#include <algorithm>
#include <utility>

#include "base/counters.h"

namespace tidelane {
namespace {

// What a lane reads before it looks at other tasks.
constexpr uint64_t kTurn = 2u << 20;

class ChunkRead final : public ParallelRead {
 public:
  ChunkRead(ChunkReading reading, Lanes& lanes, unsigned helpers)
      : ParallelRead(reading.array.source, lanes, helpers),
        reading_(std::move(reading)),
        count_(reading_.touched.count()),
        chunk_bytes_(reading_.array.grid.ChunkBytes()) {
    SetParts(count_, kTurn / std::max<uint64_t>(chunk_bytes_, 1));
  }

  // So that Touches need not walk the grid.
  void NoteRanges() {
    ForEachStored([this](const ChunkLocation& chunk) { ranges_.Add(chunk.address, chunk.size); });
    ranges_.Sort();
  }

  bool Touches(uint64_t begin, uint64_t end) const override { return ranges_.Touch(begin, end); }

  uint64_t FileBytes() const override { return ranges_.bytes(); }

  bool computes() const override { return reading_.array.pipeline != nullptr; }

  Status ReadNow() { return ReadAtOnce(); }

  // What lies together was one read.
  void NoteRead() const {
    uint64_t begin = 0;
    uint64_t end = 0;
    ForEachStored([&](const ChunkLocation& chunk) {
      if (chunk.address != end) {
        source().NoteRead(begin, end - begin);
        begin = chunk.address;
      }
      end = chunk.address + chunk.size;
    });
    source().NoteRead(begin, end - begin);
  }

 private:
  template <typename Each>
  void ForEachStored(Each each) const {
    for (uint64_t i = 0; i < count_; ++i) {
      const ChunkLocation& chunk = (*reading_.array.map)[reading_.touched.At(i).chunk];
      if (chunk.size != 0) each(chunk);
    }
  }

  Status ReadPart(Reader reader, uint64_t part, ReadRooms& rooms) override {
    const ChunkPiece piece = reading_.touched.At(part);
    Status status = reading_.array.ReadPiece(
        reading_.touched, piece, reading_.memory,
        [&](uint64_t address, uint64_t size, std::byte* to) {
          return ReadBytes(reader, address, size, to);
        },
        rooms);
    if (!status.ok() || (*reading_.array.map)[piece.chunk].size == 0) return status;
    Count(reader == Reader::kProgram ? Counter::kChunksByCallers : Counter::kChunksByLanes);
    Count(Counter::kChunkBytesRead, chunk_bytes_);
    return {};
  }

  const ChunkReading reading_;
  const uint64_t count_;
  const uint64_t chunk_bytes_;
  StoredRanges ranges_;  // of a read that is deferred
};

}  // namespace

Status ReadChunks(ChunkReading reading, Lanes& lanes, unsigned helpers) {
  const auto others =
      static_cast<unsigned>(std::min<uint64_t>(reading.touched.count() - 1, helpers));
  const auto read = std::make_shared<ChunkRead>(std::move(reading), lanes, others);
  Status status = read->ReadNow();
  if (status.ok()) read->NoteRead();
  return status;
}

std::shared_ptr<ParallelRead> ChunksToRead(ChunkReading reading, Lanes& lanes, unsigned helpers) {
  auto read = std::make_shared<ChunkRead>(std::move(reading), lanes, helpers);
  read->NoteRanges();
  read->NoteRead();
  return read;
}

}  // namespace tidelane
