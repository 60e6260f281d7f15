/// \file
/// What is known of a dataset that is read.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstdint>
#include <memory>

#include "chunk/chunk_read.h"
#include "vol/chunked_dataset.h"
#include "vol/dataset_catalogue.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// What H5Dread was asked for, of one dataset.
struct Reading {
  void* dataset;
  hid_t memory_type;
  hid_t memory_space;
  hid_t file_space;
  hid_t dxpl;
  void* buffer;
};

struct ReadDataset final : DatasetState, ChunkedDataset {
  static constexpr Kind kKind = kRead;

  std::weak_ptr<File> file;
  bool direct =
      false;  ///< elements lie in a file of ours as they do in memory, or filtered chunks of them
  bool chunks = false;                  ///< and they can be read chunk by chunk, without HDF5
  uint64_t cache_bytes = 0;             ///< what HDF5's chunk cache holds
  uint64_t version = UINT64_MAX;        ///< of the extent
  std::shared_ptr<const ChunkMap> map;  ///< as of `version`; nullptr: not made
  bool stored = true;                   ///< some chunk has a place there
  uint64_t touched = 0;                 ///< chunks that were wanted while there was none
};

/// Found, or looked at now.
ReadDataset& ReadDatasetOf(LibraryState& library, const Reading& reading);

/// For a map of `chunks`: if it were too much with the others, those go. They are made again when they are wanted.
void MakeRoomForMap(LibraryState& library, uint64_t chunks);

/// A close that gives no request is a wait: HDF5's own tests look at what they read right after it.
inline void EndReadsOf(LibraryState& library, void* dataset) {
  if (library.datasets == nullptr) return;
  const ReadDataset* const known = library.datasets->Find<ReadDataset>(dataset);
  if (known == nullptr) return;
  if (const auto file = known->file.lock(); file != nullptr)
    file->reads().deferred_reads().AwaitFilling();
}

}  // namespace tidelane::vol
