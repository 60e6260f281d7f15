#include "vol/ranks_part.h"

#include <algorithm>
#include <utility>

#include "extent/test_hooks.h"
#include "h5/owned_id.h"
#include "vol/chunked_dataset.h"
#include "vol/ranks_dataset.h"
#include "vol/selected_box.h"

namespace tidelane::vol {

namespace {

// This rank's part of a write.
struct Part {
  std::optional<Fallback> refusal;
  uint64_t bytes = 0;
  uint64_t pieces = 0;
  Place place;
};

struct Selection {
  int rank = 0;
  uint64_t points = 0;
  hsize_t extent[H5S_MAX_RANK] = {};
  hsize_t low[H5S_MAX_RANK] = {};
  hsize_t high[H5S_MAX_RANK] = {};
};

constexpr hsize_t kSampledBlocks = 128;

// Points that follow one another in a block of `length`: from the fastest dimension on, they go on as long as the block
// covers all of what is stored together.
uint64_t RunOf(const Selection& selection, const std::vector<hsize_t>& chunk,
               const hsize_t* length) {
  uint64_t run = 1;
  for (int d = selection.rank - 1; d >= 0; --d) {
    const uint64_t together = chunk.empty() ? selection.extent[d] : chunk[static_cast<size_t>(d)];
    run *= std::min(length[d], together);
    if (length[d] < together) break;
  }
  return run;
}

// A union of blocks, judged by its first ones; 0: HDF5 does not say.
uint64_t RunInBlocks(h5::Library& hdf5, hid_t space, const Selection& selection,
                     const std::vector<hsize_t>& chunk) {
  const auto rank = static_cast<size_t>(selection.rank);
  const hssize_t all = hdf5.Sget_select_hyper_nblocks(space);
  const hsize_t blocks = std::min(static_cast<hsize_t>(std::max<hssize_t>(all, 0)), kSampledBlocks);
  std::vector<hsize_t> corners(blocks * 2 *
                               rank);  // of each block the first point and the last one
  if (blocks == 0 || hdf5.Sget_select_hyper_blocklist(space, 0, blocks, corners.data()) < 0)
    return 0;
  uint64_t points = 0;
  uint64_t pieces = 0;
  for (size_t at = 0; at < corners.size(); at += 2 * rank) {
    hsize_t length[H5S_MAX_RANK];
    uint64_t inside = 1;
    for (size_t d = 0; d < rank; ++d) {
      length[d] = corners[at + rank + d] - corners[at + d] + 1;
      inside *= length[d];
    }
    points += inside;
    pieces += inside / RunOf(selection, chunk, length);
  }
  return pieces == 0 ? 0 : points / pieces;
}

// Contiguous pieces of about equal length.
uint64_t PiecesOf(h5::Library& hdf5, hid_t space, const Selection& selection,
                  const std::vector<hsize_t>& chunk) {
  if (selection.rank == 0) return 1;
  const H5S_sel_type kind = hdf5.Sget_select_type(space);
  if (kind == H5S_SEL_POINTS) return selection.points;
  hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
  const bool regular = kind == H5S_SEL_HYPERSLABS && hdf5.Sis_regular_hyperslab(space) > 0 &&
                       hdf5.Sget_regular_hyperslab(space, start, stride, count, block) >= 0;
  hsize_t length[H5S_MAX_RANK];
  for (int d = 0; d < selection.rank; ++d) {
    length[d] = selection.high[d] - selection.low[d] + 1;
    if (regular)
      length[d] = count[d] == 1 || stride[d] == block[d] ? count[d] * block[d] : block[d];
  }
  uint64_t run = 0;
  if (kind == H5S_SEL_HYPERSLABS && !regular) run = RunInBlocks(hdf5, space, selection, chunk);
  if (run == 0) run = RunOf(selection, chunk, length);
  return std::max<uint64_t>((selection.points + run - 1) / run, 1);
}

void FindPlace(const Selection& selection, Place& place) {
  place.box.end.fill(1);
  uint64_t first = 0;
  uint64_t last = 0;
  for (int d = 0; d < selection.rank; ++d) {
    first = first * selection.extent[d] + selection.low[d];
    last = last * selection.extent[d] + selection.high[d];
    if (d >= WrittenBox::kDimensions) continue;
    place.box.begin[static_cast<size_t>(d)] = selection.low[d];
    place.box.end[static_cast<size_t>(d)] = selection.high[d] + 1;
  }
  place.range = {first, last + 1};
}

bool Select(h5::Library& hdf5, hid_t space, Selection& selection) {
  const hssize_t points = hdf5.Sget_select_npoints(space);
  selection.rank = hdf5.Sget_simple_extent_dims(space, selection.extent, nullptr);
  if (points < 0 || selection.rank < 0) return false;
  selection.points = static_cast<uint64_t>(points);
  return points == 0 || selection.rank == 0 ||
         hdf5.Sget_select_bounds(space, selection.low, selection.high) >= 0;
}

// Fields of compound elements are put into what is read from the file, which other ranks may hold.
bool HasFields(h5::Library& hdf5, hid_t type) { return hdf5.Tdetect_class(type, H5T_COMPOUND) > 0; }

Part PartOf(LibraryState& library, const Writing& writing, bool collective, hid_t dxpl) {
  h5::Library& hdf5 = library.hdf5();
  Part part;
  // With the last handle of what nothing links to its space is given back, by a call that ranks make whenever they like.
  if (!IsLinked(library, writing.dataset) && !MutationEnabled("ranks_unlinked")) {
    part.refusal = Fallback::kMpiUnlinked;
    return part;
  }
  RankDataset& dataset = RankDatasetOf(library, writing.dataset);
  if (!dataset
           .plain) {  // before it is asked for its space: a virtual one would take the extent of its sources
    part.refusal = Fallback::kMpiDataset;
    return part;
  }
  h5::OwnedId own;
  hid_t space = writing.file_space;
  if (space == h5::kDefault) {
    own = AskDataset(library, writing.dataset, H5VL_DATASET_GET_SPACE, dxpl);
    space = own.get();
  }
  const h5::OwnedId type = AskDataset(library, writing.dataset, H5VL_DATASET_GET_TYPE, dxpl);
  Selection selection;
  if (!HasSpace(library, writing.dataset, dataset, dxpl) || !type.valid()) {
    part.refusal = Fallback::kMpiDataset;
    return part;
  }
  if (!IsDataspace(space) || !Select(hdf5, space, selection)) {
    part.refusal = Fallback::kMpiTransfer;
    return part;
  }
  if (hdf5.Tequal(type.get(), writing.memory_type) <= 0 &&
      (collective || HasFields(hdf5, type.get()) || HasFields(hdf5, writing.memory_type))) {
    part.refusal = Fallback::kMpiConverted;
    return part;
  }
  // A rank that writes nothing now may hold what others are about to write.
  part.place.dataset = dataset.number;
  part.place.extent.assign(selection.extent, selection.extent + selection.rank);
  if (selection.points == 0) return part;
  part.bytes = selection.points * hdf5.Tget_size(type.get());
  part.pieces = PiecesOf(hdf5, space, selection, dataset.chunk);
  FindPlace(selection, part.place);
  return part;
}

}  // namespace

RankSelection PartsOf(LibraryState& library, const Writes& writes, bool collective, hid_t dxpl) {
  RankSelection parts;
  for (size_t i = 0; i < writes.count; ++i) {
    Part part = PartOf(library, At(writes, i), collective, dxpl);
    if (!parts.refusal.has_value()) parts.refusal = part.refusal;
    parts.bytes += part.bytes;
    parts.pieces += part.pieces;
    parts.places.push_back(std::move(part.place));
  }
  return parts;
}

Scatter ScatterOf(LibraryState& library, void* dataset, hid_t file_space, hid_t dxpl) {
  const RankDataset& known = RankDatasetOf(library, dataset);
  if (!known.plain) return {};
  h5::OwnedId own;
  hid_t space = file_space;
  if (space == h5::kDefault) {
    own = AskDataset(library, dataset, H5VL_DATASET_GET_SPACE, dxpl);
    space = own.get();
  }
  const h5::OwnedId type = AskDataset(library, dataset, H5VL_DATASET_GET_TYPE, dxpl);
  Selection selection;
  if (!type.valid() || !IsDataspace(space) || !Select(library.hdf5(), space, selection) ||
      selection.points == 0) {
    return {};
  }
  const uint64_t element = library.hdf5().Tget_size(type.get());
  Place place;
  FindPlace(selection, place);
  return {.bytes = selection.points * element,
          .pieces = PiecesOf(library.hdf5(), space, selection, known.chunk),
          .span = (place.range.end - place.range.begin) * element};
}

bool IsKnownTransfer(LibraryState& library, hid_t dxpl) {
  if (dxpl == library.default_dxpl) return true;
  h5::Library& hdf5 = library.hdf5();
  void* transform = nullptr;
  H5D_selection_io_mode_t selection_io = H5D_SELECTION_IO_MODE_OFF;
  return hdf5.Pget(dxpl, "data_transform", &transform) >= 0 && transform == nullptr &&
         hdf5.Pget(dxpl, "selection_io_mode", &selection_io) >= 0 &&
         selection_io != H5D_SELECTION_IO_MODE_OFF;
}

}  // namespace tidelane::vol
