/// \file
/// One record under a lock; it is made with the first epoch and never destroyed.
///
/// Thread safety: as decisions.h; the lock is a leaf.
#include "base/decisions.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <type_traits>

#include "base/annotations.h"

namespace tidelane {
namespace {

constexpr size_t kStorages = 8;

struct Record {
  Mutex mutex;
  Decisions* decisions TL_GUARDED_BY(mutex) = nullptr;

  Decisions& Get() TL_REQUIRES(mutex) {
    if (decisions == nullptr) decisions = new Decisions;
    return *decisions;
  }
};

// Trivially destructible, so it outlives static destruction.
constinit Record record;
static_assert(std::is_trivially_destructible_v<Record>);

}  // namespace

void NoteDecision(Decision decision) {
  MutexLock lock(record.mutex);
  Decisions& all = record.Get();
  ++all.epochs;
  if (decision.async) ++all.async_epochs;
  all.epoch_seconds += decision.seconds;
  const auto before = std::find_if(all.last.rbegin(), all.last.rend(), [&](const Decision& other) {
    return other.storage == decision.storage;
  });
  if (before != all.last.rend() && before->async != decision.async) ++all.changes;
  if (decision.forecast && !decision.last && decision.seconds > 0) {
    const double error = std::abs(decision.forecast->chosen - decision.seconds) / decision.seconds;
    ++all.forecasts;
    all.forecast_error += (error - all.forecast_error) / static_cast<double>(all.forecasts);
  }
  if (all.last.size() == Decisions::kListed) all.last.erase(all.last.begin());
  all.last.push_back(std::move(decision));
}

void NoteStorage(ModeledStorage storage) {
  MutexLock lock(record.mutex);
  std::vector<ModeledStorage>& storages = record.Get().storages;
  const auto found = std::ranges::find(storages, storage.name, &ModeledStorage::name);
  if (found != storages.end()) {
    *found = std::move(storage);
  } else if (storages.size() < kStorages) {
    storages.push_back(std::move(storage));
  }
}

void NoteStart(double seconds) {
  MutexLock lock(record.mutex);
  record.Get().start_seconds = seconds;
}

void NoteEnd(double seconds) {
  MutexLock lock(record.mutex);
  record.Get().end_seconds = seconds;
}

Decisions ReadDecisions() {
  MutexLock lock(record.mutex);
  return record.decisions == nullptr ? Decisions() : *record.decisions;
}

void ResetDecisionsAfterFork() {
  new (&record.mutex) Mutex();  // another thread may have been inside: it is not here
  MutexLock lock(record.mutex);
  record.decisions = nullptr;  // torn, for all we know
}

}  // namespace tidelane
