/// \file
/// What a request waits for: bytes that its call captured somewhere, known by the number of an epoch (file/completion.h).
///
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/status.h"
#include "extent/epochs.h"

namespace tidelane {

class EpochSource {
 public:
  virtual ~EpochSource() = default;

  /// How an epoch (or all up to it) stands; starts its work.
  virtual Epochs::State Poll(uint64_t epoch, bool and_older, Status& error) = 0;
  /// Waits for it until `deadline`.
  virtual Epochs::State WaitFor(uint64_t epoch, bool and_older,
                                std::chrono::steady_clock::time_point deadline, Status& error) = 0;
  /// Copies what is queued from lent buffers, after waiting for what is in flight from them; nothing is lent any more.
  virtual void EndLoans() = 0;
};

}  // namespace tidelane
