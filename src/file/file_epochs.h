/// \file
/// What requests wait for in one file: the bytes that their calls captured, and what the program lent for them.
///
/// Invariant: bytes of two requests never share an epoch; no buffer of the program's is looked at after its request has been told of a
/// failure.
/// Thread safety: all functions may be called from any thread; who passes the backlog holds the file's mutex.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/annotations.h"
#include "file/call_scope.h"
#include "file/drainer.h"
#include "file/epoch_source.h"

namespace tidelane {

class FileEpochs final : public EpochSource {
 public:
  FileEpochs(FileContext& file, Drainer& drainer) : file_(file), drainer_(drainer) {}

  /// The one that bytes which are captured now belong to; the call's request will wait for it.
  uint64_t OfCall(Backlog& backlog, const CallContext& call);
  /// The call's request, if it has one, will wait for all that is pending.
  void AddBarrier(Backlog& backlog, const CallContext& call);

  Epochs::State Poll(uint64_t epoch, bool and_older, Status& error) override;
  Epochs::State WaitFor(uint64_t epoch, bool and_older,
                        std::chrono::steady_clock::time_point deadline, Status& error) override;
  void EndLoans() override;

 private:
  // A request is about to be told of a failure: from then on the program may free what it lent us.
  void EndLoansLocked() TL_REQUIRES(drainer_.mutex());
  std::shared_ptr<EpochSource> Self();

  FileContext& file_;
  Drainer& drainer_;
};

}  // namespace tidelane
