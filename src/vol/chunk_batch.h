/// \file
/// The part of a request that is chunks on their way (vol/chunk_capture.h): their bytes get a place in the file, and
/// an epoch to wait for, only when they are inserted.
///
/// Thread safety: used under HDF5's lock.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "file/completion.h"
#include "vol/library_state.h"
#include "vol/request.h"

namespace tidelane::vol {

/// What a write's jobs and its request share.
struct ChunkBatch {
  size_t on_their_way = 0;
  std::vector<Completion::Part> parts;  ///< of the file's bytes, once they are in
  Status error;                         ///< the first one could not be put in

  /// One of them is in, or is not.
  void Arrived(std::vector<Completion::Part> stored_by, Status status);
};

class ChunkBatchPart final : public DeferredPart {
 public:
  ChunkBatchPart(LibraryState& library, std::shared_ptr<ChunkBatch> chunks)
      : library_(library), chunks_(std::move(chunks)) {}

  /// Inserts what has been filtered; if that is to be waited for, helps with it.
  Completion::State Wait(uint64_t timeout_ns) override;
  Status error() const override;

 private:
  LibraryState& library_;
  const std::shared_ptr<ChunkBatch> chunks_;
  std::shared_ptr<Completion> stored_;  // once all are in
};

}  // namespace tidelane::vol
