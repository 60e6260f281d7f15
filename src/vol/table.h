/// \file
/// The machinery behind the table of callbacks (connector.cc): each row is one line.
///
/// A row names a slot of H5VL_class_t by two member pointers and says how it runs:
///   Native  - HDF5's own native callback, as it is. Our objects are the native objects, so nothing
///   is in between.
///   Checked - the same, but not in a file that is half closed (FailedClose), as all below, closes excepted.
///   Settled - the same, after chunks that are on their way (vol/call_queue.h).
///   Tracked - the native callback inside a TrackedCall: what the driver may do, and a request
///   when one is asked for; one that changes a file fails before it does anything if an earlier
///   background write to that file failed (vol/find_file.h). Settles, unless the row says that it need not.
///   Detour  - a function of ours, which is given the rest of the way: what the callback would do as Tracked, or as Native.
///   Own     - a function of ours; it gets the LibraryState (which libhdf5) before the callback's own arguments.
/// Signatures are deduced from the slot; a row with a wrong one does not compile.
///
/// Thread safety: tables are filled under PluginInfo's lock and constant afterwards.
#pragma once

#include <new>
#include <optional>
#include <tuple>
#include <type_traits>

#include "h5/error.h"
#include "h5/hdf5.h"
#include "vol/chunk_capture.h"
#include "vol/dataset_calls.h"
#include "vol/dataset_catalogue.h"
#include "vol/find_file.h"
#include "vol/library_state.h"
#include "vol/ranks.h"
#include "vol/ranks_filtered.h"
#include "vol/sieve_store.h"
#include "vol/tracked_call.h"

