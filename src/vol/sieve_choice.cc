#include "vol/sieve_choice.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "engine/engine.h"
#include "extent/broken.h"
#include "h5/error.h"
#include "h5/owned_id.h"
#include "vol/chunked_dataset.h"
#include "vol/find_file.h"

namespace tidelane::vol {

namespace {

// So much HDF5 copies at once: more never comes from the sieve, whatever size a program gives it.
constexpr uint64_t kMostCopied = 1 << 20;

// Only contiguous storage has a sieve.
bool IsContiguous(Instance& instance, void* dataset, hid_t dxpl) {
  const h5::OwnedId type = AskDataset(instance, dataset, H5VL_DATASET_GET_TYPE, dxpl);
  const h5::OwnedId dcpl = CreationListOf(instance, dataset, type.get(), dxpl);
  return dcpl.valid() && instance.hdf5().Pget_layout(dcpl.get()) == H5D_CONTIGUOUS;
}

SieveHabit* FindHabit(Instance& instance, void* dataset) {
  const auto found = std::ranges::find(instance.sieve_habits, dataset, &SieveHabit::dataset);
  return found == instance.sieve_habits.end() ? nullptr : &*found;
}

SieveHabit& HabitOf(Instance& instance, void* dataset) {
  SieveHabit& newest = instance.sieve_habits[instance.newest_habit];
  if (newest.dataset == dataset) return newest;
  if (SieveHabit* const known = FindHabit(instance, dataset); known != nullptr) {
    instance.newest_habit = static_cast<size_t>(known - instance.sieve_habits.data());
    return *known;
  }
  instance.newest_habit = instance.next_habit++ % instance.sieve_habits.size();
  SieveHabit& habit = instance.sieve_habits[instance.newest_habit];
  habit = {.dataset = dataset};
  return habit;
}

// Asking how a dataset is stored costs some microseconds, so it is done once.
void Look(Instance& instance, SieveHabit& habit, hid_t dxpl) {
  if (std::exchange(habit.looked, true)) return;
  habit.contiguous = IsContiguous(instance, habit.dataset, dxpl);
  if (!habit.contiguous) return;
  const std::shared_ptr<File> file = FileOf(instance, habit.dataset, H5I_DATASET);
  habit.known_file = file != nullptr;
  if (file == nullptr) return;
  habit.device = file->identity().device;
  const FileSettings settings = file->settings();
  habit.stores_soon = settings.mode == Mode::kAuto && !settings.implicit_sync && !settings.paused &&
                      settings.delay_us == 0;
}

bool OnQuickStorage(const SieveHabit& habit) {
  return habit.contiguous && habit.known_file &&
         Whim(Engine::Get().chooser().QuickOn(habit.device));
}

hid_t SieveList(Instance& instance, hid_t dxpl) {
  if (instance.sieve_dxpl >= 0) return instance.sieve_dxpl;
  h5::Library& hdf5 = instance.hdf5();
  h5::OwnedId copy(hdf5, hdf5.Pcopy(dxpl));
  if (!copy.valid() || hdf5.Pset_selection_io(copy.get(), H5D_SELECTION_IO_MODE_OFF) < 0) {
    return dxpl;
  }
  instance.sieve_dxpl = copy.Release();
  return instance.sieve_dxpl;
}

uint64_t SpanOf(h5::Library& hdf5, hid_t file_space, int rank, const hsize_t* extent) {
  hsize_t low[H5S_MAX_RANK];
  hsize_t high[H5S_MAX_RANK];
  if (hdf5.Sget_select_bounds(file_space, low, high) < 0) return 0;
  uint64_t span = 0;
  for (int d = 0; d < rank; ++d) span = span * extent[d] + (high[d] - low[d]);
  return span + 1;
}

bool IsDense(Instance& instance, SieveHabit& habit, const Spread& spread, uint64_t element,
             hid_t dxpl) {
  const uint64_t span_bytes = spread.span * element;
  if (span_bytes == 0) return false;
  const bool dense = span_bytes / spread.runs <= kSieveSpacing;
  const uint64_t pitch = spread.pitch != 0 ? spread.pitch : spread.span / spread.runs;
  if (!dense && pitch * element > kSieveSpacingQuick) return false;
  Look(instance, habit, dxpl);
  return dense ? habit.contiguous : OnQuickStorage(habit);
}

// A small write that begins where the one before ended: natively the sieve makes one request of many such, at the price
// of a copy each. Taking them in ourselves is no cheaper, and what we then store is no less.
bool FollowsOn(Instance& instance, SieveHabit& habit, const Spread& spread, uint64_t element,
               hid_t dxpl) {
  const bool follows = spread.first == habit.next;
  habit.next = spread.first + spread.span;
  if (!follows || spread.span * element >= kSieveRun) return false;
  Look(instance, habit, dxpl);
  return habit.stores_soon && OnQuickStorage(habit);
}

bool Gathers(Instance& instance, SieveHabit& habit, hid_t memory_type, hid_t file_space, hid_t dxpl,
             Leaves leaves) {
  h5::Library& hdf5 = instance.hdf5();
  const Spread spread = SpreadOf(hdf5, file_space);
  const bool many = spread.runs >= kSieveFromRuns;
  if (!many && (spread.runs != 1 || leaves == Leaves::kRequest)) return false;
  // The type in memory stands for the one in the file, which it would take microseconds to ask for.
  const uint64_t element = hdf5.Tget_size(memory_type);
  return many ? IsDense(instance, habit, spread, element, dxpl)
              : FollowsOn(instance, habit, spread, element, dxpl);
}

// Natively a dataset that fits into the sieve lies in it whole, from its first write on, which with us went past the sieve. HDF5
// relies on that where it copies an open dataset: of one that lies there in part it copies what storage has. So the first
// element is read, and the rest comes with it.
void FillSieve(Instance& instance, void* dataset, hid_t memory_type, hid_t file_space, hid_t dxpl) {
  h5::Library& hdf5 = instance.hdf5();
  hsize_t extent[H5S_MAX_RANK];
  const int rank = hdf5.Sget_simple_extent_dims(file_space, extent, nullptr);
  const size_t element = hdf5.Tget_size(memory_type);
  uint64_t bytes = element;
  for (int d = 0; d < rank; ++d) bytes *= extent[d];
  if (rank <= 0 || bytes > kMostCopied) return;
  const h5::KeepErrorStack keep(hdf5);
  // To read these would allocate memory, or open files.
  for (const H5T_class_t kind : {H5T_VLEN, H5T_STRING, H5T_REFERENCE}) {
    if (hdf5.Tdetect_class(memory_type, kind) != 0) return;
  }
  const std::unique_ptr<std::byte[]> first(new (std::nothrow) std::byte[element]);
  if (first == nullptr) return;
  const h5::OwnedId one(hdf5, hdf5.Scopy(file_space));
  const hsize_t zeros[H5S_MAX_RANK] = {};
  hsize_t ones[H5S_MAX_RANK];
  std::fill_n(ones, rank, 1);
  if (!one.valid() ||
      hdf5.Sselect_hyperslab(one.get(), H5S_SELECT_SET, zeros, nullptr, ones, nullptr) < 0) {
    return;
  }
  const h5::OwnedId memory(hdf5, hdf5.Screate_simple(1, ones, nullptr));
  hid_t memory_id = memory.get(), file_id = one.get();
  void* to = first.get();
  static_cast<void>(hdf5.native().dataset_cls.read(1, &dataset, &memory_type, &memory_id, &file_id,
                                                   dxpl, &to, nullptr));
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

void ForgetSieve(Instance& instance, void* dataset) {
  if (instance.next_habit == 0) return;
  if (SieveHabit* const habit = FindHabit(instance, dataset); habit != nullptr) *habit = {};
}

hid_t ChooseSieve(Instance& instance, size_t count, void* datasets[], const hid_t memory_types[],
                  const hid_t file_spaces[], hid_t dxpl, Leaves leaves) {
  if (dxpl != instance.default_dxpl || count != 1 || file_spaces[0] <= h5::kDefault) return dxpl;
  SieveHabit& habit = HabitOf(instance, datasets[0]);
  // A dataset that has a sieve buffer goes on with it; our list would cost each write thirty look-ups.
  if (habit.sieved || (habit.looked && !habit.contiguous)) return dxpl;
  if (habit.repeat != 0) {
    --habit.repeat;
    return dxpl;
  }
  if (Gathers(instance, habit, memory_types[0], file_spaces[0], dxpl, leaves)) {
    const hid_t list = SieveList(instance, dxpl);
    habit.sieved = list != dxpl;
    if (habit.sieved) FillSieve(instance, datasets[0], memory_types[0], file_spaces[0], list);
    return list;
  }
  if (++habit.same >= kHabit) habit.repeat = kHabit;
  return dxpl;
}

}  // namespace tidelane::vol
