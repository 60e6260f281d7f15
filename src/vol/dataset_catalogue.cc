#include "vol/dataset_catalogue.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace tidelane::vol {

bool DatasetEntry::stays() const {
  return std::ranges::any_of(states_,
                             [](const auto& state) { return state != nullptr && state->stays(); });
}

void DatasetEntry::Forgotten(Instance& instance) const {
  for (const auto& state : states_) {
    if (state != nullptr) state->Forgotten(instance);
  }
}

DatasetCatalogue& DatasetCatalogue::Of(Instance& instance) {
  if (instance.datasets == nullptr) instance.datasets = new DatasetCatalogue;
  return *instance.datasets;
}

// Numbers go on when a forked child begins anew: requests have kept some.
DatasetEntry& DatasetCatalogue::Add(void* dataset) {
  static constinit std::atomic<uint64_t> numbers{0};
  const auto found = known_.find(dataset);
  return found != known_.end() ? found->second
                               : known_.try_emplace(dataset, ++numbers).first->second;
}

void DatasetCatalogue::Forget(Instance& instance, void* dataset) {
  const auto found = known_.find(dataset);
  if (found == known_.end()) return;
  found->second.Forgotten(instance);
  known_.erase(found);
  newest_ = nullptr;
}

void DatasetCatalogue::ForgetAll(Instance& instance) {
  std::erase_if(known_, [&](const auto& entry) {
    if (entry.second.stays()) return false;
    entry.second.Forgotten(instance);
    return true;
  });
  newest_ = nullptr;
}

const DatasetFacts& FactsOf(Instance& instance, void* dataset, hid_t dxpl, Ask when) {
  DatasetEntry& entry = DatasetCatalogue::Of(instance).At(dataset);
  if (entry.facts == nullptr || when == Ask::kAtOpen) {
    DatasetFacts facts = AskFacts(instance, dataset, dxpl, when);
    if (entry.facts == nullptr) entry.facts = std::make_unique<DatasetFacts>();
    *entry.facts = std::move(facts);
  }
  return *entry.facts;
}

}  // namespace tidelane::vol