namespace tidelane::vol {

template <int Slot>
struct Table {
  H5VL_class_t& connector;
};

// What a callback leaves pending follows from its arguments where one callback does many things.
template <typename T>
Effect EffectOf(const T&) {
  return Effect::kWrite;
}
inline Effect EffectOf(H5VL_dataset_specific_args_t* args) {
  return args->op_type == H5VL_DATASET_FLUSH ? Effect::kFlush : Effect::kWrite;
}
inline Effect EffectOf(H5VL_datatype_specific_args_t* args) {
  return args->op_type == H5VL_DATATYPE_FLUSH ? Effect::kFlush : Effect::kWrite;
}
inline Effect EffectOf(H5VL_group_specific_args_t* args) {
  return args->op_type == H5VL_GROUP_FLUSH ? Effect::kFlush : Effect::kWrite;
}
inline Effect EffectOf(H5VL_object_specific_args_t* args) {
  switch (args->op_type) {
    case H5VL_OBJECT_FLUSH: return Effect::kFlush;
    case H5VL_OBJECT_EXISTS:
    case H5VL_OBJECT_LOOKUP:
    case H5VL_OBJECT_VISIT: return Effect::kNothing;
    case H5VL_OBJECT_CHANGE_REF_COUNT:
    case H5VL_OBJECT_REFRESH: break;
  }
  return Effect::kWrite;
}
inline Effect EffectOf(H5VL_link_specific_args_t* args) {
  return args->op_type == H5VL_LINK_DELETE ? Effect::kWrite : Effect::kNothing;
}

/// What a call has to do with work that waits for it (vol/call_queue.h): chunks on their way.
enum class Chunks {
  kNone,  ///< it can neither see them nor depend on them
  kSeen,  ///< it could: they are inserted first
};

// Callbacks that do many things, some of which nobody need wait for.
template <typename T>
Chunks ChunksOf(const T&, Chunks usual) {
  return usual;
}
inline Chunks ChunksOf(H5VL_dataset_get_args_t* args, Chunks usual) {
  switch (args->op_type) {
    case H5VL_DATASET_GET_DAPL:
    case H5VL_DATASET_GET_DCPL:
    case H5VL_DATASET_GET_SPACE:
    case H5VL_DATASET_GET_TYPE: return Chunks::kNone;
    case H5VL_DATASET_GET_SPACE_STATUS:
    case H5VL_DATASET_GET_STORAGE_SIZE: break;
  }
  return usual;
}
inline Chunks ChunksOf(H5VL_object_get_args_t* args, Chunks usual) {
  constexpr unsigned kHarmless = H5O_INFO_BASIC | H5O_INFO_TIME | H5O_INFO_NUM_ATTRS;
  if (args->op_type != H5VL_OBJECT_GET_INFO) return Chunks::kNone;
  return (args->args.get_info.fields & ~kHarmless) == 0 ? Chunks::kNone : usual;
}
inline Chunks ChunksOf(H5VL_object_specific_args_t* args, Chunks usual) {
  const bool looks = args->op_type == H5VL_OBJECT_EXISTS || args->op_type == H5VL_OBJECT_LOOKUP;
  return looks ? Chunks::kNone : usual;
}
inline Chunks ChunksOf(H5VL_link_specific_args_t* args, Chunks usual) {
  return args->op_type == H5VL_LINK_EXISTS ? Chunks::kNone : usual;
}

// Calls that leave chunks on their way at their places: appending is not to wait for what was appended before.
template <typename T>
bool KeepsChunks(LibraryState&, void*, const T&) {
  return false;
}
inline bool KeepsChunks(LibraryState& library, void* dataset, H5VL_dataset_specific_args_t* args) {
  return args->op_type == H5VL_DATASET_SET_EXTENT && library.chunk_capture != nullptr &&
         library.chunk_capture->OnlyAppends(dataset, args->args.set_extent.size);
}

// Calls after which a dataset lives at another address, though nobody closed it.
template <typename T>
bool IsRefresh(const T&) {
  return false;
}
inline bool IsRefresh(H5VL_dataset_specific_args_t* args) {
  return args->op_type == H5VL_DATASET_REFRESH;
}
inline bool IsRefresh(H5VL_object_specific_args_t* args) {
  return args->op_type == H5VL_OBJECT_REFRESH;
}

template <typename T>
bool IsMount(const T&) {
  return false;
}
inline bool IsMount(H5VL_group_specific_args_t* args) { return args->op_type == H5VL_GROUP_MOUNT; }

inline bool Succeeded(herr_t result) { return result >= 0; }
inline bool Succeeded(const void* result) { return result != nullptr; }

template <typename Result>
Result Failure() {
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return -1;
  }
}

// The kind of object that a callback of a group is called with, unless its location says otherwise.
inline constexpr H5I_type_t KindOf(H5VL_attr_class_t H5VL_class_t::*) { return H5I_ATTR; }
inline constexpr H5I_type_t KindOf(H5VL_dataset_class_t H5VL_class_t::*) { return H5I_DATASET; }
inline constexpr H5I_type_t KindOf(H5VL_datatype_class_t H5VL_class_t::*) { return H5I_DATATYPE; }
inline constexpr H5I_type_t KindOf(H5VL_group_class_t H5VL_class_t::*) { return H5I_GROUP; }
template <typename Group>
inline constexpr H5I_type_t KindOf(Group H5VL_class_t::*) {
  return H5I_BADID;  // links and objects: they always come with a location
}

// Finds the object that a call is about to change among its arguments: the last one with a location
// (of a copy: where it goes), else the last one.
struct Target {
  void* first = nullptr;  // where a copy comes from, or the file that is mounted
  H5I_type_t first_type = H5I_BADID;
  void* last = nullptr;
  void* located = nullptr;
  const H5VL_loc_params_t* location = nullptr;  // of that one, if it came with one
  H5I_type_t type = H5I_BADID;

