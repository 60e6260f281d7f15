#include "vol/ranks.h"

#include <algorithm>
#include <utility>

#include "base/notices.h"
#include "engine/engine.h"
#include "extent/test_hooks.h"
#include "h5/error.h"
#include "h5/parallel_driver.h"
#include "h5/parallel_reading.h"
#include "vol/chunked_dataset.h"
#include "vol/find_file.h"
#include "vol/ranks_dataset.h"
#include "vol/ranks_filtered.h"
#include "vol/tracked_call.h"

namespace tidelane::vol {

namespace {

constexpr int kSetAtomicity =
    27;  // H5VL_NATIVE_FILE_SET_MPI_ATOMICITY, where HDF5 was built for MPI

void* HandleOf(LibraryState& library, void* file, hid_t dxpl) {
  void* handle = nullptr;
  H5VL_native_file_optional_args_t get{};
  get.get_vfd_handle.fapl_id = h5::kDefault;
  get.get_vfd_handle.file_handle = &handle;
  H5VL_optional_args_t args{H5VL_NATIVE_FILE_GET_VFD_HANDLE, &get};
  const auto native = library.hdf5().native().file_cls.optional;
  return native(file, &args, dxpl, nullptr) >= 0 ? handle : nullptr;
}

// A file that this rank could have stored is no success while others could not.
bool TellAll(LibraryState& library, h5::ParallelFile& parallel, const Status& here) {
  const Status status = parallel.Worst(here);
  if (!status.ok()) h5::PushError(library.hdf5(), status);
  return status.ok();
}

// Chunks first: what is captured of them is then drained. Where all wait, what this gives is the same on all ranks, as of each
// of the two.
Status Before(LibraryState& library, h5::ParallelFile& parallel, h5::SyncPoint moment) {
  Status committed;
  if (h5::NeedsChunks(moment) && library.rank_chunks != nullptr)
    committed = library.rank_chunks->Commit(parallel);
  const Status drained = parallel.Before(moment);
  return committed.ok() ? drained : committed;
}

bool Shrinks(LibraryState& library, void* dataset, const hsize_t* size) {
  const h5::OwnedId space =
      AskDataset(library, dataset, H5VL_DATASET_GET_SPACE, library.default_dxpl);
  hsize_t extent[H5S_MAX_RANK];
  const int rank = library.hdf5().Sget_simple_extent_dims(space.get(), extent, nullptr);
  for (int d = 0; d < rank; ++d) {
    if (size[d] < extent[d]) return true;
  }
  return false;
}

// Through an external link HDF5 opens a file without asking us.
void NoteForeign(LibraryState& library, void* object, H5I_type_t type, unsigned long serial) {
  auto& known = library.foreign_serials;
  if (std::ranges::find(known, serial) != known.end()) return;
  std::ranges::rotate(known, known.end() - 1);  // the oldest makes room
  known.front() = serial;
  char name[4096] = "";
  size_t length = 0;
  H5VL_file_get_args_t get{};
  get.op_type = H5VL_FILE_GET_NAME;
  get.args.get_name.type = type;
  get.args.get_name.buf_size = sizeof name;
  get.args.get_name.buf = name;
  get.args.get_name.file_name_len = &length;
  const auto native = library.hdf5().native().file_cls.get;
  if (native(object, &get, library.default_dxpl, nullptr) >= 0 && length < sizeof name)
    h5::ParallelDriver().note_opened_again(library.slot, name);
}

}  // namespace

std::shared_ptr<h5::ParallelFile> internal::ParallelOf(LibraryState& library, void* object,
                                                       H5I_type_t type) {
  if (object == nullptr || !h5::ParallelDriver().has_files(library.slot)) return nullptr;
  const h5::KeepErrorStack keep(library.hdf5());
  unsigned long serial = 0;
  if (!SerialOf(library, object, type, serial)) return nullptr;
  std::shared_ptr<h5::ParallelFile> file =
      h5::ParallelDriver().file_with_serial(library.slot, serial);
  if (file == nullptr) NoteForeign(library, object, type, serial);
  return file;
}

std::shared_ptr<File> CapturedFileOf(LibraryState& library, void* object, H5I_type_t type) {
  if (std::shared_ptr<File> file = FileOf(library, object, type); file != nullptr) return file;
  const std::shared_ptr<h5::ParallelFile> parallel = ParallelOf(library, object, type);
  return parallel == nullptr ? nullptr : parallel->file();
}

void ShareFile(LibraryState& library, void* file, NameForRanks& shared, const AccessList& access,
               bool writable, hid_t dxpl) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  library.parallel_files = true;
  library.foreign_serials = {};  // one of them may be this one
  void* const handle = HandleOf(library, file, dxpl);
  const char* const name = shared.name;
  // The name lives as long as this, also when the driver has taken the opening.
  const auto unpublished = shared.opening == nullptr ? nullptr : shared.opening->publication;
  const char* const path = shared.path();
  if (shared.opening != nullptr &&
      !h5::ParallelDriver().publish(access.mpi_driver(), handle, shared.opening))
    return;
  const CallScope* const scope = CallScope::current();
  const bool has_settings = scope != nullptr && scope->file_settings() != nullptr;
  const bool wanted =
      (has_settings ? *scope->file_settings() : Engine::Get().config()).mode != Mode::kSync;
  Fallback reason = Fallback::kModeSync;
  int together = 1;  // not to be asked alone, if nobody knows
  if (hdf5.Pget(access.get(), "collective_metadata_read", &together) < 0) together = 1;
  const h5::ParallelDriverTable& driver = h5::ParallelDriver();
  const hid_t id = access.mpi_driver();
  bool captured = false;
  if (writable) {
    const auto written = driver.capture(hdf5, id, handle, path, wanted, reason);
    captured = written != nullptr;
    if (captured) written->metadata_together = together != 0;
  } else {
    const auto read = driver.capture_reading(hdf5, id, handle, path, wanted, reason);
    captured = read != nullptr;
    if (captured && together == 0) read->ReadMetadataApart();
  }
  if (captured) return;
  driver.watch(hdf5, id, handle, path, writable);
  Count(reason);
  NoteNative(reason, name);
}

