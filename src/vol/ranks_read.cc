#include "vol/ranks_read.h"

#include <cstdint>

#include "engine/engine.h"
#include "extent/test_hooks.h"
#include "h5/error.h"
#include "h5/parallel_driver.h"
#include "vol/chunked_dataset.h"
#include "vol/dataset_catalogue.h"
#include "vol/ranks_part.h"
#include "vol/read_dataset.h"
#include "vol/selected_box.h"
#include "vol/transfer_outcome.h"

namespace tidelane::vol {

namespace {

constexpr uint64_t kFewPieces = 16;  // they cost nothing to speak of, however small they are
// Of what its pieces span a rank may read half as much again as it needs; all other ranks read that, too.
constexpr uint64_t kNeeded = 2, kReadFor = 3;

// Four bytes each, in every version.
constexpr const char* kTransferMode = "io_xfer_mode";
constexpr const char* kOfMpi[] = {
    kTransferMode,        "mpio_collective_opt",       "mpio_chunk_opt_hard",
    "mpio_chunk_opt_num", "mpio_chunk_opt_ratio",      "actual_chunk_opt_mode",
    "actual_io_mode",     "local_no_collective_cause", "global_no_collective_cause"};

constexpr uint32_t kSetIndependent = 0x1;           // H5D_MPIO_SET_INDEPENDENT
constexpr uint32_t kConversion = 0x2;               // H5D_MPIO_DATATYPE_CONVERSION
constexpr uint32_t kTransform = 0x4;                // H5D_MPIO_DATA_TRANSFORMS
constexpr uint32_t kNoSelection = 0x100;            // H5D_MPIO_NO_SELECTION_IO
constexpr uint32_t kNotContiguousOrChunked = 0x20;  // H5D_MPIO_NOT_CONTIGUOUS_OR_CHUNKED_DATASET
constexpr uint32_t kNoSelectionOfLayout = 0x2;      // H5D_SEL_IO_NOT_CONTIGUOUS_OR_CHUNKED_DATASET
constexpr uint32_t kSelection = 0x4;                // H5D_SELECTION_IO

bool HasFourBytes(h5::Library& hdf5, hid_t list, const char* name) {
  size_t size = 0;
  return hdf5.Pexist(list, name) > 0 && hdf5.Pget_size(list, name, &size) >= 0 &&
         size == sizeof(uint32_t);
}

// In pieces that are too small for this rank to read alone what lies between them, or to read each by itself.
bool InSmallPieces(LibraryState& library, const h5::ParallelReading& file, const Reads& reads,
                   hid_t dxpl) {
  Scatter all;
  for (size_t i = 0; i < reads.count; ++i) {
    const Scatter one = ScatterOf(library, reads.datasets[i], reads.file_spaces[i], dxpl);
    all.bytes += one.bytes, all.pieces += one.pieces, all.span += one.span;
  }
  const uint64_t wanted = file.file()->settings().collective_piece;
  const uint64_t smallest = wanted != UINT64_MAX ? wanted : file.file()->costs().WorthARequest();
  return all.pieces > kFewPieces && all.bytes / all.pieces < smallest &&
         all.span / kReadFor > all.bytes / kNeeded;
}

void Answer(h5::Library& hdf5, hid_t dxpl, const char* property, uint32_t value) {
  if (HasFourBytes(hdf5, dxpl, property)) hdf5.Pset(dxpl, property, &value);
}

// What is told of a transfer of all datasets.
struct Told {
  uint32_t io_mode = 0;
  uint32_t plain_io_mode = 0;  // of those without filters: HDF5 transfers them after the others
  uint32_t last_io_mode = 0;   // of the last one
  bool chunks = false;         // some dataset has them
  bool filtered = false;       // this rank reads elements of a filtered dataset
  uint32_t chunk_mode = 0;
  uint32_t no_collective = 0;
  TransferOutcome selection;
};

void Tell(LibraryState& library, hid_t dxpl, const Told& told) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  Answer(hdf5, dxpl, "actual_io_mode", told.io_mode);
  Answer(hdf5, dxpl, "actual_chunk_opt_mode", told.chunk_mode);
  Answer(hdf5, dxpl, "local_no_collective_cause", told.no_collective);
  Answer(hdf5, dxpl, "global_no_collective_cause", told.no_collective);
  SetTransferOutcome(library, dxpl, told.selection);
}

// Of what keeps HDF5 from selection I/O it notes the first dataset's, but another layout always.
void Add(const DatasetFacts& facts, bool selects, Told& told) {
  const bool chunked = facts.layout == H5D_CHUNKED;
  const bool first = told.selection.cause == 0;
  if ((facts.layout != H5D_CONTIGUOUS && !chunked) || facts.external) {
    told.no_collective |= kNotContiguousOrChunked;
    told.selection.cause |= kNoSelectionOfLayout;
  } else if (!chunked) {
    told.last_io_mode = H5D_MPIO_CONTIGUOUS_COLLECTIVE;
    told.plain_io_mode |= told.last_io_mode;
  } else {
    told.last_io_mode = H5D_MPIO_CHUNK_COLLECTIVE;
    told.chunks = true;
    if (!facts.filters.has_value() || !facts.filters->empty()) {
      told.filtered = told.filtered || selects;
      if (first) told.selection.cause = kFiltered;
    } else {
      told.plain_io_mode |= told.last_io_mode;
      if (first && facts.grid.ChunkBytes() <= facts.cache_bytes.value_or(0))
        told.selection.cause = kCached;
    }
  }
  told.io_mode |= told.last_io_mode;
}

bool SelectsSome(LibraryState& library, hid_t space) {
  return !IsDataspace(space) || library.hdf5().Sget_select_npoints(space) != 0;
}

// What HDF5 does to elements on their way, as reasons for not doing it collectively.
uint32_t WhyConverted(LibraryState& library, const Reads& reads, hid_t dxpl) {
  uint32_t why = 0;
  for (size_t i = 0; i < reads.count; ++i) {
    if (!IsUnconverted(library, reads.datasets[i], reads.memory_types[i], library.default_dxpl))
      why |= kConversion | kNoSelection;
  }
  void* transform = nullptr;
  if (library.hdf5().Pget(dxpl, "data_transform", &transform) >= 0 && transform != nullptr)
    why |= kTransform | kNoSelection;
  return why;
}

bool WantsEachChunk(h5::Library& hdf5, hid_t dxpl) {
  constexpr const char* kWish = "mpio_chunk_opt_hard";
  uint32_t wanted = 0;
  return HasFourBytes(hdf5, dxpl, kWish) && hdf5.Pget(dxpl, kWish, &wanted) >= 0 &&
         wanted == H5FD_MPIO_CHUNK_MULTI_IO;
}

Told OutcomeOf(LibraryState& library, const Reads& reads) {
  Told told;
  for (size_t i = 0; i < reads.count; ++i) {
    const auto* const known = library.datasets->Find<ReadDataset>(reads.datasets[i]);
    if (known != nullptr && known->map != nullptr && !known->stored) continue;
    Add(FactsOf(library, reads.datasets[i], library.default_dxpl),
        SelectsSome(library, reads.file_spaces[i]), told);
  }
  return told;
}

// A collective transfer that HDF5 makes itself, without selection I/O, or all at once.
void TellOfPieces(LibraryState& library, const Reads& reads, hid_t dxpl, Told& told) {
  told.chunk_mode = H5D_MPIO_LINK_CHUNK;
  told.selection.mode = kSelection;
  if (told.selection.cause == 0) return;
  const bool each = WantsEachChunk(library.hdf5(), dxpl);
  if (each) {
    told.chunk_mode = H5D_MPIO_MULTI_CHUNK;
    told.io_mode = told.last_io_mode;
  } else if (told.plain_io_mode != 0) {
    told.io_mode = told.plain_io_mode;
  }
  if (!told.chunks && (each || reads.count == 1)) told.chunk_mode = H5D_MPIO_NO_CHUNK_OPTIMIZATION;
  told.selection.mode = (told.plain_io_mode != 0 ? kScalar : 0) | (told.filtered ? kVector : 0);
}

}  // namespace

