#include "vol/dataset_calls.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/activity.h"
#include "base/counters.h"
#include "engine/engine.h"
#include "extent/test_hooks.h"
#include "h5/error.h"
#include "h5/owned_id.h"
#include "vol/call_queue.h"
#include "vol/chunk_capture.h"
#include "vol/chunk_insert.h"
#include "vol/commit.h"
#include "vol/control.h"
#include "vol/dataset_catalogue.h"
#include "vol/device_buffers.h"
#include "vol/device_slices.h"
#include "vol/device_twin.h"
#include "vol/find_file.h"
#include "vol/lending.h"
#include "vol/object_info.h"
#include "vol/property_lists.h"
#include "vol/ranks.h"
#include "vol/ranks_dataset.h"
#include "vol/ranks_filtered.h"
#include "vol/ranks_write.h"
#include "vol/read_dataset.h"
#include "vol/selection_io_choice.h"
#include "vol/tracked_call.h"
#include "vol/transfer_outcome.h"
#include "vol/writing.h"

namespace tidelane::vol {

namespace {

// A transfer list may say when the files that are written with it are stored.
void Steer(LibraryState& library, size_t count, void* datasets[], const Transfer& transfer) {
  if (!transfer.paused.has_value() && !transfer.delay_us.has_value()) return;
  for (size_t i = 0; i < count; ++i) {
    const std::shared_ptr<File> file = CapturedFileOf(library, datasets[i], H5I_DATASET);
    if (file == nullptr) continue;
    if (transfer.delay_us.has_value()) file->SetDelay(*transfer.delay_us);
    if (transfer.paused.has_value()) file->SetPaused(*transfer.paused);
  }
}

ChunkCapture* ChunkCaptureOf(LibraryState& library) {
  if (library.closing) return nullptr;  // nobody would insert them
  if (library.chunk_capture == nullptr &&
      Engine::Get().config().parallel_writes != ParallelWrites::kOff) {
    library.chunk_capture = new ChunkCapture(library);
  }
  return library.chunk_capture;
}

herr_t WriteNatively(LibraryState& library, const Writes& writes, hid_t dxpl,
                     Leaves leaves = Leaves::kNothing) {
  if (writes.count == 0) return 0;
  if (!AwaitHeld(library, writes, dxpl)) return -1;
  const Gathering gathering = GatherWrites(library, writes.count, writes.datasets,
                                           writes.memory_types, writes.file_spaces, dxpl, leaves);
  const SieveWatch sieve(library);
  const ChunkMapInvalidation changing(library);
  const herr_t result = library.hdf5().native().dataset_cls.write(
      writes.count, writes.datasets, writes.memory_types, writes.memory_spaces, writes.file_spaces,
      dxpl, writes.buffers, nullptr);
  // One that failed may have come to the sieve before.
  const uint32_t causes =
      result >= 0 ? SetOutcomeAsWithSec2(library, writes.datasets[0], dxpl) : kUnknown;
  sieve.Note(gathering, causes, writes.count, writes.datasets, dxpl);
  return result;
}

// Whether these are datasets of one file, each of them once.
bool AreDifferent(LibraryState& library, const Writes& writes) {
  std::vector<std::array<uint8_t, sizeof(H5O_token_t)>> tokens(writes.count);
  unsigned long file = 0;
  for (size_t i = 0; i < writes.count; ++i) {
    const h5::KeepErrorStack keep(library.hdf5());
    H5O_info2_t info{};
    if (!InfoOf(library, writes.datasets[i], H5I_DATASET, info)) return false;
    if (i != 0 && info.fileno != file) return false;
    file = info.fileno;
    std::ranges::copy(info.token.__data, tokens[i].begin());
  }
  std::ranges::sort(tokens);
  return std::ranges::adjacent_find(tokens) == tokens.end();
}

// HDF5 looks at all datasets of a call before it writes the first: what is left to it goes first, and of the others it is known
// by then that nothing is wrong with them. `taken`: so many lanes filter.
herr_t WriteSeveral(LibraryState& library, const Writes& writes, hid_t dxpl, Leaves leaves,
                    size_t& taken, const std::shared_ptr<ChunkBatch>& late = nullptr) {
  ChunkCapture* const filtered = ChunkCaptureOf(library);
  if (filtered == nullptr) return WriteNatively(library, writes, dxpl, leaves);
  Rest<const void*> ours, others, refused;
  const bool different = AreDifferent(library, writes);
  for (size_t i = 0; i < writes.count; ++i) {
    const bool would = different && filtered->WouldTake(At(writes, i), dxpl);
    (would ? ours : others).Add(writes, i);
  }
  const Writes natives = others.rows();
  for (size_t i = 0; i < natives.count; ++i) {
    if (!InsertChunksBefore(library, 1, &natives.datasets[i], dxpl)) return -1;
  }
  if (WriteNatively(library, natives, dxpl, leaves) < 0) return -1;
  const Writes whole = ours.rows();
  for (size_t i = 0; i < whole.count; ++i) {
    bool may_run = true;
    const bool took = filtered->Take(At(whole, i), dxpl, may_run, late);
    if (!may_run) return -1;
    if (took) {
      ++taken;
    } else {
      refused.Add(whole, i);
    }
  }
  return WriteNatively(library, refused.rows(), dxpl, leaves);
}

herr_t WriteExplicitly(LibraryState& library, const Writes& writes, const Transfer& transfer,
                       hid_t dxpl, void** request) {
  TrackedCall call(library, Effect::kData, request);
  const auto chunks = std::make_shared<ChunkBatch>();
  size_t taken = 0;
  herr_t result = 0;
  if (writes.count != 1) {
    result = WriteSeveral(library, writes, dxpl, Leaves::kRequest, taken, chunks);
  } else {
    ChunkCapture* const filtered = ChunkCaptureOf(library);
    bool may_run = true;
    if (filtered != nullptr && filtered->Take(At(writes, 0), dxpl, may_run, chunks)) taken = 1;
    if (!may_run) return -1;
    if (taken == 0) {
      const std::span<const std::byte> lent = HoldsBytes::current() == nullptr
                                                  ? BufferToLend(library, At(writes, 0), transfer)
                                                  : std::span<const std::byte>();
      if (!lent.empty()) call.scope().Lend(lent.data(), lent.size());
      result = WriteNatively(library, writes, dxpl, Leaves::kRequest);
    }
  }
  std::unique_ptr<DeferredPart> late;
  if (taken != 0) late = std::make_unique<ChunkBatchPart>(library, chunks);
  call.Finish(result >= 0, std::move(late));
  return result;
}

bool MayWrite(LibraryState& library, size_t count, void* datasets[]) {
  for (size_t i = 0; i < count; ++i) {
    if (!MayChange(library, datasets[i], H5I_DATASET)) return false;
  }
  return true;
}

herr_t WritePlainly(LibraryState& library, const Writes& writes, hid_t dxpl) {
  if (!MayChange(library, writes.datasets[0], H5I_DATASET)) return -1;
  bool may_run = true;
  ChunkCapture* const filtered = ChunkCaptureOf(library);
  if (filtered != nullptr && filtered->Take(At(writes, 0), dxpl, may_run)) return 0;
  return may_run ? WriteNatively(library, writes, dxpl) : -1;
}

// Whoever had its address before may have been closed by somebody else than the program.
void NoteOpened(LibraryState& library, void* dataset) {
  ForgetDataset(library, dataset);
  NoteRankDataset(library, dataset);
}

// Looking at a dataset before its first write takes several times as long as at the list that it is made with, which is
// often the same as before.
void NoteMade(LibraryState& library, void* dataset, hid_t dcpl) {
  if (dcpl != library.plain_dcpl) {
    h5::Library& hdf5 = library.hdf5();
    const H5D_layout_t layout = hdf5.Pget_layout(dcpl);
    if (layout != H5D_CONTIGUOUS && layout != H5D_COMPACT) return;
    if (WaitsAreRecorded() && hdf5.Pget_external_count(dcpl) > 0) {
      Count(Fallback::kExternalRaw);
      return;
    }
    library.plain_dcpl = dcpl;
  }
  if (ChunkCapture* const filtered = ChunkCaptureOf(library); filtered != nullptr) {
    filtered->NoteProbablyPlain(dataset);
  }
}

}  // namespace

void* DatasetCreate(LibraryState& library, void* object, const H5VL_loc_params_t* location,
                    const char* name, hid_t lcpl, hid_t type, hid_t space, hid_t dcpl, hid_t dapl,
                    hid_t dxpl, void** request) {
  h5::Library& hdf5 = library.hdf5();
  const auto native = hdf5.native().dataset_cls.create;
  if (request == nullptr && !MayChange(library, object, location->obj_type)) return nullptr;
  gpu::Look();
  DoReadyCallWork(library, dxpl);
  const CollectiveGuard together(library, TakesSpace(library, object, location->obj_type),
                                 h5::SyncPoint::kTake);
  if (!together.MayGoOn(library)) return nullptr;
  const auto create = [&] {
    void* const made = native(object, location, name, lcpl, type, space, dcpl, dapl, dxpl, nullptr);
    if (made == nullptr) return made;
    NoteOpened(library, made);
    NoteMade(library, made, dcpl);
    return made;
  };
  if (RunsPlain(Effect::kWrite, request)) return create();
  TrackedCall call(library, Effect::kWrite, request);
  void* const dataset = create();
  call.Finish(dataset != nullptr);
  return dataset;
}

namespace {

bool IsDefaultList(LibraryState& library, hid_t list) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  const h5::OwnedId list_class(hdf5, hdf5.Pget_class(list));
  const h5::OwnedId fresh(hdf5, hdf5.Pcreate(list_class.get()));
  return fresh.valid() && hdf5.Pequal(list, fresh.get()) > 0;
}

// Those that the program has closed, for chunks that are on their way.
bool KeepsDatasetsOpen(LibraryState& library) {
  return AnyCallWork(library) && library.chunk_capture != nullptr &&
         library.chunk_capture->IsKeptOpen(nullptr);
}

// Opening twice would ask the program twice which file an external link leads to.
bool AsksProgram(LibraryState& library, hid_t list) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  H5L_elink_traverse_t callback = nullptr;
  void* data = nullptr;
  return hdf5.Pget_elink_cb(list, &callback, &data) >= 0 && callback != nullptr;
}

