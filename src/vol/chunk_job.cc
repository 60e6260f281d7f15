#include "vol/chunk_job.h"

#include <cerrno>
#include <cstring>
#include <new>

#include "base/counters.h"
#include "buffer/arena.h"

namespace tidelane::vol {

void CopyChunk(const ChunkedDataset& facts, const TouchedChunks& touched, const ChunkPiece& piece,
               const void* memory, std::byte* chunk) {
  const ChunkGrid& grid = facts.grid;
  if (piece.size != grid.chunk) {
    const std::vector<std::byte>& fill = *facts.fill;
    const uint64_t bytes = grid.ChunkBytes();
    for (uint64_t at = 0; at < bytes; at += fill.size()) {
      std::memcpy(chunk + at, fill.data(), fill.size());
    }
  }
  const auto* from = static_cast<const std::byte*>(memory);
  touched.ForEachRun(piece, [&](uint64_t in_chunk, uint64_t in_memory, uint64_t bytes) {
    std::memcpy(chunk + in_chunk, from + in_memory, bytes);
  });
}

ChunkSource::ChunkSource(Slab* slab, const ChunkedDataset& facts, const TouchedChunks& touched,
                         const ChunkPiece& piece, const void* memory)
    : slab_(slab), facts_(facts), touched_(touched), piece_(piece), memory_(memory) {
  Arena::Ref(slab_);
}

ChunkSource::~ChunkSource() { Arena::Unref(slab_); }

void ChunkSource::CopyTo(RawBytes& chunk) const {
  if (slab_->data == nullptr) throw std::bad_alloc();  // a fork took it
  const size_t size = facts_.grid.ChunkBytes();
  if (chunk.size() != size) chunk = RawBytes(size);
  CopyChunk(facts_, touched_, piece_, memory_, chunk.data());
}

bool ChunkJob::Begin(State as) {
  int queued = kQueued;
  return state_.compare_exchange_strong(queued, as, std::memory_order_acq_rel);
}

void ChunkJob::Run() {
  try {
    if (source != nullptr) {
      source->CopyTo(bytes);
      source.reset();
    }
    RawBytes filtered;
    status = pipeline_->Encode(bytes, filtered, mask);
    if (status.ok()) stored.Set(std::move(filtered));
  } catch (const std::bad_alloc&) {
    status = Status::Failed(ENOMEM, "filter a chunk");
  }
  if (status.ok()) {
    Count(Counter::kFilterBytesIn, bytes.size());
    Count(Counter::kFilterBytesOut, stored.size());
  }
  state_.store(kDone, std::memory_order_release);
  state_.notify_all();
}

void ChunkJob::RunOne() {
  if (!Begin(kRunning)) return;
  Count(Counter::kChunksFilteredByLanes);
  Run();
}

bool ChunkJob::FilterHere() {
  if (!Begin(kRunning)) return false;
  Count(Counter::kChunksFilteredByCaller);
  Run();
  return true;
}

bool ChunkJob::Cancel() { return Begin(kCancelled); }

}  // namespace tidelane::vol