std::shared_ptr<h5::ParallelReading> ReadingOf(LibraryState& library, const Reads& reads) {
  if (!library.parallel_files || reads.count == 0 ||
      !h5::ParallelDriver().has_readings(library.slot)) {
    return nullptr;
  }
  const h5::KeepErrorStack keep(library.hdf5());
  unsigned long serial = 0;
  if (!SerialOfDataset(library, reads.datasets[0], serial)) return nullptr;
  return h5::ParallelDriver().reading_with_serial(library.slot, serial);
}

ReadWay WayOf(LibraryState& library, h5::ParallelReading& file, const Reads& reads, hid_t dxpl,
              bool collective) {
  if (!collective) return ReadWay::kAlone;
  const bool agrees = file.BeginCollective() || MutationEnabled("reads_together");
  if (agrees && !MutationEnabled("reads_pieces") &&
      !file.Agree(InSmallPieces(library, file, reads, dxpl))) {
    h5::PushError(library.hdf5(), "the ranks of this program could not agree: MPI failed");
    return ReadWay::kFailed;
  }
  if (file.by_mpi()) {
    Count(Fallback::kMpiReadPieces);
    return ReadWay::kByMpi;
  }
  Count(Counter::kCollectiveReadsAlone);
  return ReadWay::kAlone;
}

