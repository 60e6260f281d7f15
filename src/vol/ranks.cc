#include "vol/ranks.h"

#include <cstring>
#include <utility>

#include "base/notices.h"
#include "engine/engine.h"
#include "extent/broken.h"
#include "h5/driver.h"
#include "h5/error.h"
#include "vol/chunked_dataset.h"
#include "vol/connector.h"
#include "vol/find_file.h"
#include "vol/held_chunks.h"
#include "vol/ranks_dataset.h"
#include "vol/ranks_filtered.h"
#include "vol/tracked_call.h"

namespace tidelane::vol {

namespace {

constexpr int kSetAtomicity =
    27;  // H5VL_NATIVE_FILE_SET_MPI_ATOMICITY, where HDF5 was built for MPI

void* HandleOf(Instance& instance, void* file, hid_t dxpl) {
  void* handle = nullptr;
  H5VL_native_file_optional_args_t get{};
  get.get_vfd_handle.fapl_id = h5::kDefault;
  get.get_vfd_handle.file_handle = &handle;
  H5VL_optional_args_t args{H5VL_NATIVE_FILE_GET_VFD_HANDLE, &get};
  const auto native = instance.hdf5().native().file_cls.optional;
  return native(file, &args, dxpl, nullptr) >= 0 ? handle : nullptr;
}

// A file that this rank could have stored is no success while others could not.
bool TellAll(Instance& instance, h5::ParallelFile& parallel, const Status& here) {
  const Status status = parallel.Worst(here);
  if (!status.ok()) h5::PushError(instance.hdf5(), status);
  return status.ok();
}

// Chunks first: what is captured of them is then drained. Where all wait, what this gives is the same on all ranks, as of each
// of the two.
Status Before(Instance& instance, h5::ParallelFile& parallel, h5::Moment moment) {
  Status committed;
  if (h5::NeedsChunks(moment) && instance.rank_chunks != nullptr)
    committed = instance.rank_chunks->Commit(parallel);
  const Status drained = parallel.Before(moment);
  return committed.ok() ? drained : committed;
}

bool Shrinks(Instance& instance, void* dataset, const hsize_t* size) {
  const h5::OwnedId space =
      AskDataset(instance, dataset, H5VL_DATASET_GET_SPACE, instance.default_dxpl);
  hsize_t extent[H5S_MAX_RANK];
  const int rank = instance.hdf5().Sget_simple_extent_dims(space.get(), extent, nullptr);
  for (int d = 0; d < rank; ++d) {
    if (size[d] < extent[d]) return true;
  }
  return false;
}

struct OtherHandles {
  Instance& instance;
  void* const object;
  const H5I_type_t type;
  const H5O_info2_t& info;
  bool found = false;
};

// Another connector's objects are not HDF5's own.
bool HasOurConnector(h5::Library& hdf5, hid_t id) {
  const h5::OwnedId connector(hdf5, hdf5.VLget_connector_id(id));
  H5VL_class_value_t value = 0;
  return connector.valid() && hdf5.VLget_value(connector.get(), &value) >= 0 &&
         (value == kTidelaneValue || value == kAsyncValue);
}

herr_t FindOtherHandle(hid_t id, void* context) {
  auto& others = *static_cast<OtherHandles*>(context);
  h5::Library& hdf5 = others.instance.hdf5();
  H5O_info2_t info{};
  void* const object = HasOurConnector(hdf5, id) ? hdf5.VLobject(id) : nullptr;
  if (object == nullptr || object == others.object ||
      !InfoOf(others.instance, object, others.type, info) || info.fileno != others.info.fileno ||
      std::memcmp(&info.token, &others.info.token, sizeof info.token) != 0) {
    return H5_ITER_CONT;
  }
  others.found = true;
  return H5_ITER_STOP;
}

// Ranks need not have opened it equally often: they meet at the last close of each.
bool IsOpenOtherwise(Instance& instance, void* object, H5I_type_t type, const H5O_info2_t& info) {
  OtherHandles others{instance, object, type, info};
  instance.hdf5().Iiterate(type, FindOtherHandle, &others);
  return others.found;
}

// A rank that reads alone sees its own bytes.
bool LayOwnOver(Instance& instance, const h5::ParallelFile& parallel, const Reading& reading) {
  if (!instance.rank_chunks->Hold(parallel, 0)) return true;
  const uint64_t number = RankDatasetOf(instance, reading.dataset, instance.default_dxpl).number;
  return LayOver(instance, reading, instance.rank_chunks->ChunksOf(parallel, number));
}

}  // namespace

std::shared_ptr<h5::ParallelFile> internal::ParallelOf(Instance& instance, void* object,
                                                       H5I_type_t type) {
  if (object == nullptr || !h5::HasParallelFiles(instance.slot)) return nullptr;
  const h5::KeepErrorStack keep(instance.hdf5());
  unsigned long serial = 0;
  if (!SerialOf(instance, object, type, serial)) return nullptr;
  return h5::ParallelFileWithSerial(instance.slot, serial);
}

std::shared_ptr<File> CapturedFileOf(Instance& instance, void* object, H5I_type_t type) {
  if (std::shared_ptr<File> file = FileOf(instance, object, type); file != nullptr) return file;
  const std::shared_ptr<h5::ParallelFile> parallel = ParallelOf(instance, object, type);
  return parallel == nullptr ? nullptr : parallel->file();
}

void ShareFile(Instance& instance, void* file, const char* name, hid_t driver, bool writable,
               hid_t dxpl) {
  h5::Library& hdf5 = instance.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  if (!writable) {
    h5::NoteOpenedAgain(instance.slot, name);
    Count(Fallback::kMpiReadOnly);
    return NoteNative(Fallback::kMpiReadOnly, name);
  }
  const CallScope* const scope = CallScope::current();
  const bool has_settings = scope != nullptr && scope->file_settings() != nullptr;
  const bool wanted =
      (has_settings ? *scope->file_settings() : Engine::Get().config()).mode != Mode::kSync;
  Fallback reason = Fallback::kModeSync;
  void* const handle = HandleOf(instance, file, dxpl);
  if (h5::CaptureMpio(hdf5, driver, handle, name, wanted, reason) == nullptr) {
    Count(reason);
    return NoteNative(reason, name);
  }
  instance.parallel_files = true;
}

Together::Together(Instance& instance, std::shared_ptr<h5::ParallelFile> file, h5::Moment moment)
    : file_(std::move(file)) {
  if (file_ != nullptr) status_ = Before(instance, *file_, moment);
}

bool Together::MayGoOn(Instance& instance) const {
  if (!status_.ok()) h5::PushError(instance.hdf5(), status_);
  return status_.ok();
}

Together::~Together() {
  if (file_ != nullptr) file_->After();
}

std::optional<h5::Moment> MomentOf(Instance& instance, void* dataset,
                                   H5VL_dataset_specific_args_t* args) {
  if (args->op_type != H5VL_DATASET_SET_EXTENT) return std::nullopt;
  if (!Shrinks(instance, dataset, args->args.set_extent.size)) return std::nullopt;
  return h5::Moment::kShrink;
}

herr_t FlushTogether(Instance& instance, h5::ParallelFile& parallel, void* file,
                     H5VL_file_specific_args_t* args, hid_t dxpl, void** request) {
  TrackedCall call(instance, Effect::kFlush, request);
  const Status status = Before(instance, parallel, h5::Moment::kFlush);
  const herr_t result = instance.hdf5().native().file_cls.specific(file, args, dxpl, nullptr);
  parallel.After();
  const bool stored = TellAll(instance, parallel, status);
  call.Finish(result >= 0 && stored);
  return stored ? result : -1;
}

bool MayCloseTogether(Instance& instance, h5::ParallelFile& parallel) {
  const Status status = Before(instance, parallel, h5::Moment::kClose);
  parallel.After();
  if (instance.rank_chunks != nullptr) instance.rank_chunks->Forget(parallel);
  return TellAll(instance, parallel, status);
}

std::shared_ptr<h5::ParallelFile> internal::FreedByClose(Instance& instance, void* object,
                                                         H5I_type_t type) {
  if (!h5::HasParallelFiles(instance.slot)) return nullptr;
  const h5::KeepErrorStack keep(instance.hdf5());
  H5O_info2_t info{};
  if (!InfoOf(instance, object, type, info) || info.rc != 0) return nullptr;
  const auto file = h5::ParallelFileWithSerial(instance.slot, info.fileno);
  return file == nullptr || IsOpenOtherwise(instance, object, type, info) ? nullptr : file;
}

bool OperateTogether(Instance& instance, h5::ParallelFile& parallel, void* file,
                     H5VL_optional_args_t* args, hid_t dxpl, void** request, herr_t& result) {
  if (args->op_type == H5VL_NATIVE_FILE_GET_VFD_HANDLE) {
    parallel.Stop(Fallback::kHandleOut);  // what the program does with it, nobody tells
    return false;
  }
  if (args->op_type != kSetAtomicity) return false;
  // The argument begins with the flag.
  const bool atomic = *static_cast<const hbool_t*>(args->args);
  const Status status = Before(instance, parallel, h5::Moment::kAtomic);
  if (status.ok()) result = instance.hdf5().native().file_cls.optional(file, args, dxpl, request);
  parallel.After();
  if (!status.ok()) {
    h5::PushError(instance.hdf5(), status);
    result = -1;
  }
  if (result >= 0) parallel.SetAtomic(atomic);
  return true;
}

bool IsCollective(Instance& instance, hid_t dxpl) {
  if (dxpl == instance.default_dxpl) return false;
  H5FD_mpio_xfer_t mode = H5FD_MPIO_INDEPENDENT;
  return instance.hdf5().Pget(dxpl, "io_xfer_mode", &mode) >= 0 && mode == H5FD_MPIO_COLLECTIVE;
}

herr_t ReadTogether(Instance& instance, const std::shared_ptr<h5::ParallelFile>& parallel,
                    size_t count, void* datasets[], hid_t memory_types[], hid_t memory_spaces[],
                    hid_t file_spaces[], hid_t dxpl, void* buffers[], void** request) {
  const auto native = instance.hdf5().native().dataset_cls.read;
  if (!IsCollective(instance, dxpl)) {
    CallScope scope(CallScope::kReadAlone);
    const herr_t read =
        native(count, datasets, memory_types, memory_spaces, file_spaces, dxpl, buffers, request);
    for (size_t i = 0; i < count && read >= 0 && instance.rank_chunks != nullptr; ++i) {
      if (!LayOwnOver(
              instance, *parallel,
              {datasets[i], memory_types[i], memory_spaces[i], file_spaces[i], dxpl, buffers[i]})) {
        return -1;
      }
    }
    return read;
  }
  if (!Broken("ranks_chunks") && !CommitChunksOf(instance, *parallel, count, datasets)) return -1;
  const Together together(instance, parallel, h5::Moment::kRead);
  if (!together.MayGoOn(instance)) return -1;
  return native(count, datasets, memory_types, memory_spaces, file_spaces, dxpl, buffers, request);
}

}  // namespace tidelane::vol