// An open dataset refuses one more open with another prefix of external files; one that only we keep open must not.
template <typename Open>
void* OpenDespiteKept(LibraryState& library, void* object, H5I_type_t type, hid_t list, hid_t dxpl,
                      Open open) {
  if (!AsksProgram(library, list)) {
    const h5::KeepErrorStack keep(library.hdf5());
    if (void* const opened = open(); opened != nullptr) return opened;
  }
  return DoCallWork(library, object, type, dxpl) ? open() : nullptr;
}

}  // namespace

void* DatasetOpen(LibraryState& library, void* object, const H5VL_loc_params_t* location,
                  const char* name, hid_t dapl, hid_t dxpl, void** request) {
  const auto& native = library.hdf5().native().dataset_cls;
  gpu::Look();
  const auto open = [&] { return native.open(object, location, name, dapl, dxpl, request); };
  if (!KeepsDatasetsOpen(library)) {
    void* const opened = open();
    if (opened != nullptr) NoteOpened(library, opened);
    return opened;
  }
  void* opened = OpenDespiteKept(library, object, location->obj_type, dapl, dxpl, open);
  // The program has closed it, so that its new access list is to hold; HDF5 keeps the list of one that is still open.
  if (opened != nullptr && KeepsDatasetsOpen(library) && !IsDefaultList(library, dapl) &&
      library.chunk_capture->IsKeptOpen(opened)) {
    native.close(opened, dxpl, nullptr);
    if (!DoCallWork(library, object, location->obj_type, dxpl)) return nullptr;
    opened = open();
  }
  if (opened != nullptr) NoteOpened(library, opened);
  return opened;
}

