#include "vol/chunk_job.h"

#include <cerrno>
#include <new>

#include "base/counters.h"

namespace tidelane::vol {

bool ChunkJob::Begin(State as) {
  int queued = kQueued;
  return state_.compare_exchange_strong(queued, as, std::memory_order_acq_rel);
}

void ChunkJob::Run() {
  try {
    status = pipeline_->Encode(bytes, stored, mask);
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
