/// \file
/// What is known of datasets in files that ranks have open together (vol/ranks.h).
///
/// Where a file's metadata reads are collective (H5Pset_all_coll_metadata_ops; netCDF-4 sets it) a rank that writes alone must
/// not read metadata: the others would not. So HDF5 is asked at open, when the dataset's header has just been read, and in such
/// files never again: what is not known any more makes a write HDF5's.
///
/// Files come and go meanwhile (H5Freopen).
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "vol/chunked_dataset.h"
#include "vol/dataset_catalogue.h"
#include "vol/library_state.h"

namespace tidelane::vol {

struct RankDataset final : DatasetState {
  static constexpr Kind kKind = kRank;

  uint64_t number = 0;    ///< of the object, in its file
  bool linked = false;    ///< something links to it, as far as is known (IsLinked)
  uint64_t asked_at = 0;  ///< so many groups had lost a link by then
  bool plain = false;     ///< contiguous in this file, or in chunks without filters
  bool has_space = false;
  std::vector<hsize_t> chunk;                ///< empty: contiguous
  std::unique_ptr<ChunkedDataset> filtered;  ///< by filters that lanes run; nullptr: it is not
  uint32_t all_filters = 0;                  ///< as a mask: to be left out
};

/// After a dataset was made or opened, in whatever file.
void NoteRankDataset(LibraryState& library, void* dataset);

/// What is known; asks HDF5 now if it was not asked at open.
RankDataset& RankDatasetOf(LibraryState& library, void* dataset);

/// Whether it has space in the file, or what there is of filtered chunks; asks until it has.
bool HasSpace(LibraryState& library, void* dataset, RankDataset& known, hid_t dxpl);

/// Whether something links to it, as far as is known. Asks again only after something lost a link that the dataset may have had, and
/// where a rank may read metadata by itself.
bool IsLinked(LibraryState& library, void* dataset);
/// An object is about to lose a link; nullptr: nobody knows which.
void NoteUnlinked(LibraryState& library, const H5O_info2_t* info);

}  // namespace tidelane::vol