CollectiveGuard::CollectiveGuard(LibraryState& library, std::shared_ptr<h5::ParallelFile> file,
                                 h5::SyncPoint moment)
    : file_(std::move(file)) {
  if (file_ != nullptr) status_ = Before(library, *file_, moment);
}

bool CollectiveGuard::MayGoOn(LibraryState& library) const {
  if (!status_.ok()) h5::PushError(library.hdf5(), status_);
  return status_.ok();
}

CollectiveGuard::~CollectiveGuard() {
  if (file_ != nullptr) file_->After();
}

std::optional<h5::SyncPoint> MomentOf(LibraryState& library, void* dataset,
                                      H5VL_dataset_specific_args_t* args) {
  if (args->op_type != H5VL_DATASET_SET_EXTENT) return std::nullopt;
  const bool shrinks = Shrinks(library, dataset, args->args.set_extent.size);
  return shrinks ? h5::SyncPoint::kShrink : h5::SyncPoint::kTake;
}

herr_t FlushTogether(LibraryState& library, h5::ParallelFile& parallel, void* file,
                     H5VL_file_specific_args_t* args, hid_t dxpl, void** request) {
  TrackedCall call(library, Effect::kFlush, request);
  const Status status = Before(library, parallel, h5::SyncPoint::kFlush);
  const herr_t result = library.hdf5().native().file_cls.specific(file, args, dxpl, nullptr);
  parallel.After();
  const bool stored = TellAll(library, parallel, status);
  call.Finish(result >= 0 && stored);
  return stored ? result : -1;
}

bool MayCloseTogether(LibraryState& library, h5::ParallelFile& parallel) {
  const Status status = Before(library, parallel, h5::SyncPoint::kClose);
  parallel.After();
  if (library.rank_chunks != nullptr) library.rank_chunks->Forget(parallel);
  return TellAll(library, parallel, status);
}

namespace {

// Only a hard link keeps an object. What another one leads to may be in a file that is nobody's here: to look at it is to open that.
bool IsHardLink(LibraryState& library, void* object, const H5VL_loc_params_t& location) {
  H5L_info2_t info{};
  H5VL_link_get_args_t get{};
  get.op_type = H5VL_LINK_GET_INFO;
  get.args.get_info.linfo = &info;
  const auto native = library.hdf5().native().link_cls.get;
  // Where HDF5 does not say, the deletion fails, too.
  return native(object, &location, &get, library.default_dxpl, nullptr) >= 0 &&
         info.type == H5L_TYPE_HARD;
}

}  // namespace

