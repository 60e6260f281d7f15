#include "vol/selection_io_choice.h"

#include <algorithm>
#include <memory>

#include "base/trace.h"
#include "engine/engine.h"
#include "extent/test_hooks.h"
#include "h5/error.h"
#include "vol/call_inside.h"
#include "vol/selected_box.h"

namespace tidelane::vol {

namespace {

RunPattern& PatternOf(LibraryState& library, void* dataset) {
  return DatasetCatalogue::Of(library).At(dataset).Get<RunPattern>();
}

void LookAt(LibraryState& library, const DatasetFacts& facts, RunPattern& pattern) {
  pattern.facts = &facts;
  pattern.open = facts.open;
  pattern.file = facts.file;
  pattern.contiguous = facts.layout == H5D_CONTIGUOUS;
  const std::shared_ptr<File> file = facts.file.lock();
  if (file == nullptr) return;
  const FileSettings settings = file->settings();
  pattern.natively = settings.mode == Mode::kSync;
  pattern.only_read = !file->writable() && file->locked() && !file->reads().slow();
  pattern.stores_soon = settings.mode == Mode::kAuto && !settings.implicit_sync &&
                        !settings.paused && settings.delay_us == 0;
  pattern.storage.Look(library, facts, *file);
}

void Look(LibraryState& library, void* dataset, RunPattern& pattern, hid_t dxpl) {
  if (pattern.facts != nullptr || !h5::Driver().has_files(library.slot)) return;
  LookAt(library, FactsOf(library, dataset, dxpl), pattern);
}

bool OnQuickStorage(const RunPattern& pattern) {
  if (!pattern.contiguous) return false;
  const std::shared_ptr<File> file = pattern.file.lock();
  return file != nullptr && file->costs().IsQuick();
}

// Nothing is kept of a file that others may write.
bool Unlocked(const RunPattern& pattern) {
  const std::shared_ptr<File> file = pattern.file.lock();
  return file != nullptr && !file->locked();
}

uint64_t SpanOf(h5::Library& hdf5, hid_t file_space, int rank, const hsize_t* extent) {
  hsize_t low[H5S_MAX_RANK];
  hsize_t high[H5S_MAX_RANK];
  if (hdf5.Sget_select_bounds(file_space, low, high) < 0) return 0;
  uint64_t span = 0;
  for (int d = 0; d < rank; ++d) span = span * extent[d] + (high[d] - low[d]);
  return span + 1;
}

// What of a write decides, in bytes.
struct Shape {
  uint64_t runs = 0;
  bool many = false;   // of them
  bool dense = false;  // whatever storage there is
  bool follows =
      false;  // a small write that begins where the one before ended, or that takes its place
  uint64_t pitch = 0;
};

Shape ShapeOf(const Spread& spread, uint64_t element, RunPattern& pattern) {
  Shape shape{.runs = spread.runs, .many = spread.runs >= kSieveFromRuns};
  if (shape.many && spread.span != 0) {
    shape.dense = spread.span * element / spread.runs <= kSieveSpacing;
    shape.pitch = (spread.pitch != 0 ? spread.pitch : spread.span / spread.runs) * element;
  } else if (spread.runs == 1) {
    const uint64_t end = spread.first + spread.span, bytes = spread.span * element;
    shape.follows = (spread.first == pattern.next && bytes < kSieveRun) ||
                    (end == pattern.next && bytes <= kSieveWindow);
    pattern.next = end;
  }
  return shape;
}

bool MayGather(const Shape& shape, Leaves leaves) {
  return shape.many ? shape.dense || (shape.pitch != 0 && shape.pitch <= kSieveSpacingUnlocked)
                    : shape.follows && leaves == Leaves::kNothing;
}

// Small writes that follow or replace each other: natively the sieve makes one request of many such, at the price of a copy each. Taking
// them in ourselves is no cheaper, and what we then store is no less.
bool Gathers(const Shape& shape, const RunPattern& pattern) {
  // There is no sieve for what is in memory, or another driver's.
  if (!pattern.contiguous || pattern.open == nullptr) return false;
  if (!shape.many) return pattern.stores_soon && OnQuickStorage(pattern);
  return shape.dense || (shape.pitch <= kSieveSpacingQuick && OnQuickStorage(pattern)) ||
         Unlocked(pattern);
}

// Whether small reads of a dataset follow one another. What is larger than a run for the sieve it would only copy once more.
bool Follows(LibraryState& library, hid_t memory_type, hid_t file_space, RunPattern& pattern) {
  FollowingReads& reads = pattern.reads;
  if (reads.Looks()) {
    const Spread spread = IsDataspace(file_space) ? SpreadOf(library.hdf5(), file_space) : Spread();
    const uint64_t element = library.hdf5().Tget_size(memory_type), size = spread.span * element;
    reads.Look(spread.first * element, spread.runs == 1 && size < kSieveRun ? size : 0,
               kSieveWindow);
  }
  return reads.follow();
}

// A file that is only read, and that nobody was seen to change.
bool IsOnlyRead(const RunPattern& pattern) {
  if (!pattern.only_read) return false;
  const std::shared_ptr<File> file = pattern.file.lock();
  return file != nullptr && file->locked() && !file->writes_through() && file->reads().unchanged();
}

// Where the selection begins, in elements, and of a single run how long it is.
void PlaceFew(int rank, const hsize_t* extent, const hsize_t* start, const hsize_t* count,
              const hsize_t* block, Spread& spread) {
  uint64_t length = 1;
  for (int d = 0; d < rank; ++d) {
    spread.first = spread.first * extent[d] + start[d];
    length *= count[d] * block[d];
  }
  if (spread.runs == 1) spread.span = length;
}

}  // namespace

std::vector<void*> BufferedDatasets(LibraryState& library) {
  std::vector<void*> datasets;
  DatasetCatalogue::Of(library).ForEach<RunPattern>([&](void* dataset, const RunPattern& pattern) {
    if (pattern.buffered) datasets.push_back(dataset);
  });
  return datasets;
}

void NoteHandedOver(LibraryState& library, const std::vector<void*>& left) {
  DatasetCatalogue& datasets = DatasetCatalogue::Of(library);
  datasets.ForEach<RunPattern>(
      [](void*, RunPattern& pattern) { pattern.buffered = pattern.asked = false; });
  for (void* const dataset : left) datasets.Find<RunPattern>(dataset)->buffered = true;
  library.sieve_buffers = {.any = !left.empty()};
}

Spread RunsOfHyperslab(int rank, const hsize_t* extent, const hsize_t* stride, const hsize_t* count,
                       const hsize_t* block) {
  // From the fastest dimension on, a run goes on into the next one as long as the selection covers
  // all of this one.
  Spread spread{.runs = 1};
  uint64_t unit = 1;  // elements from one index of this dimension to the next
  bool whole = true;
  for (int d = rank - 1; d >= 0; --d) {
    const bool one_piece = count[d] == 1 || stride[d] == block[d];
    const uint64_t pieces = !whole ? count[d] * block[d] : one_piece ? 1 : count[d];
    if (spread.runs == 1 && pieces > 1) {
      spread.pitch = whole || block[d] == 1 ? unit * stride[d] : unit;
    }
    spread.runs *= pieces;
    whole = whole && one_piece && count[d] * block[d] == extent[d];
    unit *= extent[d];
  }
  return spread;
}

Spread SpreadOf(h5::Library& hdf5, hid_t file_space) {
  const H5S_sel_type kind = hdf5.Sget_select_type(file_space);
  if (kind != H5S_SEL_POINTS && kind != H5S_SEL_HYPERSLABS) return {};
  hsize_t extent[H5S_MAX_RANK];
  const int rank = hdf5.Sget_simple_extent_dims(file_space, extent, nullptr);
  if (rank <= 0) return {};
  Spread spread;
  if (kind == H5S_SEL_POINTS) {
    const hssize_t points = hdf5.Sget_select_npoints(file_space);
    spread.runs = points < 0 ? 0 : static_cast<uint64_t>(points);
  } else {
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
    // One that was combined from several would have to be walked.
    if (hdf5.Sis_regular_hyperslab(file_space) <= 0 ||
        hdf5.Sget_regular_hyperslab(file_space, start, stride, count, block) < 0) {
      return {};
    }
    spread = RunsOfHyperslab(rank, extent, stride, count, block);
    if (spread.runs < kSieveFromRuns) PlaceFew(rank, extent, start, count, block, spread);
  }
  if (spread.runs >= kSieveFromRuns) spread.span = SpanOf(hdf5, file_space, rank, extent);
  return spread;
}

Gathering GatherWrites(LibraryState& library, size_t count, void* datasets[],
                       const hid_t memory_types[], const hid_t file_spaces[], hid_t dxpl,
                       Leaves leaves) {
  const bool one = count == 1 && IsDataspace(file_spaces[0]);
  if (!one && (count == 0 || !library.sieves_reads)) return Gathering();
  RunPattern& pattern = PatternOf(library, datasets[0]);
  const auto look = [&] { Look(library, datasets[0], pattern, dxpl); };
  if (library.sieves_reads) look();
  if (pattern.natively) return Gathering(pattern.open);
  if (!one) return Gathering();
  pattern.storage.Begin();
  const ElementPlaces* const places = pattern.storage.places();
  // A dataset that has a sieve buffer goes on with it.
  if (pattern.sieved) Engine::Get().NoteBuffered();
  if (pattern.sieved || (pattern.has_layout(H5D_CHUNKED) && !pattern.storage.asks_chunks()))
    return Gathering(places);
  if (pattern.repeat != 0) {
    --pattern.repeat;
    return Gathering(places);
  }
  // The type in memory stands for the one in the file, which it would take microseconds to ask for.
  const Shape shape = ShapeOf(SpreadOf(library.hdf5(), file_spaces[0]),
                              library.hdf5().Tget_size(memory_types[0]), pattern);
  if (MayGather(shape, leaves)) {
    look();
    pattern.sieved = Gathers(shape, pattern);
  }
  if (shape.many || pattern.same + 1 == kFewWrites) look();
  pattern.storage.Ask(library, datasets[0], file_spaces[0], shape.runs, dxpl);
  if (pattern.sieved) return Gathering(pattern.open, places);
  // Chunks are asked for at each write of many runs.
  if (++pattern.same >= kHabit && !(shape.many && pattern.storage.asks_chunks()))
    pattern.repeat = kHabit;
  return Gathering(places);
}

Gathering GatherReads(LibraryState& library, size_t count, void* datasets[],
                      const hid_t memory_types[], const hid_t file_spaces[], hid_t dxpl) {
  if (!(library.sieves_reads || library.only_reads) || count == 0) return Gathering();
  RunPattern& pattern = PatternOf(library, datasets[0]);
  const bool follows = library.only_reads && count == 1 &&
                       Follows(library, memory_types[0], file_spaces[0], pattern);
  // A dataset that is read once, or here and there, is not asked about.
  if (library.sieves_reads || follows) Look(library, datasets[0], pattern, dxpl);
  if (pattern.open == nullptr) return Gathering();
  const auto has_sieve = [&](void* dataset) {
    RunPattern& its = PatternOf(library, dataset);
    Look(library, dataset, its, dxpl);
    return !its.has_layout(H5D_CHUNKED);
  };
  const auto gathers = [&] {
    if (pattern.natively) return true;
    if (!pattern.only_read && Unlocked(pattern))
      return std::any_of(datasets, datasets + count, has_sieve) && (library.sieve_windows = true);
    return follows && pattern.contiguous && IsOnlyRead(pattern);
  };
  return gathers() ? Gathering(pattern.open) : Gathering();
}

bool ReadsAtOnce(LibraryState& library, size_t count, void* datasets[], const hid_t memory_types[],
                 const hid_t file_spaces[], hid_t dxpl) {
  if (!library.sieves_reads) return false;
  for (size_t i = 0; i < count; ++i) {
    RunPattern& pattern = PatternOf(library, datasets[i]);
    Look(library, datasets[i], pattern, dxpl);
    if (pattern.natively) return true;
    if (!library.sieve_windows || !pattern.contiguous || !Unlocked(pattern)) continue;
    if (!IsDataspace(file_spaces[i]) || library.large_sieves) return true;
    const hssize_t points = library.hdf5().Sget_select_npoints(file_spaces[i]);
    const uint64_t element = library.hdf5().Tget_size(memory_types[i]);
    if (points >= 0 && static_cast<uint64_t>(points) * element < kSieveWindow) return true;
  }
  return false;
}

namespace {

bool MayHaveBuffer(const DatasetFacts& facts) {
  if (facts.open == nullptr || facts.layout == H5D_CHUNKED || facts.layout == H5D_VIRTUAL)
    return false;
  const std::shared_ptr<File> file = facts.file.lock();
  // With a page buffer everything goes through the sieve, as natively.
  return file != nullptr && file->writable() && file->settings().mode != Mode::kSync &&
         !facts.page_buffer;
}

}  // namespace

// Of one that somebody else has opened nobody says when it is closed: nothing is kept of it.
bool MayHaveBuffer(LibraryState& library, void* dataset) {
  unsigned long serial = 0;
  return h5::Driver().has_files(library.slot) && SerialOfDataset(library, dataset, serial) &&
         MayHaveBuffer(AskFacts(library, dataset, serial, library.default_dxpl));
}

void NoteBuffers(LibraryState& library, size_t count, void* datasets[], hid_t dxpl) {
  for (size_t i = 0; i < count; ++i) {
    RunPattern& pattern = PatternOf(library, datasets[i]);
    if (pattern.buffered || pattern.only_read) continue;
    Look(library, datasets[i], pattern, dxpl);
    // What is written to it goes to other datasets.
    if (pattern.has_layout(H5D_VIRTUAL))
      library.sieve_buffers.any = library.sieve_buffers.unknown = true;
    if (pattern.facts != nullptr && MayHaveBuffer(*pattern.facts))
      pattern.buffered = library.sieve_buffers.any = true;
  }
}

// A chunked dataset, whose cache does the same, is not worth a look: it has no address. Nor has one that is not stored yet, which may be among
// several.
void SieveWatch::NotePieces(size_t count, void* datasets[], hid_t dxpl) const {
  for (size_t i = 0; i < count; ++i) {
    RunPattern& pattern = PatternOf(library_, datasets[i]);
    if (pattern.asked) continue;
    const h5::KeepErrorStack keep(library_.hdf5());
    haddr_t address = HADDR_UNDEF;
    static_cast<void>(Aside(library_, dxpl, [&] { address = AddressOf(library_, datasets[i]); }));
    if (address != HADDR_UNDEF) NoteBuffers(library_, 1, datasets + i, dxpl);
    pattern.asked = address != HADDR_UNDEF || count == 1;
  }
}

void NoteSieve(LibraryState& library, const File& file) {
  if (!file.locked() || file.settings().mode == Mode::kSync) library.sieves_reads = true;
  if (!file.writable()) library.only_reads = true;
}

void NoteSieveSize(LibraryState& library, hid_t fapl) {
  size_t size = 0;
  if (fapl == h5::kDefault || library.large_sieves) return;
  library.large_sieves = library.hdf5().Pget_sieve_buf_size(fapl, &size) < 0 || size > kSieveWindow;
}

}  // namespace tidelane::vol