void* ObjectOpen(LibraryState& library, void* object, const H5VL_loc_params_t* location,
                 H5I_type_t* type, hid_t dxpl, void** request) {
  const auto native = library.hdf5().native().object_cls.open;
  gpu::Look();
  const auto open = [&] { return native(object, location, type, dxpl, request); };
  const bool by_name = location->type == H5VL_OBJECT_BY_NAME;
  const hid_t lapl = by_name ? location->loc_data.loc_by_name.lapl_id : h5::kDefault;
  void* const opened = KeepsDatasetsOpen(library)
                           ? OpenDespiteKept(library, object, location->obj_type, lapl, dxpl, open)
                           : open();
  if (opened != nullptr && *type == H5I_DATASET) NoteOpened(library, opened);
  return opened;
}

namespace {

herr_t WriteFromHost(LibraryState& library, const Writes& writes, hid_t dxpl, void** request) {
  const size_t count = writes.count;
  void** const datasets = writes.datasets;
  if (const auto parallel = ParallelOf(library, count == 0 ? nullptr : datasets[0], H5I_DATASET);
      parallel != nullptr) {
    const Transfer transfer = TransferOf(library, dxpl);
    Steer(library, count, datasets, transfer);
    return WriteTogether(library, parallel, writes, transfer, dxpl, request);
  }
  // Nearly every write: of one dataset, with the default list, and nobody asked for anything.
  if (request == nullptr && count == 1 && dxpl == library.default_dxpl) {
    return WritePlainly(library, writes, dxpl);
  }
  const Transfer transfer = TransferOf(library, dxpl);
  Steer(library, count, datasets, transfer);
  if (request != nullptr) return WriteExplicitly(library, writes, transfer, dxpl, request);
  if (!MayWrite(library, count, datasets)) return -1;
  if (transfer.synchronous) {
    if (!InsertChunksBefore(library, count, datasets, dxpl)) return -1;
    TrackedCall call(library, Effect::kDataNow, nullptr);
    const herr_t result = WriteNatively(library, writes, dxpl);
    call.Finish(result >= 0);
    return result;
  }
  if (count == 1) return WritePlainly(library, writes, dxpl);
  size_t taken = 0;
  return WriteSeveral(library, writes, dxpl, Leaves::kNothing, taken);
}

// Of slices that are written one after the other no one request could say when all are stored, and ranks need not have as many.
bool MayBeSliced(LibraryState& library, const Writes& writes, void** request) {
  return writes.count == 1 && request == nullptr &&
         ParallelOf(library, writes.datasets[0], H5I_DATASET) == nullptr;
}

// The others wait for this rank.
void WriteNothing(LibraryState& library, const Writes& writes, hid_t dxpl) {
  EmptyRows nothing(library, writes.count, writes.datasets, dxpl);
  const Writes empty{writes.count,          writes.datasets,
                     writes.memory_types,   nothing.memory_spaces(),
                     nothing.file_spaces(), const_cast<const void**>(nothing.buffers())};
  static_cast<void>(WriteFromHost(library, empty, dxpl, nullptr));
}

// A device's buffer is the program's again when the call returns: what is left to copy was waited for.
herr_t WriteStaged(LibraryState& library, const Memories& memories, const Writes& writes,
                   hid_t dxpl, void** request) {
  StagedRows rows(library, dxpl, TransferOf(library, dxpl).gpu_stream);
  const bool ranks =
      writes.count != 0 && ParallelOf(library, writes.datasets[0], H5I_DATASET) != nullptr;
  // What can be told to nobody any more, once there is a request, or once other ranks are in the call, is waited for before.
  const bool waits = ranks || request != nullptr;
  herr_t result = -1;
  if (rows.Stage(memories, writes) && (!waits || rows.AwaitAll())) {
    const HoldsBytes held(&rows);
    result = WriteFromHost(library, rows.writes(), dxpl, request);
    if (result >= 0 && !rows.AwaitAll()) result = -1;
  } else if (ranks) {
    WriteNothing(library, writes, dxpl);
  }
  if (result < 0) rows.Tell();
  return result;
}

herr_t WriteFromDevice(LibraryState& library, const Memories& memories, const Writes& writes,
                       hid_t dxpl, void** request) {
  auto slices = MayBeSliced(library, writes, request)
                    ? DeviceSlices::Of(library, At(writes, 0), dxpl, MostStaged())
                    : std::nullopt;
  if (!slices.has_value()) return WriteStaged(library, memories, writes, dxpl, request);
  Writing slice{};
  DeviceSlices::Step step;
  while ((step = slices->Next(slice)) == DeviceSlices::Step::kSlice) {
    const Writes one{1,
                     &slice.dataset,
                     &slice.memory_type,
                     &slice.memory_space,
                     &slice.file_space,
                     &slice.buffer};
    if (WriteStaged(library, memories, one, dxpl, nullptr) < 0) return -1;
  }
  return step == DeviceSlices::Step::kEnd ? 0 : -1;
}

}  // namespace

