/// \file
/// A dataset whose chunks are read or written without HDF5, and what HDF5 has to be asked for each transfer.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "codec/pipeline.h"
#include "h5/owned_id.h"
#include "vol/dataset_facts.h"
#include "vol/library_state.h"
#include "vol/selected_box.h"

namespace tidelane::vol {

/// What does not change while a dataset is open, but for the grid's extent.
struct ChunkedDataset {
  std::shared_ptr<const Pipeline> pipeline;            ///< nullptr: its chunks are HDF5's
  std::shared_ptr<const std::vector<std::byte>> fill;  ///< one element; empty: HDF5 writes none
  ChunkGrid grid;
};

/// Its filters; nullptr: there are none, or only HDF5 can run them.
std::shared_ptr<const Pipeline> PipelineOf(const DatasetFacts& facts, DeflateWith deflate,
                                           Pipeline::Use use = Pipeline::Use::kBoth);

/// Grid (without the extent) and fill value; false: elements, or chunks, that only HDF5 understands.
bool FindChunks(const DatasetFacts& facts, ChunkedDataset& found);

/// The extent as it is now; false where there is none, or an empty one.
bool FindExtent(LibraryState& library, void* dataset, hid_t dxpl, ChunkGrid& grid);

/// What `file_space` selects, as H5Dread or H5Dwrite was given it; nullopt: not one box of this
/// extent.
std::optional<SelectedBox> BoxOf(h5::Library& hdf5, const ChunkGrid& grid, hid_t file_space);

/// Whether HDF5's chunk queries answer with addresses as its drivers get them: those before 1.14.4 leave the user block out, of
/// so many bytes.
bool ChunkAddressesAreTheFiles(h5::Library& hdf5, uint64_t user_block);

/// Whether elements are in memory what they are in the file.
bool IsUnconverted(LibraryState& library, void* dataset, hid_t memory_type, hid_t dxpl);

/// A list of the program's own may ask for a transformation, or for checksums to be ignored.
bool IsPlainTransfer(LibraryState& library, hid_t dxpl);

}  // namespace tidelane::vol