void StopMounted(h5::ParallelFile* one, h5::ParallelFile* other) {
  if (MutationEnabled("ranks_mount")) return;
  for (h5::ParallelFile* const file : {one, other}) {
    if (file != nullptr) file->Stop(Fallback::kMpiMounted);
  }
}

void NoteDeleted(LibraryState& library, h5::ParallelFile& parallel, void* object,
                 const H5VL_loc_params_t& location, bool is_link) {
  const h5::KeepErrorStack keep(library.hdf5());
  if (is_link && !IsHardLink(library, object, location) && !MutationEnabled("ranks_hard")) return;
  H5O_info2_t info{};
  H5VL_object_get_args_t get{};
  get.op_type = H5VL_OBJECT_GET_INFO;
  get.args.get_info.fields = H5O_INFO_BASIC;
  get.args.get_info.oinfo = &info;
  const auto native = library.hdf5().native().object_cls.get;
  const bool known = native(object, &location, &get, library.default_dxpl, nullptr) >= 0;
  parallel.deleted_group = parallel.deleted_group || (known && info.type == H5O_TYPE_GROUP);
  NoteUnlinked(library, known ? &info : nullptr);
}

std::shared_ptr<h5::ParallelFile> TakesSpace(LibraryState& library, void* object, H5I_type_t type) {
  std::shared_ptr<h5::ParallelFile> file = ParallelOf(library, object, type);
  return file == nullptr || !file->deleted_group ? nullptr : file;
}

bool OperateTogether(LibraryState& library, h5::ParallelFile& parallel, void* file,
                     H5VL_optional_args_t* args, hid_t dxpl, void** request, herr_t& result) {
  if (args->op_type == H5VL_NATIVE_FILE_GET_VFD_HANDLE) {
    parallel.Stop(Fallback::kHandleOut);  // what the program does with it, nobody tells
    return false;
  }
  if (args->op_type != kSetAtomicity) return false;
  // The argument begins with the flag.
  const bool atomic = *static_cast<const hbool_t*>(args->args);
  const Status status = Before(library, parallel, h5::SyncPoint::kAtomic);
  if (status.ok()) result = library.hdf5().native().file_cls.optional(file, args, dxpl, request);
  parallel.After();
  if (!status.ok()) {
    h5::PushError(library.hdf5(), status);
    result = -1;
  }
  if (result >= 0) parallel.SetAtomic(atomic);
  return true;
}

bool IsCollective(LibraryState& library, hid_t dxpl) {
  if (dxpl == library.default_dxpl) return false;
  H5FD_mpio_xfer_t mode = H5FD_MPIO_INDEPENDENT;
  return library.hdf5().Pget(dxpl, "io_xfer_mode", &mode) >= 0 && mode == H5FD_MPIO_COLLECTIVE;
}

herr_t ReadTogether(LibraryState& library, const std::shared_ptr<h5::ParallelFile>& parallel,
                    size_t count, void* datasets[], hid_t memory_types[], hid_t memory_spaces[],
                    hid_t file_spaces[], hid_t dxpl, void* buffers[], void** request) {
  const auto native = library.hdf5().native().dataset_cls.read;
  if (!IsCollective(library, dxpl)) {
    CallScope scope(CallScope::kReadAlone);
    const herr_t read =
        native(count, datasets, memory_types, memory_spaces, file_spaces, dxpl, buffers, request);
    for (size_t i = 0; i < count && read >= 0 && library.rank_chunks != nullptr; ++i) {
      if (!OverlayHeld(
              library, *parallel,
              {datasets[i], memory_types[i], memory_spaces[i], file_spaces[i], dxpl, buffers[i]})) {
        return -1;
      }
    }
    return read;
  }
  if (!MutationEnabled("ranks_chunks") && !CommitChunksOf(library, *parallel, count, datasets))
    return -1;
  const CollectiveGuard together(library, parallel, h5::SyncPoint::kRead);
  if (!together.MayGoOn(library)) return -1;
  return native(count, datasets, memory_types, memory_spaces, file_spaces, dxpl, buffers, request);
}

}  // namespace tidelane::vol
