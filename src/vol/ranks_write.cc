#include "vol/ranks_write.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "base/trace.h"
#include "engine/engine.h"
#include "extent/test_hooks.h"
#include "h5/error.h"
#include "model/history_key.h"
#include "model/joined_writes.h"
#include "vol/chunked_dataset.h"
#include "vol/find_file.h"
#include "vol/ranks.h"
#include "vol/ranks_dataset.h"
#include "vol/ranks_filtered.h"
#include "vol/ranks_part.h"
#include "vol/tracked_call.h"
#include "vol/transfer_outcome.h"

namespace tidelane::vol {

namespace {

constexpr uint64_t kFewPieces = 16;  // they cost nothing to speak of, however small they are
constexpr uint64_t kRowsOfABlock = 8;
constexpr uint64_t kSmallPiece = uint64_t{16} * 1024;  // larger ones the file judges by themselves
constexpr uint64_t kLargestRequest = uint64_t{1024} * 1024;
constexpr int kMostRanksInBoxes = 64;  // every rank looks at every other one's

// What all ranks' numbers are the greatest of.
enum Vote {
  kRefused,
  kNoChunks,    // filtered chunks cannot be taken over,
  kNoRoom,      // or not as long as others are held;
  kChunks,      // so many there are,
  kUnfinished,  // and so many of the writes before have not gone through their filters: kTop less
  kHolds,       // chunks of these datasets are held
  kSmall,
  kJoins,     // MPI-IO would make fewer requests of its pieces, and no pause hides that;
  kSpanRest,  // kTop less the elements from its first to its last one
  kPending,
  kAlone,
  kHeldEnd,
  kHeldBegin,
  kNextEnd,
  kNextBegin,
  kDatasets,      // a number made of those that this rank names,
  kDatasetsRest,  // and kTop less it: the same on all ranks where both come to kTop
  kVotes
};

constexpr uint64_t kTop = INT64_MAX;  // what MPI's maximum can compare (h5/mpi.h)
// Which datasets a rank names.
uint64_t NumberOf(const std::vector<Place>& places) {
  uint64_t number = places.size();
  for (const Place& place : places) number = (number ^ place.dataset) * 0x100000001b3;  // FNV-1a
  return number & kTop;
}

uint64_t UpTo(uint64_t most, uint64_t number) { return std::min(most, number); }

struct Decision {
  bool capture = false;
  bool take_chunks = false;  // or once there is room
  bool make_room = false;
  uint64_t chunks = 0;    // any rank's most
  uint64_t finished = 0;  // writes before
  bool holds = false;     // chunks of these datasets are held
  bool pending = false;   // somebody holds bytes
  bool alone = false;     // somebody may capture without asking
  bool only_small = false;
  bool joins = false;          // their pieces lie between one another's, and are better joined
  bool same_datasets = false;  // all ranks name the same
  bool may_overlap = false;
};

// The same of a write to filtered chunks.
struct FilteredPart {
  RankChunks::Offer offer;
  std::optional<Fallback>
      reason;  // why it is HDF5's, where there is more to say than that it is filtered
  uint64_t finished = 0;
};

// This rank's part of a write by all. What it takes memory to find out, and to exchange, is there before they agree.
struct Look {
  RankSelection parts;
  FilteredPart filtered;
  bool holds = true;
  bool small = false;
  bool joins = false;
  std::vector<uint64_t> boxes;      // of this rank,
  std::vector<uint64_t> all_boxes;  // and space for all ranks'
};

// Whether what ranks write must lie between one another's, if each has so many elements or more from its first to its last one.
bool Interleave(const ElementRange& all, uint64_t least, int ranks) {
  return all.begin < all.end && least > (all.end - all.begin) / static_cast<uint64_t>(ranks);
}

class Collective {
 public:
  Collective(h5::ParallelFile& file, Look& look)
      : file_(file), parts_(look.parts), filtered_(look.filtered), look_(look) {}

  bool Agree(Decision& decision);
  /// Whether a rank writes where another one holds bytes; on the safe side.
  bool Overwrites();

