#include "vol/dataset_read.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/counters.h"
#include "file/call_scope.h"
#include "h5/error.h"
#include "vol/call_queue.h"
#include "vol/chunk_capture.h"
#include "vol/chunked_reads.h"
#include "vol/device_buffers.h"
#include "vol/device_slices.h"
#include "vol/device_upload.h"
#include "vol/find_file.h"
#include "vol/lending.h"
#include "vol/native_retry.h"
#include "vol/property_lists.h"
#include "vol/ranks.h"
#include "vol/ranks_read.h"
#include "vol/selection_io_choice.h"
#include "vol/transfer_outcome.h"
#include "vol/transfers.h"

namespace tidelane::vol {

namespace {

Reading At(const Reads& reads, size_t i, hid_t dxpl) {
  return {
      reads.datasets[i], reads.memory_types[i], reads.memory_spaces[i], reads.file_spaces[i], dxpl,
      reads.buffers[i]};
}

// What is left to lanes when the call returns.
struct Left {
  std::shared_ptr<Completion> completion;  // nullptr: nothing
  std::unique_ptr<SecondTry> again;        // nullptr: it would not help
};

// Of one that we know. Datasets of several files HDF5 refuses.
bool AreOfOneFile(LibraryState& library, const Reads& reads) {
  const std::shared_ptr<File> file = FileOf(library, reads.datasets[0], H5I_DATASET);
  return file != nullptr &&
         std::all_of(reads.datasets + 1, reads.datasets + reads.count,
                     [&](void* dataset) { return FileOf(library, dataset, H5I_DATASET) == file; });
}

// Our driver takes vectors of reads, which HDF5's own has not. With them HDF5 converts elements of several datasets after all of them were read,
// and where they share a buffer, as members of compounds do, it is left as it was (1.14.6, 2.0). One dataset after another is what it does with
// its own driver.
bool MustReadOneByOne(LibraryState& library, const Reads& reads) {
  if (reads.count < 2 || !AreOfOneFile(library, reads)) return false;
  for (size_t i = 0; i < reads.count; ++i) {
    if (!IsUnconverted(library, reads.datasets[i], reads.memory_types[i], library.default_dxpl))
      return true;
  }
  return false;
}

herr_t CallNative(LibraryState& library, const Reads& reads, hid_t dxpl) {
  const auto native = library.hdf5().native().dataset_cls.read;
  if (!MustReadOneByOne(library, reads)) {
    return native(reads.count, reads.datasets, reads.memory_types, reads.memory_spaces,
                  reads.file_spaces, dxpl, reads.buffers, nullptr);
  }
  herr_t result = 0;
  for (size_t i = 0; i < reads.count && result >= 0; ++i) {
    result = native(1, reads.datasets + i, reads.memory_types + i, reads.memory_spaces + i,
                    reads.file_spaces + i, dxpl, reads.buffers + i, nullptr);
  }
  return result;
}

// Whether lanes may still be reading when the call returns: HDF5's sieve reads at once.
enum class Later : bool { kNothing, kSome };

herr_t ReadNatively(LibraryState& library, const Reads& reads, hid_t dxpl, Later later) {
  if (reads.count == 0) return 0;
  const Gathering gathering = later == Later::kNothing
                                  ? GatherReads(library, reads.count, reads.datasets,
                                                reads.memory_types, reads.file_spaces, dxpl)
                                  : Gathering();
  const SieveWatch sieve(library);
  const herr_t result = CallNative(library, reads, dxpl);
  const uint32_t causes =
      result >= 0 ? SetOutcomeAsWithSec2(library, reads.datasets[0], dxpl) : kUnknown;
  sieve.Note(gathering, causes, reads.count, reads.datasets, dxpl);
  return result;
}

// Leaves in `reads`, with the help of `rest`, what `take` does not take.
template <typename Take>
void TakeEach(Reads& reads, Rest<void*>& rest, hid_t dxpl, Take take) {
  if (reads.count == 1) {
    if (take(At(reads, 0, dxpl))) reads.count = 0;
    return;
  }
  for (size_t i = 0; i < reads.count; ++i) {
    if (!take(At(reads, i, dxpl))) rest.Add(reads, i);
  }
  reads = rest.rows();
}

// What a transfer of several datasets leaves on its list HDF5 says of all of them.
bool MayTake(LibraryState& library, const Reads& reads, hid_t dxpl) {
  if (reads.count == 1) return true;
  return reads.count != 0 && dxpl == library.default_dxpl && AreOfOneFile(library, reads);
}

// Whether our driver may leave what HDF5 reads straight into the program's memory to lanes.
bool AcceptLater(LibraryState& library, const Reading& reading, CallScope& scope,
                 Fallback& reason) {
  const ReadDataset& known = ReadDatasetOf(library, reading);
  const std::shared_ptr<File> file = known.file.lock();
  if (!known.direct || file == nullptr || file->writes_through()) return false;
  if (!IsUnconverted(library, reading.dataset, reading.memory_type, library.default_dxpl) ||
      !IsPlainTransfer(library, reading.dxpl)) {
    reason = Fallback::kReadConverted;
    return false;
  }
  const std::span<const std::byte> memory =
      SelectedMemory(library, {reading.dataset, reading.memory_type, reading.memory_space,
                               reading.file_space, reading.buffer});
  if (memory.empty()) return false;
  const auto* const buffer = static_cast<const std::byte*>(reading.buffer);
  scope.AcceptLater(static_cast<std::byte*>(reading.buffer) + (memory.data() - buffer),
                    memory.size());
  return true;
}

herr_t ReadLater(LibraryState& library, Reads& reads, const Lists& lists, CallScope::Flag flag,
                 Left& left) {
  CallScope scope(flag);
  const hid_t dxpl = lists.ours;
  auto again = std::make_unique<NativeRetry>(library);
  Fallback reason = Fallback::kReadNow;
  Rest<void*> rest;
  if (MayTake(library, reads, dxpl)) {
    TakeEach(reads, rest, dxpl, [&](const Reading& reading) {
      if (!again->Note(reading)) return false;
      if (ReadChunkedLater(library, reading, scope, reason)) return true;
      again->DropLast();
      return false;
    });
  }
  if (MustReadOneByOne(library, reads)) {
    // What HDF5 converts in the program's memory it reads there first.
    reason = Fallback::kReadConverted;
  } else {
    for (size_t i = 0; i < reads.count; ++i)
      static_cast<void>(AcceptLater(library, At(reads, i, dxpl), scope, reason));
  }
  if (ReadNatively(library, reads, lists.native, Later::kSome) < 0) return -1;
  left.completion = scope.TakeCompletion();
  if (left.completion == nullptr) Count(reason);  // there is nothing to wait for
  // Of what is left to HDF5 and our driver, the driver's failure is all that there is to say.
  if (!again->empty() && reads.count == 0) left.again = std::move(again);
  return 0;
}

bool LeavesReads(LibraryState& library) {
  return !library.requests.any_failed() && !library.closing;
}

herr_t ReadAlone(LibraryState& library, Reads& reads, const Lists& lists, Left* left) {
  if (left != nullptr && LeavesReads(library))
    return ReadLater(library, reads, lists, CallScope::kReadAlone, *left);
  const CallScope scope(CallScope::kReadAlone);
  Rest<void*> rest;
  if (reads.count == 1 || lists.ours == library.default_dxpl) {
    TakeEach(reads, rest, lists.ours,
             [&](const Reading& reading) { return ReadChunked(library, reading); });
  }
  if (reads.count == 0) return 0;
  return CallNative(library, reads, lists.native);
}

// Of a file that ranks only read: whatever this rank does, no other one waits for it.
herr_t ReadByRank(LibraryState& library, h5::ParallelReading& file, const Reads& reads, hid_t dxpl,
                  Left* left) {
  const bool collective = IsCollective(library, dxpl);
  const ReadWay way = WayOf(library, file, reads, dxpl, collective);
  if (way == ReadWay::kFailed) return -1;
  if (way == ReadWay::kByMpi) {
    return library.hdf5().native().dataset_cls.read(reads.count, reads.datasets, reads.memory_types,
                                                    reads.memory_spaces, reads.file_spaces, dxpl,
                                                    reads.buffers, nullptr);
  }
  file.Look();
  Lists lists{};
  if (!ListsFor(library, dxpl, collective, lists)) {
    h5::PushError(library.hdf5(), "no memory for a transfer list");
    return -1;
  }
  Reads rest = reads;
  const herr_t result = ReadAlone(library, rest, lists, left);
  if (result < 0 || dxpl == library.default_dxpl) return result;
  if (collective) {
    TellCollective(library, reads, dxpl, rest.count);
  } else if (rest.count == 0) {
    TellIndependent(library, reads, dxpl);
  }
  return result;
}

// `left`: where lanes may go on after the call; nullptr: they may not. Ranks of an MPI program hand `request` to HDF5.
herr_t ReadIntoHost(LibraryState& library, Reads reads, hid_t dxpl, Left* left,
                    void** request = nullptr) {
  const size_t count = reads.count;
  void** const datasets = reads.datasets;
  if (library.chunk_capture != nullptr) library.chunk_capture->NoteReads(count, datasets);
  if (!InsertChunksBefore(library, count, datasets, dxpl)) return -1;
  if (const auto parallel = ParallelOf(library, count == 0 ? nullptr : datasets[0], H5I_DATASET);
      parallel != nullptr) {
    return ReadTogether(library, parallel, count, datasets, reads.memory_types, reads.memory_spaces,
                        reads.file_spaces, dxpl, reads.buffers, request);
  }
  if (const auto shared = ReadingOf(library, reads); shared != nullptr)
    return ReadByRank(library, *shared, reads, dxpl, left);
  if (left != nullptr && LeavesReads(library) &&
      !ReadsAtOnce(library, count, datasets, reads.memory_types, reads.file_spaces, dxpl)) {
    return ReadLater(library, reads, {.native = dxpl, .ours = dxpl}, CallScope::kNone, *left);
  }
  Rest<void*> rest;
  if (MayTake(library, reads, dxpl)) {
    TakeEach(reads, rest, dxpl,
             [&](const Reading& reading) { return ReadChunked(library, reading); });
  }
  return ReadNatively(library, reads, dxpl, Later::kNothing);
}

herr_t ReadIntoHostLater(LibraryState& library, const Reads& reads, hid_t dxpl, void** request) {
  Left left;
  const herr_t result = ReadIntoHost(library, reads, dxpl, &left, request);
  if (result < 0 || left.completion == nullptr) return result;
  Request* const issued = library.requests.Issue(std::move(left.completion));
  issued->TryAgainWith(std::move(left.again));
  *request = issued;
  return 0;
}

// The others wait for this rank.
void ReadNothing(LibraryState& library, const Reads& reads, hid_t dxpl) {
  EmptyRows nothing(library, reads.count, reads.datasets, dxpl);
  const Reads empty{reads.count,           reads.datasets,
                    reads.memory_types,    nothing.memory_spaces(),
                    nothing.file_spaces(), nothing.buffers()};
  static_cast<void>(ReadIntoHost(library, empty, dxpl, nullptr));
}

herr_t ReadStaged(LibraryState& library, const Memories& memories, const Reads& reads, hid_t dxpl,
                  bool ranks) {
  StagedRows rows(library, dxpl, TransferOf(library, dxpl).gpu_stream);
  herr_t result = -1;
  if (rows.Stage(memories, reads, StagedRows::Room::kAny)) {
    result = ReadIntoHost(library, rows.reads(), dxpl, nullptr);
    if (result >= 0 && !rows.CopyUp()) result = -1;
  } else if (ranks) {
    ReadNothing(library, reads, dxpl);
  }
  if (result < 0) rows.Tell();
  return result;
}

// Whether a copy that begins after the call can be kept from going to a context that is another one by then.
bool KeepTheirContexts(const Memories& memories) {
  return std::ranges::all_of(memories, [](const std::optional<gpu::Memory>& memory) {
    uint64_t number = 0;
    return !memory.has_value() || memory->runtime->Identify(memory->context, number);
  });
}

// nullopt: it has to be read at once, and nothing has been read.
std::optional<herr_t> ReadStagedLater(LibraryState& library, const Memories& memories,
                                      const Reads& reads, hid_t dxpl, void** request) {
  if (!LeavesReads(library) || !KeepTheirContexts(memories)) return std::nullopt;
  auto upload = std::make_unique<DeviceUpload>(
      std::make_unique<StagedRows>(library, dxpl, TransferOf(library, dxpl).gpu_stream));
  StagedRows& rows = upload->rows();
  herr_t result = -1;
  Left left;
  if (rows.Stage(memories, reads, StagedRows::Room::kStaging)) {
    result = ReadIntoHost(library, rows.reads(), dxpl, &left);
  } else if (rows.lacks_room()) {
    return std::nullopt;
  }
  if (left.completion != nullptr) upload->Follow(std::move(left.completion));
  const bool later = upload->reads();
  if (result >= 0 && !(later ? rows.PrepareUp() : rows.CopyUp())) result = -1;
  if (result < 0) rows.Tell();
  if (result < 0 || !later) return result;
  if (left.again != nullptr) left.again = upload->AfterSecondTry(std::move(left.again));
  Request* const issued = library.requests.Issue(nullptr, std::move(upload));
  issued->TryAgainWith(std::move(left.again));
  *request = issued;
  return 0;
}

herr_t ReadSlices(LibraryState& library, const Memories& memories, DeviceSlices& slices,
                  hid_t dxpl) {
  Writing slice{};
  DeviceSlices::Step step;
  while ((step = slices.Next(slice)) == DeviceSlices::Step::kSlice) {
    void* buffer = const_cast<void*>(slice.buffer);
    const Reads one{
        1, &slice.dataset, &slice.memory_type, &slice.memory_space, &slice.file_space, &buffer};
    if (ReadStaged(library, memories, one, dxpl, false) < 0) return -1;
  }
  return step == DeviceSlices::Step::kEnd ? 0 : -1;
}

// Fields of the same elements may come from several datasets: each of them is then read into what the one before has left.
bool MayShareElements(LibraryState& library, const Reads& reads) {
  return reads.count > 1 &&
         std::any_of(reads.memory_types, reads.memory_types + reads.count, [&](hid_t type) {
           return library.hdf5().Tdetect_class(type, H5T_COMPOUND) > 0;
         });
}

herr_t ReadAtOnce(LibraryState& library, const Memories& memories, const Reads& reads, hid_t dxpl) {
  if (MayShareElements(library, reads)) {
    for (size_t i = 0; i < reads.count; ++i) {
      const Reads one{1,
                      reads.datasets + i,
                      reads.memory_types + i,
                      reads.memory_spaces + i,
                      reads.file_spaces + i,
                      reads.buffers + i};
      const herr_t result = memories[i].has_value()
                                ? ReadStaged(library, {memories[i]}, one, dxpl, false)
                                : ReadIntoHost(library, one, dxpl, nullptr);
      if (result < 0) return -1;
    }
    return 0;
  }
  if (reads.count == 1) {
    const Writing whole{reads.datasets[0], reads.memory_types[0], reads.memory_spaces[0],
                        reads.file_spaces[0], reads.buffers[0]};
    auto slices = DeviceSlices::Of(library, whole, dxpl, MostStaged());
    if (slices.has_value()) return ReadSlices(library, memories, *slices, dxpl);
  }
  return ReadStaged(library, memories, reads, dxpl, false);
}

herr_t ReadIntoDevice(LibraryState& library, const Memories& memories, const Reads& reads,
                      hid_t dxpl, void** request) {
  const bool ranks = ParallelOf(library, reads.datasets[0], H5I_DATASET) != nullptr ||
                     ReadingOf(library, reads) != nullptr;
  if (request != nullptr && !ranks && !MayShareElements(library, reads)) {
    const auto result = ReadStagedLater(library, memories, reads, dxpl, request);
    if (result.has_value()) return *result;
  }
  if (request != nullptr) Count(Fallback::kReadNow);
  return ranks ? ReadStaged(library, memories, reads, dxpl, true)
               : ReadAtOnce(library, memories, reads, dxpl);
}

}  // namespace

herr_t DatasetRead(LibraryState& library, size_t count, void* datasets[], hid_t memory_types[],
                   hid_t memory_spaces[], hid_t file_spaces[], hid_t dxpl, void* buffers[],
                   void** request) {
  const Reads reads{count, datasets, memory_types, memory_spaces, file_spaces, buffers};
  if (gpu::IsLoaded()) {
    const Memories memories = MemoriesOf(count, buffers);
    if (!memories.empty()) return ReadIntoDevice(library, memories, reads, dxpl, request);
  }
  return request == nullptr ? ReadIntoHost(library, reads, dxpl, nullptr)
                            : ReadIntoHostLater(library, reads, dxpl, request);
}

}  // namespace tidelane::vol
