// Reads: pending bytes on top of storage, small reads through blocks of the same.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/trace.h"
#include "buffer/loan.h"
#include "engine/file.h"

namespace tidelane {

Status File::Read(uint64_t address, uint64_t size, void* buffer, bool raw) {
  if (size == 0) return {};
  Status status;
  {
    MutexLock lock(read_mutex_);
    if (ReadThroughCache(address, size, buffer, raw, status)) return status;
  }
  uint64_t ns = 0;
  status = LogicalRead(Reader::kProgram, address, size, buffer, ns);
  if (ns != 0) {
    MutexLock lock(read_mutex_);
    cache_.Observe(size, ns);
  }
  return status;
}

Status File::ReadAlongside(Reader reader, uint64_t address, uint64_t size, void* buffer) {
  uint64_t ignored = 0;
  return LogicalRead(reader, address, size, buffer, ignored);
}

bool File::ReadThroughCache(uint64_t address, uint64_t size, void* buffer, bool raw,
                            Status& status) {
  if (cache_.Read(address, size, buffer)) {
    Count(Counter::kReadAheadHits);
    return true;
  }
  const uint64_t end = eof();
  if (!cache_.Wants(address, size, raw, end)) return false;
  // Nobody but us may change the file under a cached block: a lock tells, and what the program does with its own
  // descriptor (or a SWMR writer in another process) nobody tells.
  if (write_through_.load(std::memory_order_relaxed)) return false;
  if (!locked_.load(std::memory_order_relaxed)) {
    if (!std::exchange(counted_unlocked_, true)) Count(Fallback::kLocking);
    return false;
  }
  const uint64_t start = BlockCache::BlockStart(address);
  const uint64_t valid = std::min(BlockCache::kBlock, end - start);
  uint64_t ignored = 0;
  status = LogicalRead(Reader::kProgram, start, valid, cache_.Claim(start), ignored);
  cache_.Commit(start, status.ok() ? valid : 0);
  if (!status.ok()) return false;  // the plain read decides what the program is told
  return cache_.Read(address, size, buffer);
}

Status File::LogicalRead(Reader reader, uint64_t address, uint64_t size, void* buffer,
                         uint64_t& storage_ns) {
  auto* out = static_cast<std::byte*>(buffer);
  std::vector<Piece> pieces;
  uint64_t stored = UINT64_MAX;
  bool lent = false;
  {
    MutexLock lock(mutex_);
    if (Alone()) stored = disk_size_;
    pending_.Overlay(address, size, pieces);
    // A lent buffer is the program's again as soon as its bytes are stored, and another thread may hear of it.
    for (Piece& piece : pieces) {
      if (piece.data == nullptr || !IsLent(piece.slab)) continue;
      std::memcpy(out + (piece.address - address), piece.data, piece.size);
      Arena::Unref(std::exchange(piece.slab, nullptr));
      lent = true;
    }
  }
  // Bytes that were pending a moment ago may land while we read, which changes nothing: we have them. Bytes that were
  // not pending cannot become so: the program is here.
  const auto from_storage = [&](const Piece& piece) {
    return piece.data == nullptr && piece.address < stored;
  };
  const auto storage_pieces = std::count_if(pieces.begin(), pieces.end(), from_storage);
  const bool whole =
      storage_pieces > 2 &&
      !lent;  // one request for all, then pending bytes on top, beats many small requests
  Status status;
  if (whole) status = ReadStorage(reader, address, size, buffer, storage_ns);
  for (const Piece& piece : pieces) {
    std::byte* to = out + (piece.address - address);
    if (piece.data != nullptr && piece.slab == nullptr) continue;  // copied above
    if (piece.data != nullptr) {
      std::memcpy(to, piece.data, piece.size);
      Arena::Unref(piece.slab);
    } else if (!from_storage(piece)) {
      std::memset(to, 0,
                  piece.size);  // written by nobody yet, and nobody else is there: no need to ask
    } else if (!whole && status.ok()) {
      status = ReadStorage(reader, piece.address, piece.size, to, storage_ns);
    }
  }
  return status;
}

Status File::ReadStorage(Reader reader, uint64_t address, uint64_t size, void* buffer,
                         uint64_t& storage_ns) {
  Lanes::ForegroundRead foreground(lanes_);
  int error = 0;
  if (reader == Reader::kProgram) {
    Waiting waiting(Wait::kRead, size, Waiting::kTimed);
    error = device_->Read(address, buffer, size);
    storage_ns = waiting.Stop();
  } else {
    const Span span(SpanKind::kRead, size);
    error = device_->Read(address, buffer, size);
  }
  Count(Counter::kStorageReads);
  Count(Counter::kStorageReadBytes, size);
  if (error != 0) return Status::Failed(error, "read").At(path_, address, size);
  return {};
}

}  // namespace tidelane
