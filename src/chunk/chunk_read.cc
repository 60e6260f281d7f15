#include "chunk/chunk_read.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/counters.h"
#include "cache/access_predictor.h"

namespace tidelane {
namespace {

// What a lane reads before it looks at other tasks.
constexpr uint64_t kTurn = 2u << 20;
// A run of a chunk that is not filtered is read by itself if it is so long; shorter ones with what is between them.
constexpr uint64_t kLongRun = uint64_t{64} * 1024;

class ChunkRead final : public ParallelRead {
 public:
  ChunkRead(ChunkReading reading, Lanes& lanes, unsigned helpers)
      : ParallelRead(reading.source, lanes, helpers),
        reading_(std::move(reading)),
        count_(reading_.touched.count()),
        chunk_bytes_(reading_.grid.ChunkBytes()) {
    SetParts(count_, kTurn / std::max<uint64_t>(chunk_bytes_, 1));
  }

  // So that Touches need not walk the grid.
  void NoteRanges() {
    ForEachStored([this](const ChunkLocation& chunk) {
      ranges_.push_back({chunk.address, chunk.address + chunk.size});
      longest_ = std::max<uint64_t>(longest_, chunk.size);
    });
    std::ranges::sort(ranges_, {}, &ByteRange::begin);
  }

  bool Touches(uint64_t begin, uint64_t end) const override {
    const uint64_t from = begin > longest_ ? begin - longest_ : 0;
    for (auto at = std::ranges::lower_bound(ranges_, from, {}, &ByteRange::begin);
         at != ranges_.end() && at->begin < end; ++at) {
      if (at->end > begin) return true;
    }
    return false;
  }

  uint64_t FileBytes() const override {
    uint64_t bytes = 0;
    for (const ByteRange& range : ranges_) bytes += range.size();
    return bytes;
  }

  bool computes() const override { return reading_.pipeline != nullptr; }

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
      const ChunkLocation& chunk = (*reading_.map)[reading_.touched.At(i).chunk];
      if (chunk.size != 0) each(chunk);
    }
  }

  Status ReadPart(Reader reader, uint64_t part, Rooms& rooms) override {
    const ChunkPiece piece = reading_.touched.At(part);
    const ChunkLocation& chunk = (*reading_.map)[piece.chunk];
    if (chunk.size == 0) return Fill(piece);
    Status status = reading_.pipeline == nullptr ? ReadPlain(reader, piece, chunk, rooms)
                                                 : ReadFiltered(reader, piece, chunk, rooms);
    if (!status.ok()) return status;
    Count(reader == Reader::kProgram ? Counter::kChunksByCallers : Counter::kChunksByLanes);
    Count(Counter::kChunkBytesRead, chunk_bytes_);
    return {};
  }

  Status ReadFiltered(Reader reader, const ChunkPiece& piece, const ChunkLocation& chunk,
                      Rooms& rooms) {
    std::byte* const stored = rooms.stored.Get(chunk.size);
    std::byte* const whole =
        piece.whole ? reading_.memory + piece.to : rooms.whole.Get(chunk_bytes_);
    if (stored == nullptr || whole == nullptr) return Refuse(ENOMEM, chunk);
    // Beyond its end storage reads as zeros, which some filters take for data.
    const uint64_t eof = source().size();
    if (chunk.address > eof || chunk.size > eof - chunk.address) return Refuse(EIO, chunk);
    Status status = ReadBytes(reader, chunk.address, chunk.size, stored);
    if (!status.ok()) return status;
    status = reading_.pipeline->Decode({stored, chunk.size}, chunk.mask, {whole, chunk_bytes_});
    if (status.ok() && !piece.whole) Copy(piece, whole, 0);
    return status;
  }

  Status ReadPlain(Reader reader, const ChunkPiece& piece, const ChunkLocation& chunk,
                   Rooms& rooms) {
    uint64_t runs = 0;
    uint64_t wanted = 0;
    uint64_t end = 0;
    reading_.touched.ForEachRun(piece, [&](uint64_t from, uint64_t, uint64_t bytes) {
      ++runs;
      wanted += bytes;
      end = from + bytes;
    });
    if (runs == 1 || wanted / runs >= kLongRun) {
      Status status;
      reading_.touched.ForEachRun(piece, [&](uint64_t from, uint64_t to, uint64_t bytes) {
        if (!status.ok()) return;
        status = ReadBytes(reader, chunk.address + from, bytes, reading_.memory + to);
      });
      return status;
    }
    std::byte* const span = rooms.whole.Get(end - piece.from);
    if (span == nullptr) return Refuse(ENOMEM, chunk);
    Status status = ReadBytes(reader, chunk.address + piece.from, end - piece.from, span);
    if (status.ok()) Copy(piece, span, piece.from);
    return status;
  }

  // `bytes` are those of the chunk from `first` on.
  void Copy(const ChunkPiece& piece, const std::byte* bytes, uint64_t first) const {
    reading_.touched.ForEachRun(piece, [&](uint64_t from, uint64_t to, uint64_t size) {
      std::memcpy(reading_.memory + to, bytes + (from - first), size);
    });
  }

  Status Fill(const ChunkPiece& piece) const {
    const std::vector<std::byte>& value = *reading_.fill;
    if (value.empty()) return Status::Failed(ENOENT, "find a chunk");
    reading_.touched.ForEachRun(piece, [&](uint64_t, uint64_t to, uint64_t bytes) {
      std::byte* const begin = reading_.memory + to;
      std::memcpy(begin, value.data(), value.size());
      // What is there already is doubled until the run is full.
      for (uint64_t done = value.size(); done < bytes; done *= 2) {
        std::memcpy(begin + done, begin, std::min(done, bytes - done));
      }
    });
    return {};
  }

  Status Refuse(int error, const ChunkLocation& chunk) const {
    return Status::Failed(error, "read a chunk").At(source().path(), chunk.address, chunk.size);
  }

  const ChunkReading reading_;
  const uint64_t count_;
  const uint64_t chunk_bytes_;
  std::vector<ByteRange> ranges_;  // of a read that is deferred, by address
  uint64_t longest_ = 0;
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
