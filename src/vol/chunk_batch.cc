#include "vol/chunk_batch.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/trace.h"
#include "vol/call_queue.h"

namespace tidelane::vol {

void ChunkBatch::Arrived(std::vector<Completion::Part> stored_by, Status status) {
  --on_their_way;
  if (error.ok()) error = std::move(status);
  try {  // HDF5 is between us and whoever could catch it
    parts.insert(parts.end(), std::make_move_iterator(stored_by.begin()),
                 std::make_move_iterator(stored_by.end()));
  } catch (const std::bad_alloc&) {
    if (error.ok()) error = Status::Failed(ENOMEM, "wait for chunks");
  }
}

Completion::State ChunkBatchPart::Wait(uint64_t timeout_ns) {
  if (stored_ == nullptr) {
    const uint64_t begin = NowNs();
    CallQueue* const calls = library_.call_queue;
    const auto are_in = [this] { return chunks_->on_their_way == 0; };
    if (!are_in() && calls != nullptr && !calls->DoUntil(are_in, timeout_ns)) {
      chunks_->error = Status::Failed(ENOMEM, "put chunks that were written into the file");
      return Completion::State::kFailed;
    }
    if (!are_in() && (calls == nullptr || calls->empty())) {
      // Forked while another thread was inside HDF5 (vol/fork.cc): the parent inserts them.
      chunks_->error = Status::Failed(ECANCELED, "store what the parent process wrote");
      return Completion::State::kFailed;
    }
    if (chunks_->on_their_way != 0) return Completion::State::kPending;
    stored_ = std::make_shared<Completion>(std::move(chunks_->parts));
    if (timeout_ns != UINT64_MAX) timeout_ns -= std::min(timeout_ns, NowNs() - begin);
  }
  const Completion::State state = stored_->Wait(timeout_ns);
  return state == Completion::State::kDone && !chunks_->error.ok() ? Completion::State::kFailed
                                                                   : state;
}

Status ChunkBatchPart::error() const {
  return chunks_->error.ok() && stored_ != nullptr ? stored_->error() : chunks_->error;
}

}  // namespace tidelane::vol
