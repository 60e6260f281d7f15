/// \file
/// One chunk on its way through its dataset's filters: a copy of what the program wrote, and then
/// what is to be stored.
///
/// Whoever comes first does it: a lane, or the thread that waits for it. A job is done once.
///
/// Thread safety: the state says who may touch the rest: nobody but its maker before Schedule, then
/// whoever runs it, and after `done()` the program's thread.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/raw_bytes.h"
#include "base/status.h"
#include "buffer/slab.h"
#include "chunk/chunk_grid.h"
#include "file/prepared_bytes.h"
#include "lane/lanes.h"
#include "vol/chunked_dataset.h"

namespace tidelane::vol {

struct ChunkBatch;

/// A chunk's elements in memory of ours (file/held_bytes.h), which whoever does the job copies them from.
class ChunkSource {
 public:
  /// `slab` has what of `piece` lies at `memory`.
  ChunkSource(Slab* slab, const ChunkedDataset& facts, const TouchedChunks& touched,
              const ChunkPiece& piece, const void* memory);
  ~ChunkSource();
  ChunkSource(const ChunkSource&) = delete;
  ChunkSource& operator=(const ChunkSource&) = delete;

  /// May throw std::bad_alloc.
  void CopyTo(RawBytes& chunk) const;

 private:
  Slab* const slab_;
  const ChunkedDataset facts_;
  const TouchedChunks touched_;
  const ChunkPiece piece_;
  const void* const memory_;
};

class ChunkJob final : public LaneTask {
 public:
  /// Of the chunk with this number in the dataset's grid.
  ChunkJob(void* dataset_object, const ChunkedDataset& facts, uint64_t chunk_number)
      : dataset(dataset_object),
        number(chunk_number),
        origin(facts.grid.OffsetOf(chunk_number)),
        grid_(facts.grid),
        pipeline_(facts.pipeline) {}

  void* const dataset;
  const uint64_t number;
  const Coordinates origin;
  uint64_t charge = 0;  ///< bytes of memory that it counts for
  RawBytes bytes;       ///< the chunk
  std::unique_ptr<const ChunkSource>
      source;                        ///< where it is to be copied from first; nullptr: it is there
  PreparedBytes stored;              ///< the same, filtered
  uint32_t mask = 0;                 ///< filters that were left out
  Status status;                     ///< of filtering
  std::shared_ptr<ChunkBatch> late;  ///< of the request that it is a part of; else nullptr

  /// On a lane.
  void RunOne() override;
  bool computes() const override { return true; }
  /// On the program's thread: filters it if nobody has begun to; false when somebody has.
  bool FilterHere();
  /// Waits for whoever does.
  void Await() const { state_.wait(kRunning, std::memory_order_acquire); }
  /// Takes it back; false when it has begun.
  bool Cancel();

  const ChunkGrid& grid() const { return grid_; }
  bool done() const { return state_.load(std::memory_order_acquire) == kDone; }
  bool cancelled() const { return state_.load(std::memory_order_relaxed) == kCancelled; }

 private:
  enum State : int { kQueued, kRunning, kDone, kCancelled };

  bool Begin(State as);
  void Run();

  const ChunkGrid grid_;
  const std::shared_ptr<const Pipeline> pipeline_;
  std::atomic<int> state_{kQueued};
};

/// One chunk out of the program's memory; what the box has not of it gets the fill value.
void CopyChunk(const ChunkedDataset& facts, const TouchedChunks& touched, const ChunkPiece& piece,
               const void* memory, std::byte* chunk);

}  // namespace tidelane::vol
