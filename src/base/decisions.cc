#include "base/decisions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/lasting_record.h"

namespace tidelane {
namespace {

constexpr size_t kStorages = 8;

constinit LastingRecord<Decisions> record;

}  // namespace

void NoteDecision(Decision decision) {
  record.Change([&](Decisions& all) {
    ++all.epochs;
    if (decision.async) ++all.async_epochs;
    all.epoch_seconds += decision.seconds;
    const auto before =
        std::find_if(all.last.rbegin(), all.last.rend(),
                     [&](const Decision& other) { return other.storage == decision.storage; });
    if (before != all.last.rend() && before->async != decision.async) ++all.changes;
    if (decision.forecast && !decision.last && decision.seconds > 0) {
      const double error =
          std::abs(decision.forecast->chosen - decision.seconds) / decision.seconds;
      ++all.forecasts;
      all.forecast_error += (error - all.forecast_error) / static_cast<double>(all.forecasts);
    }
    if (all.last.size() == Decisions::kListed) all.last.erase(all.last.begin());
    all.last.push_back(std::move(decision));
  });
}

void NoteStorage(ModeledStorage storage) {
  record.Change([&](Decisions& all) {
    const auto found = std::ranges::find(all.storages, storage.name, &ModeledStorage::name);
    if (found != all.storages.end()) {
      *found = std::move(storage);
    } else if (all.storages.size() < kStorages) {
      all.storages.push_back(std::move(storage));
    }
  });
}

void NoteStart(double seconds) {
  record.Change([&](Decisions& all) { all.start_seconds = seconds; });
}

void NoteEnd(double seconds) {
  record.Change([&](Decisions& all) { all.end_seconds = seconds; });
}

Decisions ReadDecisions() { return record.Read(); }

void ResetDecisionsAfterFork() { record.ResetAfterFork(); }

}  // namespace tidelane
