/// \file
/// The open datasets of one libhdf5, and what is known of each. HDF5 is asked once, whoever wants to know.
///
/// Everybody who has something to remember of a dataset (how it is written, which chunks of it are on their way, where they lie, what ranks
/// have agreed on) keeps a *state* of his own here, and shares the facts. One call forgets all of it.
///
/// Invariant: nothing is known of a dataset after its close, but what `stays`: chunks may be on their way then, for which it is kept
/// open. HDF5 gives the address of a closed dataset to the next one: who makes or opens one forgets first, as others than the
/// program close datasets, too.
///
/// Thread safety: used inside callbacks, under HDF5's lock. A forked child begins anew (vol/fork.cc).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "vol/dataset_facts.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// What one of those who use the catalogue knows of a dataset. Each has a kind of his own, `State::kKind`.
class DatasetState {
 public:
  enum Kind : uint8_t { kSieve, kFiltered, kRead, kRank, kKinds };
  virtual ~DatasetState() = default;
  /// Whether the dataset is open still, although the program has closed it.
  virtual bool stays() const { return false; }
  /// It is about to be forgotten.
  virtual void Forgotten(LibraryState& /*library*/) {}
};

class DatasetEntry {
 public:
  explicit DatasetEntry(uint64_t number_of_it) : number(number_of_it) {}

  const uint64_t number;  ///< no other entry ever had it
  unsigned long serial =
      0;  ///< HDF5's number of its file, noted where ranks have that open together

  /// Whether filtered chunks are ever in it, as far as was seen before the facts were asked for.
  enum class FilteredChunks : uint8_t { kPerhaps, kProbablyNone, kNone };
  FilteredChunks filtered_chunks = FilteredChunks::kPerhaps;
  unsigned small_writes = 0;     ///< that it has seen meanwhile
  bool reads_no_chunks = false;  ///< known to have none that are read past HDF5

  std::unique_ptr<DatasetFacts>
      facts;  ///< nullptr: not asked for (FactsOf); states may point to them

  /// nullptr: there is none.
  template <typename State>
  State* Find() const {
    return static_cast<State*>(states_[State::kKind].get());
  }
  /// Made where there is none.
  template <typename State>
  State& Get() {
    if (states_[State::kKind] == nullptr) states_[State::kKind] = std::make_unique<State>();
    return *Find<State>();
  }
  template <typename State>
  void Drop() {
    states_[State::kKind] = nullptr;
  }

  bool stays() const;
  void Forgotten(LibraryState& library) const;

 private:
  std::array<std::unique_ptr<DatasetState>, DatasetState::kKinds> states_;
};

/// What was found lately. Where hundreds of datasets are used in turn, each step of a look-up in a table misses the processor's caches: this
/// is one step, a set of places that share a line of the cache.
class RecentEntries {
 public:
  /// nullptr: not here.
  DatasetEntry* Find(void* dataset) const {
    for (const Place& place : SetOf(dataset)) {
      if (place.dataset == dataset) return place.entry;
    }
    return nullptr;
  }
  DatasetEntry& Keep(void* dataset, DatasetEntry& entry) {
    Set& set = SetOf(dataset);
    std::move_backward(set.begin(), set.end() - 1, set.end());
    set.front() = {dataset, &entry};
    return entry;
  }
  void Forget(void* dataset) {
    for (Place& place : SetOf(dataset)) {
      if (place.dataset == dataset) place = {};
    }
  }
  void ForgetAll() { sets_ = {}; }

 private:
  struct Place {
    void* dataset = nullptr;
    DatasetEntry* entry = nullptr;
  };
  using Set = std::array<Place, 4>;
  static constexpr size_t kSets = 512;

  static size_t IndexOf(void* dataset) {
    // The upper bits of this product depend on all of the address.
    return reinterpret_cast<uintptr_t>(dataset) * 0x9E3779B97F4A7C15u >> 55;
  }
  static_assert(kSets == 1u << (64 - 55));
  Set& SetOf(void* dataset) { return sets_[IndexOf(dataset)]; }
  const Set& SetOf(void* dataset) const { return sets_[IndexOf(dataset)]; }

  alignas(64) std::array<Set, kSets> sets_{};
};

class DatasetCatalogue {
 public:
  static DatasetCatalogue& Of(LibraryState& library);

  /// Found, or new.
  DatasetEntry& At(void* dataset) {
    DatasetEntry* const recent = recent_.Find(dataset);
    return recent != nullptr ? *recent : recent_.Keep(dataset, Add(dataset));
  }
  /// nullptr: nothing is known of it.
  DatasetEntry* Find(void* dataset) {
    if (DatasetEntry* const recent = recent_.Find(dataset); recent != nullptr) return recent;
    const auto found = known_.find(dataset);
    return found == known_.end() ? nullptr : &recent_.Keep(dataset, found->second);
  }
  template <typename State>
  State* Find(void* dataset) {
    DatasetEntry* const entry = Find(dataset);
    return entry == nullptr ? nullptr : entry->template Find<State>();
  }

  /// `use(dataset, state)` for each state of that kind.
  template <typename State, typename Use>
  void ForEach(Use use) {
    for (auto& [dataset, entry] : known_) {
      State* const state = entry.template Find<State>();
      if (state != nullptr) use(dataset, *state);
    }
  }

  void Forget(LibraryState& library, void* dataset);
  /// All but what stays.
  void ForgetAll(LibraryState& library);

 private:
  DatasetEntry& Add(void* dataset);

  std::unordered_map<void*, DatasetEntry> known_;
  RecentEntries recent_;
};

/// HDF5's number of the file that a dataset is in. False: HDF5 did not say.
bool SerialOfDataset(LibraryState& library, void* dataset, unsigned long& serial);

/// What HDF5 says of it, asked now if it was not, or if it has just been opened. `dxpl` is the transfer list of the call in progress. Where they
/// are they stay until the dataset is forgotten.
const DatasetFacts& FactsOf(LibraryState& library, void* dataset, hid_t dxpl,
                            Ask when = Ask::kLater);

/// `dataset` is closed, or was just made or opened.
inline void ForgetDataset(LibraryState& library, void* dataset) {
  if (library.datasets != nullptr) library.datasets->Forget(library, dataset);
}
/// HDF5 has read all of them anew (H5Drefresh, SWMR), or closes.
inline void ForgetDatasets(LibraryState& library) {
  if (library.datasets != nullptr) library.datasets->ForgetAll(library);
}

}  // namespace tidelane::vol