bool ListsFor(LibraryState& library, hid_t dxpl, bool collective, Lists& lists) {
  lists = {.native = dxpl, .ours = dxpl};
  if (dxpl == library.default_dxpl) return true;
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  if (library.independent_dxpl >= 0) hdf5.Pclose(library.independent_dxpl);
  const hid_t copy = library.independent_dxpl = hdf5.Pcopy(dxpl);
  if (copy < 0) return false;
  for (const char* const name : kOfMpi) {
    uint32_t usual = 0;
    if (HasFourBytes(hdf5, copy, name) && hdf5.Pget(library.default_dxpl, name, &usual) >= 0)
      hdf5.Pset(copy, name, &usual);
  }
  lists.ours = AsksForDefaults(library, copy) ? library.default_dxpl : copy;
  if (collective) lists.native = copy;
  return true;
}

void TellCollective(LibraryState& library, const Reads& reads, hid_t dxpl, size_t native) {
  if (MutationEnabled("reads_told")) return;
  h5::Library::Noted noted;
  const bool known = native != 0 && library.hdf5().GetNoted(noted);
  Told told;
  // Of what has no space HDF5 says only that nothing was transferred.
  if (!known || noted.mode != 0 || noted.cause != 0) told = OutcomeOf(library, reads);
  // What HDF5 itself noted of all of them is the answer: it finds that before it looks whether a transfer is collective.
  if (known && (native == reads.count || told.selection.cause == 0))
    told.selection.cause = noted.cause & ~kNoCallback;
  const uint32_t cause = told.selection.cause;
  // Without selection I/O it converts nothing collectively.
  if (told.io_mode != 0 && cause != 0) told.no_collective |= WhyConverted(library, reads, dxpl);
  if (told.no_collective != 0) {
    told.io_mode = 0;
    told.selection.mode = known ? noted.mode : 0;
  } else if (told.io_mode != 0) {
    TellOfPieces(library, reads, dxpl, told);
  }
  Tell(library, dxpl, told);
}

void TellIndependent(LibraryState& library, const Reads& reads, hid_t dxpl) {
  Told told = OutcomeOf(library, reads);
  told.io_mode = 0;
  told.no_collective |= kSetIndependent;
  told.selection.mode = kScalar;
  Tell(library, dxpl, told);
}

}  // namespace tidelane::vol
