/// \file
/// What HDF5 says of an open dataset that does not change while it is open: asked once, for all who want to know any of it.
///
/// The questions together take some ten microseconds. Who has a quicker way to tell that a dataset is none of its business
/// (IsStoredInOnePiece) goes that way first. The answers are kept by the catalogue (vol/dataset_catalogue.h).
///
/// Invariant: to ask changes nothing for the call in progress, neither its transfer list nor its error stack, and reads no metadata where
/// ranks read it together.
///
/// Thread safety: used inside callbacks, under HDF5's lock; values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "chunk/chunk_grid.h"
#include "codec/pipeline.h"
#include "file/file.h"
#include "h5/owned_id.h"
#include "vol/library_state.h"

namespace tidelane::vol {

struct DatasetFacts {
  /// HDF5's own side of the serial file of ours that it is in; nullptr: it is in none.
  H5FD_t* open = nullptr;
  std::weak_ptr<File> file;
  bool of_ranks = false;           ///< it is in one that ranks only read, and `open` is not known
  bool metadata_together = false;  ///< no rank may read metadata of it alone
  uint64_t user_block = 0;         ///< added to the addresses in that file
  bool page_buffer = false;        ///< elements may be there, and not yet with the driver

  enum class Elements : uint8_t {
    kUnknown,
    kPlain,  ///< what they are in the file: no references, nothing of variable length
    kOther,  ///< of such a dataset HDF5 is asked nothing that follows
  };
  Elements elements = Elements::kUnknown;
  bool committed_type = false;

  H5D_layout_t layout = H5D_LAYOUT_ERROR;  ///< H5D_LAYOUT_ERROR: it is not known how it was made
  bool external = false;                   ///< it is in files that HDF5 opens itself
  H5D_alloc_time_t alloc_time = H5D_ALLOC_TIME_ERROR;
  bool fills =
      false;  ///< what was never written is read as a value, and not left as the reader's memory was

  // Of one in chunks.
  ChunkGrid grid;            ///< but for its extent; of rank 0 where HDF5 did not say
  bool whole_edges = false;  ///< chunks that reach beyond the extent are filtered, too
  std::optional<std::vector<FilterSpec>> filters;      ///< nullopt: HDF5 did not say
  std::shared_ptr<const std::vector<std::byte>> fill;  ///< one element; empty unless it `fills`
  std::optional<uint64_t> cache_bytes;                 ///< what HDF5's chunk cache holds

  /// Whether its chunks can be read and written without HDF5, as far as their elements go.
  bool has_plain_chunks() const { return fill != nullptr && whole_edges; }
};

/// When a dataset is asked about: of one in a file that ranks have open together only then HDF5 has just read all of it.
enum class Ask : uint8_t { kAtOpen, kLater };

/// `serial` is HDF5's number of the file that it is in, `dxpl` the transfer list of the call in progress. What HDF5 does not say is not known.
DatasetFacts AskFacts(LibraryState& library, void* dataset, unsigned long serial, hid_t dxpl,
                      Ask when = Ask::kLater);

/// Answers of the native connector's `get` that are an id.
h5::OwnedId AskDataset(LibraryState& library, void* dataset, H5VL_dataset_get_t what, hid_t dxpl);

/// Whether the dataset is stored in one piece: the quickest question, which tells most datasets that have no chunks. (Not
/// those without storage yet.)
bool IsStoredInOnePiece(LibraryState& library, void* dataset, hid_t dxpl);

/// Elements that are what they are in the file: no references, nothing of variable length.
bool IsPlainType(h5::Library& hdf5, hid_t type);

}  // namespace tidelane::vol
