#include "vol/dataset_catalogue.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "h5/error.h"
#include "vol/object_info.h"

namespace tidelane::vol {

bool DatasetEntry::stays() const {
  return std::ranges::any_of(states_,
                             [](const auto& state) { return state != nullptr && state->stays(); });
}

void DatasetEntry::Forgotten(LibraryState& library) const {
  for (const auto& state : states_) {
    if (state != nullptr) state->Forgotten(library);
  }
}

DatasetCatalogue& DatasetCatalogue::Of(LibraryState& library) {
  if (library.datasets == nullptr) library.datasets = new DatasetCatalogue;
  return *library.datasets;
}

// Numbers go on when a forked child begins anew: requests have kept some.
DatasetEntry& DatasetCatalogue::Add(void* dataset) {
  static constinit std::atomic<uint64_t> numbers{0};
  const auto found = known_.find(dataset);
  return found != known_.end() ? found->second
                               : known_.try_emplace(dataset, ++numbers).first->second;
}

void DatasetCatalogue::Forget(LibraryState& library, void* dataset) {
  const auto found = known_.find(dataset);
  if (found == known_.end()) return;
  found->second.Forgotten(library);
  known_.erase(found);
  recent_.Forget(dataset);
}

void DatasetCatalogue::ForgetAll(LibraryState& library) {
  std::erase_if(known_, [&](const auto& entry) {
    if (entry.second.stays()) return false;
    entry.second.Forgotten(library);
    return true;
  });
  recent_.ForgetAll();
}

bool SerialOfDataset(LibraryState& library, void* dataset, unsigned long& serial) {
  if (library.hdf5().FileSerial(dataset, H5I_DATASET, serial)) return true;
  if (library.parallel_files && library.datasets != nullptr) {
    const DatasetEntry* const known = library.datasets->Find(dataset);
    if (known != nullptr && known->serial != 0) {
      serial = known->serial;
      return true;
    }
  }
  H5O_info2_t info{};
  if (!InfoOf(library, dataset, H5I_DATASET, info)) return false;
  serial = info.fileno;
  return true;
}

const DatasetFacts& FactsOf(LibraryState& library, void* dataset, hid_t dxpl, Ask when) {
  DatasetEntry& entry = DatasetCatalogue::Of(library).At(dataset);
  if (entry.facts == nullptr || when == Ask::kAtOpen) {
    const h5::KeepErrorStack keep(library.hdf5());
    unsigned long serial = 0;
    DatasetFacts facts;
    if (SerialOfDataset(library, dataset, serial))
      facts = AskFacts(library, dataset, serial, dxpl, when);
    if (entry.facts == nullptr) entry.facts = std::make_unique<DatasetFacts>();
    *entry.facts = std::move(facts);
  }
  return *entry.facts;
}

}  // namespace tidelane::vol
