#include "engine/chunk_read.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "base/activity.h"
#include "base/annotations.h"
#include "base/counters.h"

namespace tidelane {
namespace {

// Memory that is not cleared, and is taken only where it is needed.
class Room {
 public:
  /// nullptr: there is no memory.
  std::byte* Get(size_t size) {
    if (size <= size_) return bytes_.get();
    bytes_.reset(new (std::nothrow) std::byte[size]);
    size_ = bytes_ == nullptr ? 0 : size;
    return bytes_.get();
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
};

struct Rooms {
  Room stored;
  Room chunk;
};

class ChunkReader final : public LaneTask {
 public:
  explicit ChunkReader(ChunkReading reading)
      : reading_(std::move(reading)),
        count_(reading_.touched.count()),
        chunk_bytes_(reading_.grid.ChunkBytes()) {}

  void RunOne() override {
    if (getpid() == process_) Work(File::Reader::kLane);  // a forked child has no such caller
  }

  Status Finish() TL_EXCLUDES(mutex_) {
    Work(File::Reader::kProgram);
    MutexLock lock(mutex_);
    if (finished_ == count_) return status_;
    const Waiting waiting(Wait::kRead);
    while (finished_ != count_) all_finished_.Wait(mutex_);
    return status_;
  }

  // What lies together was one read.
  void NoteRead() const {
    uint64_t begin = 0;
    uint64_t end = 0;
    for (uint64_t i = 0; i < count_; ++i) {
      const StoredChunk& chunk = (*reading_.map)[reading_.touched.At(i).chunk];
      if (chunk.size == 0) continue;
      if (chunk.address != end) {
        reading_.file->NoteRead(begin, end - begin);
        begin = chunk.address;
      }
      end = chunk.address + chunk.size;
    }
    reading_.file->NoteRead(begin, end - begin);
  }

 private:
  void Work(File::Reader reader) TL_EXCLUDES(mutex_) {
    Rooms rooms;
    for (;;) {
      const uint64_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= count_) return;
      Status status;
      if (!failed_.load(std::memory_order_relaxed)) status = TryOne(reader, i, rooms);
      MutexLock lock(mutex_);
      if (!status.ok() && !failed_.exchange(true, std::memory_order_relaxed)) status_ = status;
      if (++finished_ == count_) all_finished_.NotifyAll();
    }
  }

  Status TryOne(File::Reader reader, uint64_t i, Rooms& rooms) {
    try {
      return ReadOne(reader, i, rooms);
    } catch (const std::bad_alloc&) {
      return Status::Failed(ENOMEM, "read a chunk");
    }
  }

  Status ReadOne(File::Reader reader, uint64_t i, Rooms& rooms) {
    const ChunkPiece piece = reading_.touched.At(i);
    const StoredChunk& chunk = (*reading_.map)[piece.chunk];
    if (chunk.size == 0) return Fill(piece);
    std::byte* const stored = rooms.stored.Get(chunk.size);
    std::byte* const whole =
        piece.whole ? reading_.memory + piece.to : rooms.chunk.Get(chunk_bytes_);
    if (stored == nullptr || whole == nullptr) return Refuse(ENOMEM, chunk);
    // Beyond its end storage reads as zeros, which some filters take for data.
    const uint64_t eof = reading_.file->eof();
    if (chunk.address > eof || chunk.size > eof - chunk.address) return Refuse(EIO, chunk);
    Status status = reading_.file->ReadAlongside(reader, chunk.address, chunk.size, stored);
    if (!status.ok()) return status;
    status = reading_.pipeline->Decode({stored, chunk.size}, chunk.mask, {whole, chunk_bytes_});
    if (!status.ok()) return status;
    if (!piece.whole) Copy(piece, whole);
    Count(reader == File::Reader::kLane ? Counter::kChunksByLanes : Counter::kChunksByCallers);
    Count(Counter::kChunkBytesRead, chunk_bytes_);
    return {};
  }

  void Copy(const ChunkPiece& piece, const std::byte* chunk) const {
    reading_.touched.ForEachRun(piece, [&](uint64_t from, uint64_t to, uint64_t bytes) {
      std::memcpy(reading_.memory + to, chunk + from, bytes);
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

  Status Refuse(int error, const StoredChunk& chunk) const {
    return Status::Failed(error, "read a chunk")
        .At(reading_.file->path(), chunk.address, chunk.size);
  }

  const ChunkReading reading_;
  const uint64_t count_;
  const uint64_t chunk_bytes_;
  const pid_t process_ = getpid();
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  Condition all_finished_;
  uint64_t finished_ TL_GUARDED_BY(mutex_) = 0;
  Status status_ TL_GUARDED_BY(mutex_);
};

}  // namespace

Status ReadChunks(ChunkReading reading, Lanes& lanes, unsigned helpers) {
  const uint64_t others = reading.touched.count() - 1;
  const auto reader = std::make_shared<ChunkReader>(std::move(reading));
  try {
    for (uint64_t i = std::min<uint64_t>(helpers, others); i > 0; --i) lanes.Schedule(reader);
  } catch (const std::bad_alloc&) {
    // Whoever was asked already touches the program's memory: go on, and wait for it.
  }
  Status status = reader->Finish();
  if (status.ok()) reader->NoteRead();
  return status;
}

}  // namespace tidelane
