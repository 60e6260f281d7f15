/// \file
/// Where an open dataset's elements lie in the file, for writes that leave gaps between them (file/element_places.h).
///
/// Storage in one piece is asked for until it has a place, and keeps that. Of chunks only those are asked for that HDF5 does not cache: parts
/// of them reach the driver as they are written; of others it gets whole ones. They may move between two writes, so each
/// write of many runs asks anew, and only if the chunks that it touches are few beside its runs.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstdint>

#include "file/element_places.h"
#include "vol/dataset_facts.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// A chunk is asked for where it gets so many runs of a write.
inline constexpr uint64_t kRunsOfAChunk = 16;

/// Where the elements of a dataset that is in one piece begin; HADDR_UNDEF where they are not, or nowhere yet (before 1.14.4 in a file with a
/// user block: an address inside of that). To be asked with the default list (vol/call_inside.h).
haddr_t AddressOf(LibraryState& library, void* dataset);

class ElementStorage {
 public:
  /// Once, before it is asked for. The facts are kept by the caller, and `file` is what they are in.
  void Look(LibraryState& library, const DatasetFacts& facts, const File& file);
  /// A write begins: what is known of chunks held for the last one.
  void Begin() {
    if (asks_ == Asks::kChunks) places_.Clear();
  }
  /// Where a write of so many runs goes. To be asked before it. `dxpl` is the call's.
  void Ask(LibraryState& library, void* dataset, hid_t file_space, uint64_t runs, hid_t dxpl);
  bool asks_chunks() const { return asks_ == Asks::kChunks; }
  const ElementPlaces* places() const { return &places_; }

 private:
  enum class Asks { kNothing, kOnePiece, kChunks };

  void AskOnePiece(LibraryState& library, void* dataset);
  void AskChunks(LibraryState& library, void* dataset, hid_t file_space, uint64_t runs);
  void AskChunk(LibraryState& library, void* dataset, const hsize_t* first);

  Asks asks_ = Asks::kNothing;
  const DatasetFacts* facts_ = nullptr;
  ElementPlaces places_;
};

}  // namespace tidelane::vol