 private:
  h5::ParallelFile& file_;
  const RankSelection& parts_;
  const FilteredPart& filtered_;
  Look& look_;
};

bool Collective::Agree(Decision& decision) {
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
  votes[kNoChunks] = filtered_.offer.refusal.has_value() ? 1 : 0;
  votes[kNoRoom] = filtered_.offer.no_room ? 1 : 0;
  votes[kChunks] = filtered_.offer.chunks;
  votes[kUnfinished] = kTop - filtered_.finished;
  votes[kHolds] = look_.holds ? 1 : 0;
  votes[kSmall] = look_.small ? 1 : 0;
  votes[kJoins] = look_.joins ? 1 : 0;
  votes[kSpanRest] = parts_.bytes == 0 ? 0 : kTop - UpTo(kTop, next.end - next.begin);
  votes[kPending] = file_.file()->drainer().drained() && !file_.outsiders_hold ? 0 : 1;
  votes[kAlone] = file_.wrote_alone ? 1 : 0;
  votes[kHeldEnd] = UpTo(kTop, held.end), votes[kHeldBegin] = kTop - UpTo(kTop, held.begin);
  votes[kNextEnd] = UpTo(kTop, next.end), votes[kNextBegin] = kTop - UpTo(kTop, next.begin);
  votes[kDatasets] = NumberOf(parts_.places);
  votes[kDatasetsRest] = kTop - votes[kDatasets];
  uint64_t all[kVotes];
  if (!file_.Max(votes, all, kVotes)) return false;
  const ElementRange all_held{kTop - all[kHeldBegin], all[kHeldEnd]};
  const ElementRange all_next{kTop - all[kNextBegin], all[kNextEnd]};
  decision.same_datasets =
      all[kDatasets] == kTop - all[kDatasetsRest] || MutationEnabled("ranks_different");
  decision.joins = all[kJoins] != 0 && all[kRefused] == 0 && all[kSmall] == 0 &&
                   decision.same_datasets &&
                   Interleave(all_next, kTop - all[kSpanRest], file_.ranks());
  decision.capture = all[kRefused] == 0 && all[kSmall] == 0 && !decision.joins;
  // Of nothing HDF5 makes an index all the same, or fails.
  decision.take_chunks =
      !decision.capture && all[kNoChunks] == 0 && all[kChunks] != 0 && decision.same_datasets;
  decision.make_room = all[kNoRoom] != 0;
  decision.chunks = all[kChunks];
  decision.finished = kTop - all[kUnfinished];
  decision.holds = all[kHolds] != 0;
  decision.pending = all[kPending] != 0;
  decision.alone = all[kAlone] != 0;
  decision.only_small = all[kRefused] == 0 && all[kSmall] != 0;
  // Nobody says what it holds of a dataset that it does not name.
  decision.may_overlap = file_.ranks() > 1 &&
                         (decision.same_datasets ? all_held.Overlaps(all_next) : decision.pending);
  if (decision.capture || decision.take_chunks) return true;
  if (votes[kRefused] != 0) {
    Count(filtered_.reason.value_or(parts_.refusal.value_or(Fallback::kMpiPeers)));
  } else {
    Count(all[kRefused] == 0 ? Fallback::kMpiSmallPieces : Fallback::kMpiPeers);
  }
  return true;
}

bool Collective::Overwrites() {
  return look_.boxes.empty() || !file_.Gather(look_.boxes, look_.all_boxes) ||
         AnyOverwrites(look_.all_boxes);
}

template <typename T>
void Answer(h5::Library& hdf5, hid_t dxpl, const char* property, T value) {
  if (hdf5.Pexist(dxpl, property) > 0) hdf5.Pset(dxpl, property, &value);
}

// What native HDF5 would have said of this transfer: selection I/O, all in one collective call.
void AnswerAsCollective(LibraryState& library, const Writes& writes, hid_t dxpl) {
  h5::Library& hdf5 = library.hdf5();
  unsigned mode = H5D_MPIO_NO_COLLECTIVE;
  for (size_t i = 0; i < writes.count; ++i) {
    const bool chunked = !RankDatasetOf(library, writes.datasets[i]).chunk.empty();
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

// What it says of a collective write of filtered chunks to a rank that writes some of them, or none.
void AnswerAsFiltered(LibraryState& library, hid_t dxpl, bool some) {
  h5::Library& hdf5 = library.hdf5();
  constexpr uint32_t kNothing = 0;
  const uint32_t vector_io = some ? 2 : 0;  // H5D_VECTOR_IO
  H5FD_mpio_chunk_opt_t wanted = H5FD_MPIO_CHUNK_DEFAULT;
  static_cast<void>(hdf5.Pget(dxpl, "mpio_chunk_opt_hard", &wanted));
  Answer(hdf5, dxpl, "actual_io_mode", H5D_MPIO_CHUNK_COLLECTIVE);
  Answer(hdf5, dxpl, "actual_chunk_opt_mode",
         wanted == H5FD_MPIO_CHUNK_MULTI_IO ? H5D_MPIO_MULTI_CHUNK : H5D_MPIO_LINK_CHUNK);
  Answer(hdf5, dxpl, "local_no_collective_cause", kNothing);
  Answer(hdf5, dxpl, "global_no_collective_cause", kNothing);
  Answer(hdf5, dxpl, "no_selection_io_cause", kFiltered);
  Answer(hdf5, dxpl, "actual_selection_io_mode", vector_io);
}

herr_t Native(LibraryState& library, const Writes& writes, hid_t dxpl) {
  return library.hdf5().native().dataset_cls.write(
      writes.count, writes.datasets, writes.memory_types, writes.memory_spaces, writes.file_spaces,
      dxpl, writes.buffers, nullptr);
}

herr_t Captured(LibraryState& library, h5::ParallelFile& file, const Writes& writes,
                const RankSelection& parts, hid_t dxpl, CallScope& scope, CallScope::Flag flag) {
  scope.Set(flag);
  file.BeginCount();
  for (const Place& place : parts.places) file.places.Add(place);
  const herr_t result = Native(library, writes, dxpl);
  if (result >= 0 && file.counted() != parts.bytes) file.Stop(Fallback::kMpiTransfer);
  return result;
}

// How many chunks of all ranks make native HDF5 write them in one call is not exchanged.
bool AsksForThreshold(LibraryState& library, hid_t dxpl) {
  unsigned least = 0;
  return library.hdf5().Pexist(dxpl, "mpio_chunk_opt_num") > 0 &&
         (library.hdf5().Pget(dxpl, "mpio_chunk_opt_num", &least) < 0 || least != 0);
}

// Whose bytes are stored when they are asked for cannot be promised of chunks that all ranks store together, later.
FilteredPart FilteredPartOf(LibraryState& library, h5::ParallelFile& file, const Writes& writes,
                            hid_t dxpl, bool later) {
  FilteredPart part;
  if (Engine::Get().config().parallel_writes != ParallelWrites::kOn) return part;
  if (library.rank_chunks == nullptr) library.rank_chunks = new RankChunks(library);
  part.finished = library.rank_chunks->Finished(file);
  if (!later || file.file()->settings().consistency == Consistency::kStrict) return part;
  part.offer = library.rank_chunks->Look(file, writes, dxpl);
  if (!part.offer.refusal.has_value() &&
      (!IsKnownTransfer(library, dxpl) || AsksForThreshold(library, dxpl)))
    part.offer.refusal = Fallback::kMpiTransfer;
  part.reason = part.offer.refusal.value_or(Fallback::kMpiPeers);
  return part;
}

// Whether storage takes longer for this rank's pieces than for the requests that MPI-IO makes of all ranks', and no pause of the program hides it.
bool BetterJoined(const h5::ParallelFile& file, const RankSelection& parts) {
  const WriteCosts& costs = file.file()->costs();
  if (parts.pieces < 2 || parts.places.size() != 1 || file.file()->settings().mode != Mode::kAuto ||
      costs.IsQuick())
    return false;
  const auto piece = static_cast<double>(parts.bytes) / static_cast<double>(parts.pieces);
  const double joined = std::min(static_cast<double>(kLargestRequest),
                                 static_cast<double>(parts.bytes) * file.ranks());
  const double longer = model::JoinedWrites::TimesLonger(static_cast<double>(costs.WorthARequest()),
                                                         piece, std::max(piece, joined));
  return longer > model::JoinedWrites::kMuchLonger &&
         !model::JoinedWrites::OfProgram().Hidden(longer) && !MutationEnabled("ranks_joined");
}

// As all ranks find it, whatever each of them writes.
bool AreFiltered(LibraryState& library, const Writes& writes) {
  return std::all_of(writes.datasets, writes.datasets + writes.count, [&](void* dataset) {
    return RankDatasetOf(library, dataset).filtered != nullptr;
  });
}

void LookAt(LibraryState& library, h5::ParallelFile& file, const Writes& writes, hid_t dxpl,
            bool later, Look& look) {
  RankSelection& parts = look.parts;
  parts = PartsOf(library, writes, true, dxpl);
  if (!parts.refusal.has_value() && !IsKnownTransfer(library, dxpl))
    parts.refusal = Fallback::kMpiTransfer;
  if (AreFiltered(library, writes)) {
    look.filtered = FilteredPartOf(library, file, writes, dxpl, later);
    if (parts.refusal != Fallback::kMpiDataset) look.filtered.offer.refusal = parts.refusal;
  }
  look.holds = HoldChunksOf(library, file, writes.count, writes.datasets);
  const uint64_t wanted = file.file()->settings().collective_piece;
  const uint64_t smallest = wanted != UINT64_MAX ? wanted : file.file()->costs().WorthARequest();
  look.small = parts.pieces > kFewPieces && parts.bytes / parts.pieces < smallest;
  look.joins = wanted == UINT64_MAX && BetterJoined(file, parts);
  if (file.file()->drainer().drained()) file.places.Clear();
  if (file.ranks() > kMostRanksInBoxes || parts.places.size() != 1) return;
  const Place& place = parts.places.front();
  look.boxes = EncodeBoxes(place.box, file.places.BoxesOf(place));
  look.all_boxes.reserve(look.boxes.size() * static_cast<size_t>(file.ranks()));
}

// What this rank holds, by writes that it made alone, is stored before HDF5's own reduction, and nobody writes before that.
// If it cannot be, the others, who do not ask, are not left waiting: this rank writes with them, and then fails. What it could
// not store is tried again by its next flush, and then lies over what others wrote there meanwhile.
herr_t LeaveAgain(LibraryState& library, h5::ParallelFile& file, const Writes& writes, hid_t dxpl) {
  Count(Fallback::kMpiSmallPieces);
  Status status;
  if (!MutationEnabled("ranks_backoff")) status = file.file()->drainer().Drain(Wait::kRanks);
  file.file()->AwaitOthers(0, UINT64_MAX, DirtyRangeTable::Whose::kOutsiders);
  const herr_t result = Native(library, writes, dxpl);
  if (status.ok()) return result;
  h5::PushError(library.hdf5(), status);
  return -1;
}

// What a collective write took, for those that follow.
class Measured {
 public:
  Measured() { joined_.Begin(NowNs()); }
  ~Measured() { joined_.End(NowNs(), bytes, joined_ns); }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

  uint64_t bytes = 0;      // of this rank, captured or joined
  uint64_t joined_ns = 0;  // 0: captured

 private:
  model::JoinedWrites& joined_ = model::JoinedWrites::OfProgram();
};

// HDF5's own write, after what this rank and others hold.
herr_t LeaveToHdf5(LibraryState& library, const std::shared_ptr<h5::ParallelFile>& file,
                   const Writes& writes, hid_t dxpl, const Decision& decision, uint64_t& took_ns) {
  if (decision.holds && !CommitChunks(library, *file)) return -1;
  std::optional<CollectiveGuard> together;
  if (decision.holds || decision.pending || decision.alone) {
    together.emplace(library, file, h5::SyncPoint::kWrite);
    if (!together->MayGoOn(library)) return -1;
  }
  const uint64_t begin_ns = NowNs();
  const herr_t result = Native(library, writes, dxpl);
  took_ns = NowNs() - begin_ns;
  return result;
}

herr_t WriteCollectively(LibraryState& library, const std::shared_ptr<h5::ParallelFile>& file,
                         const Writes& writes, hid_t dxpl, bool later, CallScope& scope) {
  Measured measured;
  // Filtered chunks that all ranks hold, perhaps of this dataset, are not to be overtaken.
  const DirtyRangeTable* const ranges = file->file()->dirty_ranges();
  file->outsiders_hold =
      ranges != nullptr && ranges->OthersHold(0, UINT64_MAX, DirtyRangeTable::Whose::kOutsiders);
  const bool holds = library.rank_chunks != nullptr && library.rank_chunks->Hold(*file, 0);
  if (!holds && file->small_writes.LeftAgain()) return LeaveAgain(library, *file, writes, dxpl);
  Look look;
  try {
    LookAt(library, *file, writes, dxpl, later, look);
  } catch (const std::bad_alloc&) {  // the other ranks wait for this one all the same
    look = Look();
    look.parts.refusal = Fallback::kMpiTransfer;
  }
  Collective collective(*file, look);
  Decision decision;
  if (!collective.Agree(decision)) {
    h5::PushError(library.hdf5(), "the ranks of this program could not agree: MPI failed");
    return -1;
  }
  file->small_writes.Note(decision.only_small && !decision.pending && !decision.alone &&
                          !decision.holds);
  if (decision.take_chunks) library.rank_chunks->MeetPeers(*file);
  if (decision.take_chunks) {
    RankChunks& chunks = *library.rank_chunks;
    const uint64_t done = decision.make_room ? UINT64_MAX : decision.finished;
    if (const Status status = chunks.Commit(*file, done); !status.ok()) {
      h5::PushError(library.hdf5(), status);
      return -1;
    }
    if (decision.make_room) return WriteCollectively(library, file, writes, dxpl, later, scope);
    const bool some = look.filtered.offer.chunks != 0;
    chunks.Take(file, writes, std::move(look.filtered.offer), decision.chunks);
    Count(Counter::kCollectivesDeferred);
    AnswerAsFiltered(library, dxpl, some);
    return 0;
  }
  if (decision.capture || decision.joins) measured.bytes = look.parts.bytes;
  if (!decision.capture) {
    uint64_t took_ns = 0;
    const herr_t result = LeaveToHdf5(library, file, writes, dxpl, decision, took_ns);
    if (decision.joins) measured.joined_ns = took_ns;
    return result;
  }
  if (decision.may_overlap && (!decision.same_datasets || collective.Overwrites())) {
    const CollectiveGuard stored(library, file, h5::SyncPoint::kOverwrite);
    if (!stored.MayGoOn(library)) return -1;
  }
  Count(Counter::kCollectivesDeferred);
  const herr_t result = Captured(library, *file, writes, look.parts, library.default_dxpl, scope,
                                 CallScope::kCaptureTogether);
  if (result >= 0) AnswerAsCollective(library, writes, dxpl);
  return result;
}

// Whether every rank that reads what this one writes alone finds it: by itself, on the table, or at the next flush.
bool MayDeferAlone(const h5::ParallelFile& file, const CallScope& scope) {
  const Consistency consistency = file.file()->settings().consistency;
  if (scope.tracks() || consistency == Consistency::kMpi) return true;
  // A job of one rank may run where there is no memory that processes could share.
  const bool single =
      file.ranks() == 1 && (model::RanksOfJob() == 1 || MutationEnabled("ranks_board"));
  const DirtyRangeTable* const ranges = file.file()->dirty_ranges();
  const bool shared = ranges != nullptr && ranges->group().complete;
  return consistency == Consistency::kAuto && (shared || single);
}

// Pieces like those of a block of rows: between them other ranks write.
bool TakesTurns(const h5::ParallelFile& file, const RankSelection& parts) {
  return file.ranks() > 1 && parts.pieces >= kRowsOfABlock &&
         parts.bytes / parts.pieces < kSmallPiece;
}

herr_t WriteAlone(LibraryState& library, const std::shared_ptr<h5::ParallelFile>& file,
                  const Writes& writes, hid_t dxpl, CallScope& scope) {
  // A rank may write to filtered chunks alone where there is no other one.
  if (file->ranks() == 1 && !CommitChunksOf(library, *file, writes.count, writes.datasets))
    return -1;
  if (!MutationEnabled("ranks_fields"))
    scope.Set(CallScope::kReadAlone);  // what HDF5 keeps of elements
  if (!MayDeferAlone(*file, scope)) {
    Count(Fallback::kMpiAlone);
    return Native(library, writes, dxpl);
  }
  const RankSelection parts = PartsOf(library, writes, false, dxpl);
  if (parts.refusal.has_value()) Count(*parts.refusal);
  if (parts.refusal.has_value() || !file->capturing()) return Native(library, writes, dxpl);
  File& engine_file = *file->file();
  const uint64_t begin_ns = NowNs();
  if (TakesTurns(*file, parts) && !scope.tracks() &&
      engine_file.writes().BeginScattered(begin_ns, parts.bytes)) {
    const herr_t result = Native(library, writes, dxpl);
    engine_file.writes().EndScattered(begin_ns, parts.bytes, parts.pieces);
    return result;
  }
  if (parts.bytes != 0) file->wrote_alone = true;
  return Captured(library, *file, writes, parts, dxpl, scope, CallScope::kCaptureAlone);
}

}  // namespace

herr_t WriteTogether(LibraryState& library, const std::shared_ptr<h5::ParallelFile>& parallel,
                     const Writes& writes, const Transfer& transfer, hid_t dxpl, void** request) {
  const bool now = request == nullptr && transfer.synchronous;
  TrackedCall call(library, now ? Effect::kDataNow : Effect::kData, request);
  herr_t result = IsCollective(library, dxpl)
                      ? WriteCollectively(library, parallel, writes, dxpl,
                                          request == nullptr && !now, call.scope())
                      : WriteAlone(library, parallel, writes, dxpl, call.scope());
  if (request == nullptr && parallel->file()->settings().consistency == Consistency::kStrict) {
    if (const Status status = parallel->file()->drainer().Drain(Wait::kWrite); !status.ok()) {
      h5::PushError(library.hdf5(), status);
      result = -1;
    }
  }
  call.Finish(result >= 0);
  return result;
}

}  // namespace tidelane::vol