  template <typename T>
  void See(const T&) {}
  void See(void* object) {
    if (first == nullptr) first = object;
    last = object;
  }
  // A new link beside the object it leads to may come without a place of its own.
  void See(H5VL_link_create_args_t* args) {
    if (args->op_type != H5VL_LINK_CREATE_HARD) return;
    located = args->args.hard.curr_obj;
    type = args->args.hard.curr_loc_params.obj_type;
  }
  void See(H5VL_group_specific_args_t* args) {
    if (args->op_type != H5VL_GROUP_MOUNT) return;
    first = args->args.mount.child_file;
    first_type = H5I_FILE;
  }
  void See(const H5VL_loc_params_t* where) {
    if (last == nullptr) return;
    if (first_type == H5I_BADID) first_type = where->obj_type;
    located = last;
    type = where->obj_type;
    location = where;
  }
};

template <typename... Args>
Target TargetOf(H5I_type_t kind, Args... args) {
  Target target;
  (target.See(args), ...);
  if (target.located == nullptr) {
    target.located = target.last;
    target.type = kind;
  }
  return target;
}

// What other ranks must have stored before a call on a file that they have open, too.
class RanksAround {
 public:
  template <typename... Args>
  RanksAround(LibraryState& library, bool copies, H5I_type_t kind, Args... args) {
    if (!library.parallel_files) return;
    const Target target = TargetOf(kind, args...);
    std::optional<h5::SyncPoint> moment;
    if (copies) moment = h5::SyncPoint::kCopy;
    ((moment = moment.has_value() ? moment : MomentOf(library, target.last, args)), ...);
    if (!moment.has_value()) return;
    const auto file = ParallelOf(library, target.located, target.type);
    if (*moment == h5::SyncPoint::kTake && (file == nullptr || !file->deleted_group)) return;
    if (*moment == h5::SyncPoint::kFree && file != nullptr && target.location != nullptr)
      NoteDeleted(library, *file, target.located, *target.location, (IsAboutLink(args) || ...));
    const bool mounts = *moment == h5::SyncPoint::kMount;
    const auto from =
        copies || mounts ? ParallelOf(library, target.first, target.first_type) : nullptr;
    if (from != file && from != nullptr) from_.emplace(library, from, *moment);
    if (file != nullptr) file_.emplace(library, file, *moment);
    if (mounts) StopMounted(from.get(), file.get());
  }

  bool MayGoOn(LibraryState& library) const {
    return (!from_.has_value() || from_->MayGoOn(library)) &&
           (!file_.has_value() || file_->MayGoOn(library));
  }

 private:
  std::optional<CollectiveGuard> from_;
  std::optional<CollectiveGuard> file_;
};

template <typename... Args>
bool MayChangeTarget(LibraryState& library, H5I_type_t kind, Args... args) {
  if (!FailureState::AnyUnreported()) return true;
  const Target target = TargetOf(kind, args...);
  return RetryAndReport(library, target.located, target.type);
}

// Whether the call may go on. Its transfer list comes before the request.
template <typename... Args>
bool SettleTarget(LibraryState& library, H5I_type_t kind, Chunks usual, Args... args) {
  if (!AnyCallWork(library)) return true;
  const hid_t dxpl = std::get<sizeof...(Args) - 2>(std::tie(args...));
  Chunks chunks = usual;
  ((chunks = ChunksOf(args, chunks)), ...);
  const Target target = TargetOf(kind, args...);
  if (chunks == Chunks::kNone || (KeepsChunks(library, target.located, args) || ...)) {
    DoReadyCallWork(library, dxpl);
    return true;
  }
  return DoCallWork(library, target.located, target.type, dxpl);
}

// What native HDF5 would look up in a file that is half closed (netCDF asks for the names of what is left open) is not there any more.
template <typename... Args>
bool NamesHalfClosed(LibraryState& library, Args... args) {
  if (library.failed_closes == nullptr) return false;
  const Target target = TargetOf(H5I_BADID, args...);
  if (!IsHalfClosed(library, target.first) && !IsHalfClosed(library, target.last) &&
      !IsHalfClosed(library, target.located))
    return false;
  h5::PushError(library.hdf5(), "the file's close has failed: it can only be closed once more");
  return true;
}