herr_t DatasetWrite(LibraryState& library, size_t count, void* datasets[], hid_t memory_types[],
                    hid_t memory_spaces[], hid_t file_spaces[], hid_t dxpl, const void* buffers[],
                    void** request) {
  const Writes writes{count, datasets, memory_types, memory_spaces, file_spaces, buffers};
  if (!gpu::IsLoaded()) return WriteFromHost(library, writes, dxpl, request);
  const Memories memories = MemoriesOf(count, buffers);
  return memories.empty() ? WriteFromHost(library, writes, dxpl, request)
                          : WriteFromDevice(library, memories, writes, dxpl, request);
}

herr_t DatasetClose(LibraryState& library, void* dataset, hid_t dxpl, void** request) {
  if (request == nullptr) EndReadsOf(library, dataset);
  DoReadyCallWork(library, dxpl);
  if (library.chunk_capture != nullptr && library.chunk_capture->KeepOpen(dataset)) return 0;
  ForgetDataset(library, dataset);
  const auto native = library.hdf5().native().dataset_cls.close;
  if (RunsPlain(Effect::kRelease, request)) return native(dataset, dxpl, request);
  TrackedCall call(library, Effect::kRelease, request);
  const herr_t result = native(dataset, dxpl, request);
  call.Finish(result >= 0);
  return result;
}

