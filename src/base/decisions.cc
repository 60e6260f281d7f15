#include "base/decisions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/lasting_record.h"

namespace tidelane {
namespace {

constexpr size_t kStorages = 8;

constinit LastingRecord<Decisions> record;

// A new one where it is not known yet; nullptr where there are too many.
ModeledStorage* Find(Decisions& all, const std::string& name) {
  const auto found = std::ranges::find(all.storages, name, &ModeledStorage::name);
  if (found != all.storages.end()) return &*found;
  if (all.storages.size() == kStorages) return nullptr;
  all.storages.emplace_back().name = name;
  return &all.storages.back();
}

// Of a mean of relative errors with so many.
void AddError(double expected, double seconds, uint64_t& count, double& mean) {
  ++count;
  mean += (std::abs(expected - seconds) / seconds - mean) / static_cast<double>(count);
}

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
      AddError(decision.forecast->chosen, decision.seconds, all.forecasts, all.forecast_error);
    }
    if (all.last.size() == Decisions::kListed) all.last.erase(all.last.begin());
    all.last.push_back(std::move(decision));
  });
}

void NoteReadEpoch(const ReadEpoch& epoch) {
  record.Change([&](Decisions& all) {
    ReadEpochs& reads = all.reads;
    ++reads.epochs;
    if (epoch.async) ++reads.async_epochs;
    reads.seconds += epoch.seconds;
    if (epoch.expected && epoch.seconds > 0)
      AddError(*epoch.expected, epoch.seconds, reads.forecasts, reads.forecast_error);
  });
}

void NoteStorage(ModeledStorage storage) {
  record.Change([&](Decisions& all) {
    ModeledStorage* const known = Find(all, storage.name);
    if (known == nullptr) return;
    storage.reads = std::move(known->reads);
    *known = std::move(storage);
  });
}

void NoteReads(const std::string& storage, ModeledReads reads) {
  record.Change([&](Decisions& all) {
    if (ModeledStorage* const known = Find(all, storage); known != nullptr)
      known->reads = std::move(reads);
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