// HDF5 is C: no exception may get there. Ours can only be that memory is short.
template <typename Result, typename Work>
Result Guarded(LibraryState& library, Work work) {
  struct Call {
    int& calls;
    explicit Call(int& counted) : calls(counted) { ++calls; }
    ~Call() { --calls; }
  } const call(library.calls);
  try {
    return work();
  } catch (const std::bad_alloc&) {
    h5::PushError(library.hdf5(), "no memory");
    return Failure<Result>();
  }
}

template <int Slot, auto Group, auto Member, typename Signature>
struct CheckedCallback;
template <int Slot, auto Group, auto Member, typename Result, typename... Args>
struct CheckedCallback<Slot, Group, Member, Result (*)(Args...)> {
  static Result Call(Args... args) {
    LibraryState& library = LibraryStateOf<Slot>();
    if (NamesHalfClosed(library, args...)) return Failure<Result>();
    return (library.hdf5().native().*Group.*Member)(args...);
  }
};

// What HDF5 has answered, and what it would have if chunks that ranks hold were in the file.
template <typename... Args>
herr_t WithHeld(LibraryState&, herr_t result, Args...) {
  return result;
}
inline herr_t WithHeld(LibraryState& library, herr_t result, void* dataset,
                       H5VL_dataset_get_args_t* args, hid_t dxpl, void**) {
  if (library.rank_chunks == nullptr) return result;
  const auto file = ParallelOf(library, dataset, H5I_DATASET);
  return file == nullptr ? result : CountHeld(library, *file, result, dataset, args, dxpl);
}

template <int Slot, auto Group, auto Member, typename Signature>
struct SettledCallback;
template <int Slot, auto Group, auto Member, typename Result, typename... Args>
struct SettledCallback<Slot, Group, Member, Result (*)(Args...)> {
  static Result Call(Args... args) {
    LibraryState& library = LibraryStateOf<Slot>();
    return Guarded<Result>(library, [&] {
      if (NamesHalfClosed(library, args...) ||
          !SettleTarget(library, KindOf(Group), Chunks::kSeen, args...))
        return Failure<Result>();
      return WithHeld(library, (library.hdf5().native().*Group.*Member)(args...), args...);
    });
  }
};

template <int Slot, auto Group, auto Member, Effect Usual, Chunks Seen, typename Signature>
struct TrackedCallback;
template <int Slot, auto Group, auto Member, Effect Usual, Chunks Seen, typename Result,
          typename... Args>
struct TrackedCallback<Slot, Group, Member, Usual, Seen, Result (*)(Args...)> {
  static Result Call(Args... args) {
    LibraryState& library = LibraryStateOf<Slot>();
    return Guarded<Result>(library, [&] { return Run(library, args...); });
  }
  static Result Run(LibraryState& library, Args... args) {
    if (NamesHalfClosed(library, args...) || !SettleTarget(library, KindOf(Group), Seen, args...))
      return Failure<Result>();
    if ((IsRefresh(args) || ...)) ForgetDatasets(library);
    if ((IsMount(args) || ...)) library.mounts = true;
    void** request = std::get<sizeof...(Args) - 1>(std::tie(args...));
    // The argument that says most decides; without one, the row does.
    Effect effect = Usual;
    ((effect = EffectOf(args) == Effect::kWrite ? effect : EffectOf(args)), ...);
    const auto native = library.hdf5().native().*Group.*Member;
    constexpr bool kCopies = std::is_same_v<decltype(Member), decltype(&H5VL_object_class_t::copy)>;
    if constexpr (kCopies) StoreSieves(library, std::get<sizeof...(Args) - 2>(std::tie(args...)));
    const RanksAround ranks(library, kCopies, KindOf(Group), args...);
    if (!ranks.MayGoOn(library)) return Failure<Result>();
    std::optional<ChunkMapInvalidation> changing;
    if (MayMoveChunks(effect)) changing.emplace(library);
    if (RunsPlain(effect, request)) {
      if (effect == Effect::kWrite && !MayChangeTarget(library, KindOf(Group), args...)) {
        return Failure<Result>();
      }
      return native(args...);
    }
    TrackedCall call(library, effect, request);
    const Result result = native(args...);
    call.Finish(Succeeded(result));
    return result;
  }
};

