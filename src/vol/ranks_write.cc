#include "vol/ranks_write.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "h5/error.h"
#include "h5/owned_id.h"
#include "vol/chunked_dataset.h"
#include "vol/find_file.h"
#include "vol/ranks.h"
#include "vol/tracked_call.h"

namespace tidelane::vol {

namespace {

constexpr uint64_t kFewPieces = 16;     // they cost nothing to speak of, however small they are
constexpr int kMostRanksInBoxes = 64;   // every rank looks at every other one's
constexpr hid_t kLastSpecialSpace = 2;  // H5S_ALL, H5S_BLOCK, H5S_PLIST

}  // namespace

// How a dataset is stored.
struct RankDataset {
  bool plain = false;  // contiguous in this file, or in chunks without filters
  bool has_space = false;
  uint64_t number = 0;         // of the object, in its file
  std::vector<hsize_t> chunk;  // empty: contiguous
};

class RankDatasets {
 public:
  std::unordered_map<void*, RankDataset> known;
};

namespace {

RankDataset LookAt(Instance& instance, void* object, hid_t dxpl) {
  h5::Library& hdf5 = instance.hdf5();
  RankDataset dataset;
  H5O_info2_t info{};
  const h5::OwnedId dcpl = AskDataset(instance, object, H5VL_DATASET_GET_DCPL, dxpl);
  if (!dcpl.valid() || !InfoOf(instance, object, H5I_DATASET, info)) return dataset;
  std::copy_n(reinterpret_cast<const std::byte*>(&info.token), sizeof dataset.number,
              reinterpret_cast<std::byte*>(&dataset.number));
  const H5D_layout_t layout = hdf5.Pget_layout(dcpl.get());
  if (layout == H5D_CONTIGUOUS) {
    dataset.plain = hdf5.Pget_external_count(dcpl.get()) == 0;
  } else if (layout == H5D_CHUNKED && hdf5.Pget_nfilters(dcpl.get()) == 0) {
    dataset.chunk.resize(H5S_MAX_RANK);
    const int rank = hdf5.Pget_chunk(dcpl.get(), H5S_MAX_RANK, dataset.chunk.data());
    dataset.plain = rank > 0;
    dataset.chunk.resize(static_cast<size_t>(std::max(rank, 0)));
    dataset.has_space =
        true;  // MPI's ranks make all chunks when they create, open or extend a dataset
  }
  return dataset;
}

// Space comes with the dataset, or by all ranks' first write; it does not go again.
bool HasSpace(Instance& instance, void* object, RankDataset& dataset, hid_t dxpl) {
  if (dataset.has_space) return true;
  H5D_space_status_t status = H5D_SPACE_STATUS_NOT_ALLOCATED;
  H5VL_dataset_get_args_t get{};
  get.op_type = H5VL_DATASET_GET_SPACE_STATUS;
  get.args.get_space_status.status = &status;
  const auto native = instance.hdf5().native().dataset_cls.get;
  dataset.has_space =
      native(object, &get, dxpl, nullptr) >= 0 && status == H5D_SPACE_STATUS_ALLOCATED;
  return dataset.has_space;
}

RankDataset& DatasetOf(Instance& instance, void* object, hid_t dxpl) {
  if (instance.rank_datasets == nullptr) instance.rank_datasets = new RankDatasets;
  auto& known = instance.rank_datasets->known;
  auto found = known.find(object);
  if (found == known.end()) found = known.emplace(object, LookAt(instance, object, dxpl)).first;
  return found->second;
}

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

// Contiguous pieces of about equal length: from the fastest dimension on, a piece goes on as long as the selection covers
// all of what is stored together.
uint64_t PiecesOf(h5::Library& hdf5, hid_t space, const Selection& selection,
                  const std::vector<hsize_t>& chunk) {
  if (selection.rank == 0) return 1;
  const H5S_sel_type kind = hdf5.Sget_select_type(space);
  if (kind == H5S_SEL_POINTS) return selection.points;
  hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
  const bool regular = kind == H5S_SEL_HYPERSLABS && hdf5.Sis_regular_hyperslab(space) > 0 &&
                       hdf5.Sget_regular_hyperslab(space, start, stride, count, block) >= 0;
  uint64_t run = 1;
  for (int d = selection.rank - 1; d >= 0; --d) {
    uint64_t length = selection.high[d] - selection.low[d] + 1;
    if (regular) length = count[d] == 1 || stride[d] == block[d] ? count[d] * block[d] : block[d];
    const uint64_t together = chunk.empty() ? selection.extent[d] : chunk[static_cast<size_t>(d)];
    run *= std::min(length, together);
    if (length < together) break;
  }
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
bool IsCompound(h5::Library& hdf5, hid_t type) { return hdf5.Tget_class(type) == H5T_COMPOUND; }

Part PartOf(Instance& instance, const Writing& writing, bool collective, hid_t dxpl) {
  h5::Library& hdf5 = instance.hdf5();
  Part part;
  RankDataset& dataset = DatasetOf(instance, writing.dataset, dxpl);
  h5::OwnedId own;
  hid_t space = writing.file_space;
  if (space == h5::kDefault) {
    own = AskDataset(instance, writing.dataset, H5VL_DATASET_GET_SPACE, dxpl);
    space = own.get();
  }
  const h5::OwnedId type = AskDataset(instance, writing.dataset, H5VL_DATASET_GET_TYPE, dxpl);
  Selection selection;
  if (!dataset.plain || !HasSpace(instance, writing.dataset, dataset, dxpl) || !type.valid()) {
    part.refusal = Fallback::kMpiDataset;
    return part;
  }
  if (space <= kLastSpecialSpace || !Select(hdf5, space, selection)) {
    part.refusal = Fallback::kMpiTransfer;
    return part;
  }
  if (hdf5.Tequal(type.get(), writing.memory_type) <= 0 &&
      (collective || IsCompound(hdf5, type.get()) || IsCompound(hdf5, writing.memory_type))) {
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

struct Parts {
  std::optional<Fallback> refusal;
  uint64_t bytes = 0;
  uint64_t pieces = 0;
  std::vector<Place> places;
};

Parts PartsOf(Instance& instance, const Writes& writes, bool collective, hid_t dxpl) {
  Parts parts;
  for (size_t i = 0; i < writes.count; ++i) {
    Part part = PartOf(instance, At(writes, i), collective, dxpl);
    if (!parts.refusal.has_value()) parts.refusal = part.refusal;
    parts.bytes += part.bytes;
    parts.pieces += part.pieces;
    parts.places.push_back(std::move(part.place));
  }
  return parts;
}

// Lists that change elements on their way, or that want HDF5's older ways, are HDF5's.
bool IsKnownTransfer(Instance& instance, hid_t dxpl) {
  if (dxpl == instance.default_dxpl) return true;
  h5::Library& hdf5 = instance.hdf5();
  void* transform = nullptr;
  H5D_selection_io_mode_t selection_io = H5D_SELECTION_IO_MODE_OFF;
  return hdf5.Pget(dxpl, "data_transform", &transform) >= 0 && transform == nullptr &&
         hdf5.Pget(dxpl, "selection_io_mode", &selection_io) >= 0 &&
         selection_io != H5D_SELECTION_IO_MODE_OFF;
}

// What all ranks' numbers are the greatest of.
enum Vote {
  kRefused,
  kSmall,
  kPending,
  kAlone,
  kHeldEnd,
  kHeldBegin,
  kNextEnd,
  kNextBegin,
  kVotes
};

constexpr uint64_t kTop = INT64_MAX;  // what MPI's maximum can compare (h5/mpi.h)
uint64_t UpTo(uint64_t most, uint64_t number) { return std::min(most, number); }

struct Decision {
  bool capture = false;
  bool pending = false;  // somebody holds bytes
  bool alone = false;    // somebody may capture without asking
  bool may_overlap = false;
};

class Collective {
 public:
  Collective(h5::ParallelFile& file, const Parts& parts) : file_(file), parts_(parts) {
    if (file.file()->drained()) file.places.Clear();
  }

  bool Agree(bool small, Decision& decision);
  /// Whether a rank writes where another one holds bytes; on the safe side.
  bool Overwrites();

 private:
  h5::ParallelFile& file_;
  const Parts& parts_;
};

bool Collective::Agree(bool small, Decision& decision) {
  ElementRange held;
  ElementRange next;
  for (const Place& place : parts_.places) {
    if (parts_.places.size() > 1) {  // one range for all datasets says nothing
      if (!file_.places.empty()) held = {0, UINT64_MAX};
      next = {0, UINT64_MAX};
    } else {
      held = file_.places.RangeOf(place);
      next = place.range;
    }
  }
  uint64_t votes[kVotes];
  votes[kRefused] = parts_.refusal.has_value() || !file_.capturing() ? 1 : 0;
  votes[kSmall] = small ? 1 : 0;
  votes[kPending] = file_.file()->drained() ? 0 : 1;
  votes[kAlone] = file_.wrote_alone ? 1 : 0;
  votes[kHeldEnd] = UpTo(kTop, held.end), votes[kHeldBegin] = kTop - UpTo(kTop, held.begin);
  votes[kNextEnd] = UpTo(kTop, next.end), votes[kNextBegin] = kTop - UpTo(kTop, next.begin);
  uint64_t all[kVotes];
  if (!file_.Max(votes, all, kVotes)) return false;
  decision.capture = all[kRefused] == 0 && all[kSmall] == 0;
  decision.pending = all[kPending] != 0;
  decision.alone = all[kAlone] != 0;
  const ElementRange all_held{kTop - all[kHeldBegin], all[kHeldEnd]};
  const ElementRange all_next{kTop - all[kNextBegin], all[kNextEnd]};
  decision.may_overlap = file_.ranks() > 1 && all_held.Overlaps(all_next);
  if (decision.capture) return true;
  if (votes[kRefused] != 0) {
    Count(parts_.refusal.value_or(Fallback::kMpiPeers));
  } else {
    Count(all[kRefused] == 0 ? Fallback::kMpiSmallPieces : Fallback::kMpiPeers);
  }
  return true;
}

bool Collective::Overwrites() {
  if (file_.ranks() > kMostRanksInBoxes || parts_.places.size() != 1) return true;
  const Place& place = parts_.places.front();
  std::vector<uint64_t> all;
  return !file_.Gather(EncodeBoxes(place.box, file_.places.BoxesOf(place)), all) ||
         AnyOverwrites(all);
}

template <typename T>
void Answer(h5::Library& hdf5, hid_t dxpl, const char* property, T value) {
  if (hdf5.Pexist(dxpl, property) > 0) hdf5.Pset(dxpl, property, &value);
}

// What native HDF5 would have said of this transfer: selection I/O, all in one collective call.
void AnswerAsCollective(Instance& instance, const Writes& writes, hid_t dxpl) {
  h5::Library& hdf5 = instance.hdf5();
  unsigned mode = H5D_MPIO_NO_COLLECTIVE;
  for (size_t i = 0; i < writes.count; ++i) {
    const bool chunked = !DatasetOf(instance, writes.datasets[i], dxpl).chunk.empty();
    mode |= chunked ? H5D_MPIO_CHUNK_COLLECTIVE : H5D_MPIO_CONTIGUOUS_COLLECTIVE;
  }
  constexpr uint32_t kNoCause = 0;
  constexpr uint32_t kSelectionIo = 4;  // H5D_SELECTION_IO
  Answer(hdf5, dxpl, "actual_io_mode", static_cast<H5D_mpio_actual_io_mode_t>(mode));
  Answer(hdf5, dxpl, "actual_chunk_opt_mode", H5D_MPIO_LINK_CHUNK);
  Answer(hdf5, dxpl, "local_no_collective_cause", kNoCause);
  Answer(hdf5, dxpl, "global_no_collective_cause", kNoCause);
  Answer(hdf5, dxpl, "no_selection_io_cause", kNoCause);
  Answer(hdf5, dxpl, "actual_selection_io_mode", kSelectionIo);
}

herr_t Native(Instance& instance, const Writes& writes, hid_t dxpl) {
  return instance.hdf5().native().dataset_cls.write(
      writes.count, writes.datasets, writes.memory_types, writes.memory_spaces, writes.file_spaces,
      dxpl, writes.buffers, nullptr);
}

herr_t Captured(Instance& instance, h5::ParallelFile& file, const Writes& writes,
                const Parts& parts, hid_t dxpl, CallScope& scope,
                CallScope::Permission permission) {
  scope.Allow(permission);
  file.BeginCount();
  for (const Place& place : parts.places) file.places.Add(place);
  const herr_t result = Native(instance, writes, dxpl);
  if (result >= 0 && file.counted() != parts.bytes) file.Stop(Fallback::kMpiTransfer);
  return result;
}

herr_t WriteCollectively(Instance& instance, const std::shared_ptr<h5::ParallelFile>& file,
                         const Writes& writes, hid_t dxpl, CallScope& scope) {
  Parts parts = PartsOf(instance, writes, true, dxpl);
  if (!parts.refusal.has_value() && !IsKnownTransfer(instance, dxpl))
    parts.refusal = Fallback::kMpiTransfer;
  const uint64_t wanted = file->file()->settings().collective_piece;
  const uint64_t smallest = wanted != UINT64_MAX ? wanted : file->file()->WorthARequest();
  const bool small = parts.pieces > kFewPieces && parts.bytes / parts.pieces < smallest;
  Collective collective(*file, parts);
  Decision decision;
  if (!collective.Agree(small, decision)) {
    h5::PushError(instance.hdf5(), "the ranks of this program could not agree: MPI failed");
    return -1;
  }
  if (!decision.capture) {
    std::optional<Together> together;
    if (decision.pending || decision.alone) together.emplace(file, h5::Moment::kWrite);
    return Native(instance, writes, dxpl);
  }
  if (decision.may_overlap && collective.Overwrites()) {
    const Together stored(file, h5::Moment::kOverwrite);
  }
  Count(Counter::kCollectivesDeferred);
  const herr_t result = Captured(instance, *file, writes, parts, instance.default_dxpl, scope,
                                 CallScope::kCaptureTogether);
  if (result >= 0) AnswerAsCollective(instance, writes, dxpl);
  return result;
}

// Whether every rank that reads what this one writes alone finds it: by itself, on the board, or at the next flush.
bool MayDeferAlone(const h5::ParallelFile& file, const CallScope& scope) {
  const Consistency consistency = file.file()->settings().consistency;
  if (scope.tracks() || consistency == Consistency::kMpi) return true;
  return consistency == Consistency::kAuto && (file.ranks() == 1 || file.file()->has_board());
}

herr_t WriteAlone(Instance& instance, const std::shared_ptr<h5::ParallelFile>& file,
                  const Writes& writes, hid_t dxpl, CallScope& scope) {
  if (!MayDeferAlone(*file, scope)) {
    Count(Fallback::kMpiAlone);
    return Native(instance, writes, dxpl);
  }
  const Parts parts = PartsOf(instance, writes, false, dxpl);
  if (parts.refusal.has_value()) Count(*parts.refusal);
  if (parts.refusal.has_value() || !file->capturing()) return Native(instance, writes, dxpl);
  if (parts.bytes != 0) file->wrote_alone = true;
  return Captured(instance, *file, writes, parts, dxpl, scope, CallScope::kCaptureAlone);
}

}  // namespace

herr_t WriteTogether(Instance& instance, const std::shared_ptr<h5::ParallelFile>& parallel,
                     const Writes& writes, const Transfer& transfer, hid_t dxpl, void** request) {
  const bool now = request == nullptr && transfer.synchronous;
  TrackedCall call(instance, now ? Effect::kDataNow : Effect::kData, request);
  herr_t result = IsCollective(instance, dxpl)
                      ? WriteCollectively(instance, parallel, writes, dxpl, call.scope())
                      : WriteAlone(instance, parallel, writes, dxpl, call.scope());
  if (request == nullptr && parallel->file()->settings().consistency == Consistency::kStrict) {
    if (const Status status = parallel->file()->Drain(Wait::kWrite); !status.ok()) {
      h5::PushError(instance.hdf5(), status);
      result = -1;
    }
  }
  call.Finish(result >= 0);
  return result;
}

void ForgetRankDataset(Instance& instance, void* dataset) {
  if (instance.rank_datasets != nullptr) instance.rank_datasets->known.erase(dataset);
}

void ForgetRankDatasets(Instance& instance) {
  if (instance.rank_datasets != nullptr) instance.rank_datasets->known.clear();
}

}  // namespace tidelane::vol
