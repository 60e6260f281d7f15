#include "vol/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "base/not_journalled.h"
#include "base/notices.h"
#include "engine/engine.h"
#include "extent/test_hooks.h"
#include "gpu/loaded.h"
#include "h5/error.h"
#include "h5/parallel_driver.h"
#include "vol/call_queue.h"
#include "vol/chunk_capture.h"
#include "vol/commit.h"
#include "vol/control.h"
#include "vol/dataset_calls.h"
#include "vol/dataset_catalogue.h"
#include "vol/driver_selection.h"
#include "vol/find_file.h"
#include "vol/late_close.h"
#include "vol/lifetime.h"
#include "vol/property_lists.h"
#include "vol/ranks.h"
#include "vol/ranks_dataset.h"
#include "vol/ranks_publish.h"
#include "vol/selection_io_choice.h"
#include "vol/tracked_call.h"

namespace tidelane::vol {

namespace {

const H5VL_file_class_t& NativeFile(LibraryState& library) {
  return library.hdf5().native().file_cls;
}

// Settings that cannot be used: no file is opened with others than the program was to have. Tools throw error stacks
// away, so stderr has it, too.
bool RefusesFiles(LibraryState& library) {
  const Status& status = Engine::Get().config_status();
  if (status.ok()) return false;
  static constinit std::atomic_flag told;
  if (!told.test_and_set()) {
    std::fprintf(stderr, "tidelane: %s; until this is put right no file is opened\n",
                 status.Message().c_str());
  }
  h5::PushError(library.hdf5(), status);
  return true;
}

void NoteOpened(LibraryState& library, void* file) {
  if (library.open_files == nullptr) library.open_files = new std::vector<void*>;
  library.open_files->push_back(file);
}

bool IsForeign(const LibraryState& library, void* file) {
  return library.foreign_files != nullptr && std::ranges::count(*library.foreign_files, file) > 0;
}

// HDF5 opens what such a file's external links and virtual datasets lead to with the same driver, without asking us: it must
// find all of it, and no lock of ours. So nothing is left to be stored later while one is open.
void NoteForeign(LibraryState& library, void* file) {
  if (library.foreign_files == nullptr) library.foreign_files = new std::vector<void*>;
  library.foreign_files->push_back(file);
  // What is lost is told by the files' own flushes and closes: this driver sees what storage has.
  static_cast<void>(Engine::Get().DrainAll(Wait::kOpen));
}

void DrainForForeign(const LibraryState& library) {
  if (library.foreign_files == nullptr || library.foreign_files->empty()) return;
  static_cast<void>(Engine::Get().DrainAll(Wait::kClose));
}

void NoteClosed(LibraryState& library, void* file) {
  if (MutationEnabled("ranks_reopened")) ForgetDatasets(library);  // those of other handles, too
  if (library.foreign_files != nullptr) std::erase(*library.foreign_files, file);
  if (library.open_files != nullptr) std::erase(*library.open_files, file);
  if (library.chunk_capture != nullptr) library.chunk_capture->NoteFileClose();
}

// Create and open differ in one call.
template <typename NativeCall>
void* OpenWith(LibraryState& library, const char* name, const Opening& how, hid_t fapl, hid_t dxpl,
               void** request, NativeCall native) {
  Start(library);
  if (RefusesFiles(library)) return nullptr;
  gpu::Look();
  library.default_dxpl = dxpl;
  DoReadyCallWork(library, dxpl);
  const AccessList access(library, name, fapl);
  const FileSettings settings = SettingsFor(library, fapl);
  NoteSieveSize(library, fapl);
  if (library.parallel_files) h5::ParallelDriver().note_opened_again(library.slot, name);
  if (access.native() && how.writable && settings.journal_required &&
      settings.journal != Journal::kOff) {
    h5::PushError(library.hdf5(), NotJournalled(Fallback::kDriver, name));
    return nullptr;
  }
  NameForRanks shared{name, nullptr};
  if (access.mpi_driver() >= 0 && !FindNameForRanks(library, access.get(), settings, how, shared))
    return nullptr;
  TrackedCall call(library, Effect::kOpen, request);
  call.scope().SetFileSettings(&settings);
  void* file = native(access.get(), shared);
  call.Finish(file != nullptr);
  if (file == nullptr) return nullptr;
  NoteOpened(library, file);
  const std::shared_ptr<File> ours = FileOf(library, file, H5I_FILE);
  Engine::Get().refused_closes().Forget(ours);
  if (ours != nullptr) NoteSieve(library, *ours);
  if (access.native()) {
    NoteNative(Fallback::kDriver, name);
    NoteForeign(library, file);
  }
  if (access.mpi_driver() >= 0) ShareFile(library, file, shared, access, how.writable, dxpl);
  if (shared.opening == nullptr) return file;
  // The driver did not take it over, as it is not one that we know: its close would not publish the file.
  h5::PushError(library.hdf5(), Status::Failed(ENOTSUP, "publish").At(name, 0, 0));
  NoteClosed(library, file);
  static_cast<void>(NativeFile(library).close(file, dxpl, nullptr));
  return nullptr;
}

herr_t NativeFlush(LibraryState& library, void* file, hid_t dxpl) {
  H5VL_file_specific_args_t flush{};
  flush.op_type = H5VL_FILE_FLUSH;
  flush.args.flush.obj_type = H5I_FILE;
  flush.args.flush.scope = H5F_SCOPE_LOCAL;
  return NativeFile(library).specific(file, &flush, dxpl, nullptr);
}

// As a dataset's close does (read_dataset.h), also where bytes that were written may wait.
void EndReads(LibraryState& library, void* file) {
  if (const auto known = FileOf(library, file, H5I_FILE))
    known->reads().deferred_reads().AwaitAll();
}

// Other drivers' files close as natively: a flush more may be a wait for the disk (MPI-IO's is). What is known to have failed is told
// by this close, even where it is deferred: later nobody would hear of it.
bool FlushesBeforeClose(File& ours) {
  return !ours.settings().close_deferred || ours.drainer().failing();
}

// The file, if it is not published yet.
std::shared_ptr<File> HiddenOf(LibraryState& library, void* file) {
  std::shared_ptr<File> ours = FileOf(library, file, H5I_FILE);
  return ours == nullptr || ours->traits().at_its_name ? nullptr : ours;
}

// The file, if others find what it was before, should HDF5 not be able to write all of it: it is not published yet, or has commits.
std::shared_ptr<File> WithOldStateOf(LibraryState& library, void* file) {
  std::shared_ptr<File> ours = FileOf(library, file, H5I_FILE);
  const bool has =
      ours != nullptr && (!ours->traits().at_its_name || ours->writes().commits().enabled());
  return has ? ours : nullptr;
}

// Whether nothing but the identifier that is being closed keeps the file open, by whichever open of it.
bool IsLastObject(LibraryState& library, void* file, hid_t dxpl) {
  const h5::KeepErrorStack keep(library.hdf5());
  size_t count = 0;
  H5VL_file_get_args_t get{};
  get.op_type = H5VL_FILE_GET_OBJ_COUNT;
  get.args.get_obj_count.types = H5F_OBJ_ALL;
  get.args.get_obj_count.count = &count;
  return NativeFile(library).get(file, &get, dxpl, nullptr) >= 0 && count <= 1;
}

// What HDF5 has not written by then it never will: only the native close lets go of such a file.
bool IsReadOnly(LibraryState& library, void* file, hid_t dxpl) {
  const h5::KeepErrorStack keep(library.hdf5());
  unsigned flags = 0;
  H5VL_file_get_args_t get{};
  get.op_type = H5VL_FILE_GET_INTENT;
  get.args.get_intent.flags = &flags;
  return NativeFile(library).get(file, &get, dxpl, nullptr) >= 0 && (flags & H5F_ACC_RDWR) == 0;
}

// Nobody need wait for what is on its way to other files; but to one that is mounted on this: its datasets may have been opened through
// this, which they keep open until their chunks are in them.
bool MayHaveWork(LibraryState& library, void* file) {
  if (!AnyCallWork(library)) return false;
  if (library.mounts) return true;
  const CallQueue& calls = CallQueue::Of(library);
  const std::shared_ptr<File> ours = FileOf(library, file, H5I_FILE);
  return ours == nullptr || calls.troubled() || calls.Has(*ours) || HasQuery(library, *ours);
}

FailedClose* FindHalfClosed(LibraryState& library, void* file) {
  if (library.failed_closes == nullptr) return nullptr;
  for (FailedClose& entry : *library.failed_closes) {
    if (entry.object == file) return &entry;
  }
  return nullptr;
}

// Whether HDF5 has just failed with these words.
bool Says(h5::Library& hdf5, const char* words) {
  struct Search {
    const char* words;
    bool found;
  } search{words, false};
  const auto look = [](unsigned, const H5E_error2_t* error, void* data) noexcept -> herr_t {
    Search& wanted = *static_cast<Search*>(data);
    wanted.found |= error->desc != nullptr && std::strstr(error->desc, wanted.words) != nullptr;
    return 0;
  };
  hdf5.Ewalk2(h5::kDefault, H5E_WALK_UPWARD, look, &search);
  return search.found;
}

// With H5F_CLOSE_SEMI HDF5 refuses to close a file that has open objects, before it has done anything (H5Fint.c, H5F__close).
bool IsRefusedForObjects(h5::Library& hdf5) { return Says(hdf5, "objects still open"); }

// Whether what HDF5 has of a file could not be flushed before its close, which is refused then. Within a callback of one of HDF5's iterations,
// which hold metadata, nothing can be flushed (H5C.c, H5C__flush_ring), and a flush that has failed there makes later ones fail: what is iterated
// keeps the file open, and its last close comes later. What is iterated by its path may be kept open by no identifier: there the flush fails.
bool IsFlushRefused(LibraryState& library, File& ours, void* file, hid_t dxpl) {
  const bool in_callback = library.calls > 1;
  if (in_callback && !IsLastObject(library, file, dxpl)) return false;
  if (NativeFlush(library, file, dxpl) >= 0 || IsReadOnly(library, file, dxpl)) return false;
  h5::Library& hdf5 = library.hdf5();
  if (ours.drainer().failing() || !Says(hdf5, "cache has protected items")) return true;
  hdf5.Eclear2(h5::kDefault);
  return false;
}

bool IsRefusedForClose(LibraryState& library, File& ours, void* file, hid_t dxpl) {
  const CallScope scope(CallScope::kForClose);
  return IsFlushRefused(library, ours, file, dxpl);
}

// Under the caller's scope.
herr_t NativeClose(LibraryState& library, void* file, hid_t dxpl) {
  const bool foreign = IsForeign(library, file);
  NoteClosed(library, file);
  const herr_t result = NativeFile(library).close(file, dxpl, nullptr);
  if (result >= 0) return result;
  if (IsRefusedForObjects(library.hdf5())) {
    NoteOpened(library, file);
    if (foreign) NoteForeign(library, file);
    return result;
  }
  if (library.failed_closes == nullptr) library.failed_closes = new std::vector<FailedClose>;
  library.failed_closes->push_back({file, CallScope::current()->TakeKept()});
  return result;
}

void ForgetHalfClosed(LibraryState& library, void* file) {
  if (library.failed_closes == nullptr) return;
  std::erase_if(*library.failed_closes,
                [file](const FailedClose& entry) { return entry.object == file; });
}

// The native connector would now release the rest and report success: it knows nothing of the bytes.
herr_t CloseOtherHalf(LibraryState& library, FailedClose& entry, hid_t dxpl) {
  if (const std::shared_ptr<File> kept = entry.file; kept != nullptr) {
    const Status status = kept->closing().WaitClosed(Wait::kClose);
    if (kept->drainer().drained()) entry.file = nullptr;  // nothing is left to try
    if (!status.ok()) {
      h5::PushError(library.hdf5(), status);
      return -1;
    }
  }
  void* const object = entry.object;
  ForgetHalfClosed(library, object);
  const CallScope scope(CallScope::kNone);
  return NativeClose(library, object, dxpl);
}

// The library closes what the program left open, and asks again and again for what fails, without ever coming to
// terminate. Nobody will try again: the engine keeps what cannot be stored until then, and tells of it.
herr_t CloseAtEnd(LibraryState& library, void* file, hid_t dxpl) {
  const h5::KeepErrorStack keep(library.hdf5());
  const CallScope scope(CallScope::kNone);
  // Other ranks may be in H5Fclose, and wait for what this rank says there. Where storage still refuses a rank's bytes it would refuse HDF5's
  // metadata, too, on one rank or another, each of which would leave HDF5's close at another place, and wait for the others in MPI for ever.
  const auto parallel = ParallelOf(library, file, H5I_FILE);
  if (parallel != nullptr && parallel->running() && !MayCloseTogether(library, *parallel) &&
      !MutationEnabled("ranks_end")) {
    NoteClosed(library, file);
    ForgetHalfClosed(library, file);
    return 0;
  }
  NoteClosed(library, file);
  const bool failed_closes = FindHalfClosed(library, file) != nullptr;
  // Whatever fails in it, the native close goes on to the driver's.
  const auto ours = failed_closes ? nullptr : WithOldStateOf(library, file);
  if (ours != nullptr && IsRefusedForClose(library, *ours, file, dxpl))
    ours->closing().SetRefused(true);
  if (NativeFile(library).close(file, dxpl, nullptr) < 0 && !failed_closes) {
    // The other half; or all of it, where the flush before the close of one of several opens has failed: HDF5 would come to
    // such a file again after it has ended us.
    const RetainFailedWrites refused;
    const CallScope late(CallScope::kFlushMayReturnEarly | CallScope::kCloseMayBeDeferred);
    if (NativeFile(library).close(file, dxpl, nullptr) < 0 && ours != nullptr)
      ours->closing().SetRefused(true);  // it may be left open
  }
  ForgetHalfClosed(library, file);
  return 0;
}

// When the native connector cannot open a file, HDF5 asks every connector in the plugin path
// whether it can. We cannot do better: a program that did not ask for Tidelane gets its native
// error, and where the file could be opened by now, its native file. A probe is known by that error on the stack; a
// program's own question begins with an empty one. So nothing that happens before it, from loading the plugin on, may clear
// the stack.
bool IsProbe(LibraryState& library) { return library.hdf5().Eget_num(h5::kDefault) > 0; }

// The driver must drain and switch to ordered writing before H5Fstart_swmr_write: flushes, the
// unlock and the superblock happen inside it. It does so when it is asked for its handle under this
// scope.
void PrepareSwmr(LibraryState& library, void* file, hid_t dxpl) {
  library.sieves_reads = true;  // it will not be locked any more
  const CallScope scope(CallScope::kStartSwmr);
  void* handle = nullptr;
  H5VL_native_file_optional_args_t get{};
  get.get_vfd_handle.fapl_id = h5::kDefault;
  get.get_vfd_handle.file_handle = &handle;
  H5VL_optional_args_t args{H5VL_NATIVE_FILE_GET_VFD_HANDLE, &get};
  // A driver without a handle is not ours; whether it can do SWMR is for HDF5 to say.
  static_cast<void>(NativeFile(library).optional(file, &args, dxpl, nullptr));
}

// Not where it must be journalled: its readers follow the file itself.
bool MayStartSwmr(LibraryState& library, void* file) {
  const std::shared_ptr<File> ours = FileOf(library, file, H5I_FILE);
  if (ours == nullptr || !ours->writes().commits().enabled() || !ours->settings().journal_required)
    return true;
  Count(Fallback::kJournalSwmr);
  h5::PushError(library.hdf5(), NotJournalled(Fallback::kJournalSwmr, ours->path()));
  return false;
}

// When HDF5 has begun it: what it writes before is not for readers, and it may refuse.
herr_t PublishForReaders(LibraryState& library, void* file) {
  const std::shared_ptr<File> hidden = HiddenOf(library, file);
  if (hidden == nullptr) return 0;
  const Status status = hidden->closing().PublishNow();
  if (!status.ok()) h5::PushError(library.hdf5(), status);
  return status.ok() ? 0 : -1;
}

// Of a file that no work is left for; or, where that has failed half way, the rest of it.
herr_t CloseNow(LibraryState& library, void* file, hid_t dxpl, void** request) {
  if (FailedClose* entry = FindHalfClosed(library, file); entry != nullptr)
    return CloseOtherHalf(library, *entry, dxpl);
  if (const auto parallel = ParallelOf(library, file, H5I_FILE); parallel != nullptr) {
    if (!MayCloseTogether(library, *parallel)) return -1;
    TrackedCall call(library, Effect::kClose, request);
    const herr_t result = NativeClose(library, file, dxpl);
    call.Finish(result >= 0);
    return result;
  }
  const std::shared_ptr<File> ours = request == nullptr ? FileOf(library, file, H5I_FILE) : nullptr;
  if (ours != nullptr && FlushesBeforeClose(*ours)) {
    if (IsRefusedForClose(library, *ours, file, dxpl)) {  // and so it stays open
      if (IsLastObject(library, file, dxpl)) Engine::Get().refused_closes().Add(ours, library.slot);
      ours->closing().SetRefused(true);
      return -1;
    }
    ours->closing().SetRefused(false);
    const CallScope scope(CallScope::kNone);
    return NativeClose(library, file, dxpl);
  }
  TrackedCall call(library, Effect::kClose, request);
  // The native close goes on whatever fails in it, and what HDF5 could not write is not to get the file's name, nor to be a commit.
  if (const auto kept = WithOldStateOf(library, file); kept != nullptr) {
    const bool refused = IsFlushRefused(library, *kept, file, dxpl);
    kept->closing().SetRefused(refused);
    if (refused) {
      call.Finish(false);
      return -1;
    }
  }
  const herr_t result = NativeClose(library, file, dxpl);
  call.Finish(result >= 0);
  DrainForForeign(library);
  return result;
}

constexpr HowToClose kLater{[](LibraryState& library, void* file, hid_t dxpl) {
                              return CloseNow(library, file, dxpl, nullptr);
                            },
                            CloseAtEnd};

}  // namespace

void* FileCreate(LibraryState& library, const char* name, unsigned flags, hid_t fcpl, hid_t fapl,
                 hid_t dxpl, void** request) {
  if ((flags & H5F_ACC_TRUNC) != 0) Engine::Get().refused_closes().DropAt(name, library.slot);
  const Opening how{.writable = true, .creates = true, .only_new = (flags & H5F_ACC_EXCL) != 0};
  return OpenWith(
      library, name, how, fapl, dxpl, request, [&](hid_t access, const NameForRanks& shared) {
        // One that is hidden is there already.
        const unsigned hidden = (flags & ~H5F_ACC_EXCL) | H5F_ACC_TRUNC;
        return NativeFile(library).create(shared.path(), shared.opening == nullptr ? flags : hidden,
                                          fcpl, access, dxpl, nullptr);
      });
}

void* FileOpen(LibraryState& library, const char* name, unsigned flags, hid_t fapl, hid_t dxpl,
               void** request) {
  const Opening how{.writable = (flags & H5F_ACC_RDWR) != 0};
  return OpenWith(library, name, how, fapl, dxpl, request,
                  [&](hid_t access, const NameForRanks& shared) {
                    return NativeFile(library).open(shared.path(), flags, access, dxpl, nullptr);
                  });
}

herr_t FileGet(LibraryState& library, void* file, H5VL_file_get_args_t* args, hid_t dxpl,
               void** request) {
  const herr_t result = NativeFile(library).get(file, args, dxpl, request);
  if (result >= 0 && args->op_type == H5VL_FILE_GET_FAPL) {
    ReportSec2(library, args->args.get_fapl.fapl_id);
  }
  if (result >= 0) CorrectName(library, file, *args);
  return result;
}

herr_t FileSpecific(LibraryState& library, void* file, H5VL_file_specific_args_t* args, hid_t dxpl,
                    void** request) {
  if (args->op_type == H5VL_FILE_IS_ACCESSIBLE && IsProbe(library)) {
    *args->args.is_accessible.accessible = false;
    return 0;
  }
  const bool has_file =
      args->op_type != H5VL_FILE_IS_ACCESSIBLE && args->op_type != H5VL_FILE_DELETE;
  if (!DoCallWork(library, has_file ? file : nullptr, H5I_FILE, dxpl)) return -1;
  const auto native = NativeFile(library).specific;
  const ChunkMapInvalidation changing(library);
  H5VL_file_specific_args_t ours = *args;
  std::optional<AccessList> access;
  std::string hidden;              // what MPI's driver is to be asked about
  std::optional<CallScope> scope;  // so that the engine knows what one call opens and closes
  switch (args->op_type) {
    case H5VL_FILE_FLUSH: {
      if (const auto parallel = ParallelOf(library, file, args->args.flush.obj_type);
          parallel != nullptr)
        return FlushTogether(library, *parallel, file, args, dxpl, request);
      TrackedCall call(library, Effect::kFlush, request);
      const bool done =
          native(file, args, dxpl, nullptr) >= 0 &&
          CommitFlushed(library, call.scope(), file, args->args.flush.obj_type, dxpl) >= 0;
      call.Finish(done);
      return done ? 0 : -1;
    }
    case H5VL_FILE_IS_ACCESSIBLE:
      WatchClose(library);
      if (RefusesFiles(library)) return -1;
      scope.emplace(
          CallScope::kFlushMayBeSkipped);  // it is opened like any, and for this call alone
      access.emplace(library, args->args.is_accessible.filename, args->args.is_accessible.fapl_id);
      ours.args.is_accessible.fapl_id = access->get();
      if (access->mpi_driver() >= 0) hidden = HiddenPathOf(args->args.is_accessible.filename);
      if (!hidden.empty()) ours.args.is_accessible.filename = hidden.c_str();
      break;
    case H5VL_FILE_DELETE:
      WatchClose(library);
      if (RefusesFiles(library)) return -1;
      scope.emplace(
          CallScope::kFlushMayBeSkipped);  // it is opened like any, and for this call alone
      access.emplace(library, args->args.del.filename, args->args.del.fapl_id);
      ours.args.del.fapl_id = access->get();
      if (access->mpi_driver() >= 0) hidden = HiddenPathOf(args->args.del.filename);
      if (hidden.empty()) break;
      ours.args.del.filename = hidden.c_str();
      if (native(file, &ours, dxpl, request) < 0) return -1;
      NoteHiddenDeleted(args->args.del.filename);
      return 0;
    case H5VL_FILE_REOPEN: {
      const herr_t result = native(file, args, dxpl, request);
      if (result >= 0) {
        NoteOpened(library, *args->args.reopen.file);
        if (IsForeign(library, file)) NoteForeign(library, *args->args.reopen.file);
      }
      return result;
    }
    case H5VL_FILE_IS_EQUAL: break;
  }
  return native(file, &ours, dxpl, request);
}

herr_t FileOptional(LibraryState& library, void* file, H5VL_optional_args_t* args, hid_t dxpl,
                    void** request) {
  if (IsOurs(library, H5I_FILE, args->op_type))
    return Operate(library, file, H5I_FILE, *args, dxpl, request);
  if (!DoCallWork(library, file, H5I_FILE, dxpl)) return -1;
  const auto native = NativeFile(library).optional;
  const ChunkMapInvalidation changing(library);
  if (const auto parallel = ParallelOf(library, file, H5I_FILE); parallel != nullptr) {
    herr_t result = 0;
    if (OperateTogether(library, *parallel, file, args, dxpl, request, result)) return result;
  }
  if (args->op_type == H5VL_NATIVE_FILE_GET_VFD_HANDLE) {
    const CallScope scope(CallScope::kHandOutDescriptor);
    return native(file, args, dxpl, request);
  }
  if (args->op_type == H5VL_NATIVE_FILE_START_SWMR_WRITE) {
    if (!MayStartSwmr(library, file)) return -1;
    PrepareSwmr(library, file, dxpl);
    ForgetDatasets(library);  // HDF5 refreshes all that are open
  }
  if (request == nullptr) {
    const herr_t result = native(file, args, dxpl, nullptr);
    return result >= 0 && args->op_type == H5VL_NATIVE_FILE_START_SWMR_WRITE
               ? PublishForReaders(library, file)
               : result;
  }
  TrackedCall call(library, Effect::kWrite, request);
  const herr_t result = native(file, args, dxpl, nullptr);
  call.Finish(result >= 0);
  return result;
}

herr_t FileClose(LibraryState& library, void* file, hid_t dxpl, void** request) {
  if (library.closing) return CloseAtEnd(library, file, dxpl);
  if (FindHalfClosed(library, file) != nullptr) return CloseNow(library, file, dxpl, request);
  if (request == nullptr) {
    EndReads(library, file);
    if (MayCloseLate(library, file, dxpl) && IsLastObject(library, file, dxpl) &&
        CloseLate(library, file, kLater))
      return 0;
  }
  if (MayHaveWork(library, file) && !DoCallWork(library, file, H5I_FILE, dxpl)) return -1;
  return CloseNow(library, file, dxpl, request);
}

}  // namespace tidelane::vol