template <int Slot, auto Group, auto Member, typename Signature>
struct NativeCallback;
template <int Slot, auto Group, auto Member, typename Result, typename... Args>
struct NativeCallback<Slot, Group, Member, Result (*)(Args...)> {
  static Result Run(LibraryState& library, Args... args) {
    return (library.hdf5().native().*Group.*Member)(args...);
  }
};

template <int Slot, auto Function, auto Rest, typename Signature>
struct DetourCallback;
template <int Slot, auto Function, auto Rest, typename Result, typename... Args>
struct DetourCallback<Slot, Function, Rest, Result (*)(Args...)> {
  static Result Call(Args... args) {
    LibraryState& library = LibraryStateOf<Slot>();
    return Guarded<Result>(library, [&] { return Function(library, Rest, args...); });
  }
};

template <int Slot, auto Function, typename Signature>
struct OwnCallback;
template <int Slot, auto Function, typename Result, typename... Args>
struct OwnCallback<Slot, Function, Result (*)(Args...)> {
  static Result Call(Args... args) {
    LibraryState& library = LibraryStateOf<Slot>();
    constexpr bool kCloses = std::is_same_v<decltype(Function), decltype(&DatasetClose)>;
    return Guarded<Result>(library, [&] {
      if (!kCloses && NamesHalfClosed(library, args...)) return Failure<Result>();
      return Function(library, args...);
    });
  }
};

template <auto Group, auto Member, int Slot>
auto& SlotIn(Table<Slot> table) {
  return table.connector.*Group.*Member;
}

template <auto Group, auto Member, int Slot>
void Native(Table<Slot> table) {
  SlotIn<Group, Member>(table) = LibraryStateOf<Slot>().hdf5().native().*Group.*Member;
}

template <auto Group, auto Member, int Slot>
void Checked(Table<Slot> table) {
  auto& callback = SlotIn<Group, Member>(table);
  callback =
      CheckedCallback<Slot, Group, Member, std::remove_reference_t<decltype(callback)>>::Call;
}

template <auto Group, auto Member, int Slot>
void Settled(Table<Slot> table) {
  auto& callback = SlotIn<Group, Member>(table);
  callback =
      SettledCallback<Slot, Group, Member, std::remove_reference_t<decltype(callback)>>::Call;
}

template <auto Group, auto Member, Effect Usual = Effect::kWrite, Chunks Seen = Chunks::kSeen,
          int Slot>
void Tracked(Table<Slot> table) {
  auto& callback = SlotIn<Group, Member>(table);
  callback = TrackedCallback<Slot, Group, Member, Usual, Seen,
                             std::remove_reference_t<decltype(callback)>>::Call;
}

template <auto Group, auto Member, auto Function, Effect Usual = Effect::kWrite,
          Chunks Seen = Chunks::kSeen, int Slot>
void Detour(Table<Slot> table) {
  auto& callback = SlotIn<Group, Member>(table);
  using Signature = std::remove_reference_t<decltype(callback)>;
  constexpr auto kRest = [] {
    if constexpr (Usual == Effect::kNothing) {
      return NativeCallback<Slot, Group, Member, Signature>::Run;
    } else {
      return TrackedCallback<Slot, Group, Member, Usual, Seen, Signature>::Run;
    }
  }();
  callback = DetourCallback<Slot, Function, kRest, Signature>::Call;
}

template <auto Group, auto Member, auto Function, int Slot>
void Own(Table<Slot> table) {
  auto& callback = SlotIn<Group, Member>(table);
  callback = OwnCallback<Slot, Function, std::remove_reference_t<decltype(callback)>>::Call;
}

}  // namespace tidelane::vol
