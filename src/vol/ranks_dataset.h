/// \file
/// What is known of datasets in files that ranks have open together (vol/ranks.h), so that HDF5 is asked once.
///
/// Invariant: nothing is known of a dataset after its close, or a file's. Thread safety: used inside callbacks, under HDF5's
/// lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "vol/chunked_dataset.h"
#include "vol/instance.h"

namespace tidelane::vol {

struct RankDataset {
  bool plain = false;  ///< contiguous in this file, or in chunks without filters
  bool has_space = false;
  uint64_t number = 0;                       ///< of the object, in its file
  std::vector<hsize_t> chunk;                ///< empty: contiguous
  std::unique_ptr<ChunkedDataset> filtered;  ///< by filters that lanes run; nullptr: it is not
  uint32_t all_filters = 0;                  ///< as a mask: to be left out
};

RankDataset& RankDatasetOf(Instance& instance, void* object, hid_t dxpl);

/// Whether it has space in the file, or what there is of filtered chunks; asks until it has.
bool HasSpace(Instance& instance, void* object, RankDataset& dataset, hid_t dxpl);

void ForgetRankDataset(Instance& instance, void* dataset);
void ForgetRankDatasets(Instance& instance);

}  // namespace tidelane::vol
