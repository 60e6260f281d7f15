#include "chunk/stored_array.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tidelane {
namespace {

// A run of a chunk that is not filtered is read by itself if it is so long; shorter ones with what is between them.
constexpr uint64_t kLongRun = uint64_t{64} * 1024;
// So are those of pages, where what is between them is many times as much.
constexpr uint64_t kShortRun = uint64_t{4} * 1024;
constexpr uint64_t kManyTimes = 8;
// The pieces of an array without chunks.
constexpr uint64_t kPieceBytes = 8u << 20;

Status Refuse(const StoredArray& array, int error, const ChunkLocation& chunk) {
  return Status::Failed(error, "read a chunk").At(array.source->path(), chunk.address, chunk.size);
}

// `bytes` are those of the chunk from `first` on.
void Copy(const TouchedChunks& touched, const ChunkPiece& piece, const std::byte* bytes,
          uint64_t first, std::byte* memory) {
  touched.ForEachRun(piece, [&](uint64_t from, uint64_t to, uint64_t size) {
    std::memcpy(memory + to, bytes + (from - first), size);
  });
}

Status Fill(const StoredArray& array, const TouchedChunks& touched, const ChunkPiece& piece,
            std::byte* memory) {
  const std::vector<std::byte>& value = *array.fill;
  if (value.empty()) return Status::Failed(ENOENT, "find a chunk");
  touched.ForEachRun(piece, [&](uint64_t, uint64_t to, uint64_t bytes) {
    std::byte* const begin = memory + to;
    std::memcpy(begin, value.data(), value.size());
    // What is there already is doubled until the run is full.
    for (uint64_t done = value.size(); done < bytes; done *= 2) {
      std::memcpy(begin + done, begin, std::min(done, bytes - done));
    }
  });
  return {};
}

Status ReadFiltered(const StoredArray& array, const TouchedChunks& touched, const ChunkPiece& piece,
                    std::byte* memory, const StoredArray::ReadBytes& read, ReadRooms& rooms) {
  const ChunkLocation& chunk = (*array.map)[piece.chunk];
  const uint64_t chunk_bytes = array.grid.ChunkBytes();
  std::byte* const stored = rooms.stored.Get(chunk.size);
  std::byte* const whole = piece.whole ? memory + piece.to : rooms.whole.Get(chunk_bytes);
  if (stored == nullptr || whole == nullptr) return Refuse(array, ENOMEM, chunk);
  // Beyond its end storage reads as zeros, which some filters take for data.
  const uint64_t eof = array.source->size();
  if (chunk.address > eof || chunk.size > eof - chunk.address) return Refuse(array, EIO, chunk);
  Status status = read(chunk.address, chunk.size, stored);
  if (!status.ok()) return status;
  status = array.pipeline->Decode({stored, chunk.size}, chunk.mask, {whole, chunk_bytes});
  if (status.ok() && !piece.whole) Copy(touched, piece, whole, 0, memory);
  return status;
}

Status ReadPlain(const StoredArray& array, const TouchedChunks& touched, const ChunkPiece& piece,
                 std::byte* memory, const StoredArray::ReadBytes& read, ReadRooms& rooms) {
  const ChunkLocation& chunk = (*array.map)[piece.chunk];
  uint64_t runs = 0;
  uint64_t wanted = 0;
  uint64_t end = 0;
  touched.ForEachRun(piece, [&](uint64_t from, uint64_t, uint64_t bytes) {
    ++runs;
    wanted += bytes;
    end = from + bytes;
  });
  const bool sparse = wanted / runs >= kShortRun && (end - piece.from) / wanted >= kManyTimes;
  if (runs == 1 || wanted / runs >= kLongRun || sparse) {
    Status status;
    touched.ForEachRun(piece, [&](uint64_t from, uint64_t to, uint64_t bytes) {
      if (status.ok()) status = read(chunk.address + from, bytes, memory + to);
    });
    return status;
  }
  std::byte* const span = rooms.whole.Get(end - piece.from);
  if (span == nullptr) return Refuse(array, ENOMEM, chunk);
  Status status = read(chunk.address + piece.from, end - piece.from, span);
  if (status.ok()) Copy(touched, piece, span, piece.from, memory);
  return status;
}

}  // namespace

StoredArray StoredArray::InOnePiece(std::shared_ptr<ParallelReadSource> source, ChunkGrid grid,
                                    uint64_t address) {
  // Rows of the first dimension whose rows are short enough: a piece is one run of the file.
  uint64_t inner = grid.element;
  grid.chunk = grid.extent;
  int split = grid.rank - 1;
  for (; split > 0 && grid.extent[split] <= kPieceBytes / inner; --split)
    inner *= grid.extent[split];
  grid.chunk[split] = std::clamp<uint64_t>(kPieceBytes / inner, 1, grid.extent[split]);
  std::fill_n(grid.chunk.begin(), split, 1);
  auto map = std::make_shared<ChunkMap>(grid.Chunks());
  for (uint64_t i = 0; i < map->size(); ++i) {
    const Coordinates at = grid.OffsetOf(i);
    uint64_t position = 0;
    for (int d = 0; d < grid.rank; ++d) position = position * grid.extent[d] + at[d];
    const uint64_t rows = std::min(grid.chunk[split], grid.extent[split] - at[split]);
    (*map)[i] = {address + position * grid.element, static_cast<uint32_t>(rows * inner), 0};
  }
  return {std::move(source), nullptr, std::move(map), nullptr, grid};
}

Status StoredArray::ReadPiece(const TouchedChunks& touched, const ChunkPiece& piece,
                              std::byte* memory, const ReadBytes& read, ReadRooms& rooms) const {
  if ((*map)[piece.chunk].size == 0) return Fill(*this, touched, piece, memory);
  return pipeline == nullptr ? ReadPlain(*this, touched, piece, memory, read, rooms)
                             : ReadFiltered(*this, touched, piece, memory, read, rooms);
}

void StoredRanges::Add(uint64_t address, uint64_t size) {
  ranges_.push_back({address, address + size});
  longest_ = std::max(longest_, size);
  bytes_ += size;
}

void StoredRanges::Sort() { std::ranges::sort(ranges_, {}, &Range::begin); }

bool StoredRanges::Touch(uint64_t begin, uint64_t end) const {
  const uint64_t from = begin > longest_ ? begin - longest_ : 0;
  for (auto at = std::ranges::lower_bound(ranges_, from, {}, &Range::begin);
       at != ranges_.end() && at->begin < end; ++at) {
    if (at->end > begin) return true;
  }
  return false;
}

}  // namespace tidelane
