/// \file
/// What HDF5 says of a dataset whose chunks are filtered without it, for reads and writes alike.
///
/// Every question costs up to some microseconds: who asks keeps the answer.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "codec/pipeline.h"
#include "h5/owned_id.h"
#include "vol/instance.h"
#include "vol/selected_box.h"

namespace tidelane::vol {

/// What does not change while a dataset is open, but for the grid's extent.
struct ChunkedDataset {
  std::shared_ptr<const Pipeline> pipeline;            ///< nullptr: its chunks are HDF5's
  std::shared_ptr<const std::vector<std::byte>> fill;  ///< one element; empty: HDF5 writes none
  ChunkGrid grid;
};

/// Whether the dataset is stored in one piece: the quickest question, which tells most datasets that have no chunks. (Not
/// those without storage yet.)
bool IsStoredInOnePiece(Instance& instance, void* dataset, hid_t dxpl);

/// Answers of the native connector's `get` that are an id.
h5::OwnedId AskDataset(Instance& instance, void* dataset, H5VL_dataset_get_t what, hid_t dxpl);

/// How a dataset was made; not valid where its elements are not plain (IsPlainType). HDF5 makes that list anew for each
/// question and converts the fill value for it: in a variable-length type, through a pointer to the file that dangles
/// once another opening of the file has been closed. It uses what the call in progress knows of its transfer list: ask
/// aside (vol/enter.h). `type`: of its elements, asked in the call itself, as HDF5 cannot make the id of a committed one
/// elsewhere.
h5::OwnedId CreationListOf(Instance& instance, void* dataset, hid_t type, hid_t dxpl);

/// Its filters; nullptr: only HDF5 can run them.
std::shared_ptr<const Pipeline> PipelineOf(h5::Library& hdf5, hid_t dcpl, DeflateWith deflate,
                                           Pipeline::Use use = Pipeline::Use::kBoth);

/// Elements that are what they are in the file: no references, nothing of variable length.
bool IsPlainType(h5::Library& hdf5, hid_t type);

/// Grid (without the extent) and fill value; false: elements, or chunks, that only HDF5 understands.
bool FindChunks(h5::Library& hdf5, hid_t type, hid_t dcpl, ChunkedDataset& found);

/// The extent as it is now; false where there is none, or an empty one.
bool FindExtent(Instance& instance, void* dataset, hid_t dxpl, ChunkGrid& grid);

/// What `file_space` selects, as H5Dread or H5Dwrite was given it; nullopt: not one box of this
/// extent.
std::optional<SelectedBox> BoxOf(h5::Library& hdf5, const ChunkGrid& grid, hid_t file_space);

/// Whether HDF5's chunk queries answer with addresses as its drivers get them: those before 1.14.4 leave the user block out, of
/// so many bytes.
bool ChunkAddressesAreTheFiles(h5::Library& hdf5, uint64_t user_block);

/// How many bytes HDF5's chunk cache holds of a dataset.
std::optional<uint64_t> ChunkCacheOf(Instance& instance, void* dataset, hid_t dxpl);

/// Whether elements are in memory what they are in the file.
bool IsUnconverted(Instance& instance, void* dataset, hid_t memory_type, hid_t dxpl);

/// A list of the program's own may ask for a transformation, or for checksums to be ignored.
bool IsPlainTransfer(Instance& instance, hid_t dxpl);

}  // namespace tidelane::vol