namespace {

// PyTables, for one, opens the file itself and reads chunks compressed with Blosc2 where HDF5 says that they are.
bool GivesAddress(int operation) {
  return operation == H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_IDX ||
         operation == H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_COORD ||
         operation == H5VL_NATIVE_DATASET_GET_OFFSET || operation == H5VL_NATIVE_DATASET_CHUNK_ITER;
}

// A dataset that does not lie in one piece, or nowhere yet, has no place.
bool GivesPlace(const H5VL_optional_args_t& answered) {
  return answered.op_type == H5VL_NATIVE_DATASET_GET_OFFSET &&
         *static_cast<H5VL_native_dataset_optional_args_t*>(answered.args)->get_offset.offset !=
             HADDR_UNDEF;
}

// Who asks for an address may read there past HDF5: everything is stored when the answer is given, by all ranks that write
// the file. Who asks where a dataset of a file of its own lies in one piece may map it, and then sees what is written
// later, too: natively at once. It may also change it there, whether HDF5 has the file open for writing or not.
herr_t StoreAll(LibraryState& library, void* dataset, const H5VL_optional_args_t& answered,
                hid_t dxpl) {
  const std::shared_ptr<File> file = CapturedFileOf(library, dataset, H5I_DATASET);
  if (file == nullptr) return 0;
  Status status;
  const bool ranks = ParallelOf(library, dataset, H5I_DATASET) != nullptr;
  if (GivesPlace(answered) && !ranks) {
    const CallScope watched(CallScope::kHandOutDescriptor);
    int* descriptor = nullptr;
    status = file->Descriptor(descriptor, CallContext::Current());
  } else {
    if (CommitForOutsiders(library, dataset, H5I_DATASET, dxpl) < 0) return -1;
    status = file->drainer().Drain(Wait::kOther);
    if (!MutationEnabled("ranks_address")) file->AwaitOthers(0, UINT64_MAX);
  }
  if (status.ok()) return 0;
  h5::PushError(library.hdf5(), status);
  return -1;
}

}  // namespace

namespace {

// A stored chunk, through a copy that HDF5 can look at.
herr_t TransferFromDevice(LibraryState& library, void* dataset, const gpu::Memory& memory,
                          void** buffer, H5VL_optional_args_t* args, hid_t dxpl, void** request) {
  const bool writes = args->op_type == H5VL_NATIVE_DATASET_CHUNK_WRITE;
  DeviceTwin twin(library, "a chunk", memory, *buffer, ChunkBytesOf(library, dataset, *args, dxpl),
                  TransferOf(library, dxpl).gpu_stream);
  // What HDF5 does not read, for want of room, stays as it is.
  if (!twin.CopyDown()) return -1;
  void* const given = std::exchange(*buffer, twin.data());
  const herr_t result = DatasetOptional(library, dataset, args, dxpl, writes ? request : nullptr);
  *buffer = given;
  return result >= 0 && !writes && !twin.CopyUp() ? -1 : result;
}

}  // namespace

// Only writing a chunk changes anything; what else there is asks, and may flush the chunk cache.
herr_t DatasetOptional(LibraryState& library, void* dataset, H5VL_optional_args_t* args, hid_t dxpl,
                       void** request) {
  if (IsOurs(library, H5I_DATASET, args->op_type)) {
    return Operate(library, dataset, H5I_DATASET, *args, dxpl, request);
  }
  if (!DoCallWork(library, dataset, H5I_DATASET, dxpl)) return -1;
  if (void** const buffer = gpu::IsLoaded() ? ChunkBufferOf(library, *args) : nullptr;
      buffer != nullptr) {
    const std::optional<gpu::Memory> memory = gpu::Find(*buffer);
    if (memory.has_value())
      return TransferFromDevice(library, dataset, *memory, buffer, args, dxpl, request);
  }
  const auto native = library.hdf5().native().dataset_cls.optional;
  const bool changes = args->op_type == H5VL_NATIVE_DATASET_CHUNK_WRITE;
  if (changes) library.chunks_written_raw = true;
  const ChunkMapInvalidation changing(library);
  std::optional<CallScope> alone;  // the driver waits for what other ranks hold there
  if (const auto parallel = ParallelOf(library, dataset, H5I_DATASET); parallel != nullptr) {
    if (args->op_type == H5VL_NATIVE_DATASET_CHUNK_READ) alone.emplace(CallScope::kReadAlone);
    // Where there are filters, only all ranks together can change a chunk.
    if (changes && !CommitChunksOf(library, *parallel, 1, &dataset)) {
      return -1;
    }
    if (!changes) {
      const std::optional<herr_t> held = AnswerHeld(library, *parallel, dataset, args, dxpl);
      if (held.has_value()) return *held;
    }
  }
  const auto operate = [&] {
    const ChunkGrid* const grid = library.chunk_capture != nullptr && IsMaskedWrite(library, *args)
                                      ? library.chunk_capture->GridOf(dataset)
                                      : nullptr;
    return grid == nullptr ? native(dataset, args, dxpl, nullptr)
                           : WriteMasked(library, dataset, *grid, *args, dxpl);
  };
  if (request == nullptr) {
    if (changes && !MayChange(library, dataset, H5I_DATASET)) return -1;
    const herr_t result = operate();
    return result >= 0 && GivesAddress(args->op_type) ? StoreAll(library, dataset, *args, dxpl)
                                                      : result;
  }
  TrackedCall call(library, Effect::kWrite, request);
  const herr_t result = operate();
  call.Finish(result >= 0);
  return result;
}

}  // namespace tidelane::vol
