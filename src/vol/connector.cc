/// \file
/// The table of callbacks: one row for each slot of H5VL_class_t, and how it runs (vol/table.h).
///
/// We stack on the native connector only, so our VOL objects are the native objects: rows that need
/// nothing of ours are HDF5's own functions, there is no wrapper object, and no wrap context.
///
/// Invariant: a class is filled once per slot, before HDF5 sees it, and constant afterwards.
#include "vol/connector.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "base/annotations.h"
#include "vol/attributes.h"
#include "vol/control.h"
#include "vol/dataset_calls.h"
#include "vol/dataset_read.h"
#include "vol/file.h"
#include "vol/info.h"
#include "vol/lifetime.h"
#include "vol/table.h"

namespace tidelane::vol {

namespace internal {
constinit LibraryState libraries[h5::kSlots] = {LibraryState(0), LibraryState(1), LibraryState(2),
                                                LibraryState(3), LibraryState(4), LibraryState(5),
                                                LibraryState(6), LibraryState(7)};
static_assert(h5::kSlots == 8, "one LibraryState per slot");
}  // namespace internal

namespace {

enum Name { kTidelane, kAsync, kNames };
constexpr const char* kNameText[kNames] = {"tidelane", "async"};
constexpr H5VL_class_value_t kValues[kNames] = {kTidelaneValue, kAsyncValue};
constexpr unsigned kConnectorVersion = 1;

constinit Mutex classes_mutex;
H5VL_class_t classes[h5::kSlots][kNames];

template <Name Which>
herr_t GetConnectorClass(LibraryState& library, void* object, H5VL_get_conn_lvl_t level,
                         const H5VL_class_t** connector) {
  if (level == H5VL_GET_CONN_LVL_CURR) {
    *connector = &classes[library.slot][Which];
    return 0;
  }
  return library.hdf5().native().introspect_cls.get_conn_cls(object, level, connector);
}

herr_t GetCapabilities(LibraryState& library, const void*, uint64_t* flags) {
  *flags = library.hdf5().native().cap_flags | H5VL_CAP_FLAG_ASYNC;
  return 0;
}

using C = H5VL_class_t;

void FillWrap(H5VL_wrap_class_t& wrap) {
  wrap.get_object = nullptr;  // nothing to wrap: HDF5 takes the object as it is
  wrap.get_wrap_ctx = nullptr;
  wrap.wrap_object = nullptr;
  wrap.unwrap_object = nullptr;
  wrap.free_wrap_ctx = nullptr;
}

template <int Slot>
void FillDataModel(Table<Slot> t) {
  using A = H5VL_attr_class_t;
  Tracked<&C::attr_cls, &A::create, Effect::kWrite, Chunks::kNone>(t);
  Checked<&C::attr_cls, &A::open>(t);
  Detour<&C::attr_cls, &A::read, AttributeRead, Effect::kNothing>(t);
  Detour<&C::attr_cls, &A::write, AttributeWrite, Effect::kWrite, Chunks::kNone>(t);
  Native<&C::attr_cls, &A::get>(t);
  Own<&C::attr_cls, &A::specific, AttributeSpecific>(t);
  Tracked<&C::attr_cls, &A::optional, Effect::kWrite, Chunks::kNone>(t);
  Tracked<&C::attr_cls, &A::close, Effect::kRelease, Chunks::kNone>(t);
  using D = H5VL_dataset_class_t;
  Own<&C::dataset_cls, &D::create, DatasetCreate>(t);
  Own<&C::dataset_cls, &D::open, DatasetOpen>(t);
  Own<&C::dataset_cls, &D::read, DatasetRead>(t);
  Own<&C::dataset_cls, &D::write, DatasetWrite>(t);
  Settled<&C::dataset_cls, &D::get>(t);
  Tracked<&C::dataset_cls, &D::specific>(t);
  Own<&C::dataset_cls, &D::optional, DatasetOptional>(t);
  Own<&C::dataset_cls, &D::close, DatasetClose>(t);
  using T = H5VL_datatype_class_t;
  Tracked<&C::datatype_cls, &T::commit, Effect::kWrite, Chunks::kNone>(t);
  Checked<&C::datatype_cls, &T::open>(t);
  Native<&C::datatype_cls, &T::get>(t);
  Tracked<&C::datatype_cls, &T::specific>(t);
  Settled<&C::datatype_cls, &T::optional>(t);
  Tracked<&C::datatype_cls, &T::close, Effect::kRelease, Chunks::kNone>(t);
  using F = H5VL_file_class_t;
  Own<&C::file_cls, &F::create, FileCreate>(t);
  Own<&C::file_cls, &F::open, FileOpen>(t);
  Own<&C::file_cls, &F::get, FileGet>(t);
  Own<&C::file_cls, &F::specific, FileSpecific>(t);
  Own<&C::file_cls, &F::optional, FileOptional>(t);
  Own<&C::file_cls, &F::close, FileClose>(t);
  using G = H5VL_group_class_t;
  Tracked<&C::group_cls, &G::create, Effect::kWrite, Chunks::kNone>(t);
  Checked<&C::group_cls, &G::open>(t);
  Checked<&C::group_cls, &G::get>(t);
  Tracked<&C::group_cls, &G::specific>(t);
  Settled<&C::group_cls, &G::optional>(t);
  Tracked<&C::group_cls, &G::close, Effect::kRelease, Chunks::kNone>(t);
  using L = H5VL_link_class_t;
  Tracked<&C::link_cls, &L::create, Effect::kWrite, Chunks::kNone>(t);
  Tracked<&C::link_cls, &L::copy>(t);
  Tracked<&C::link_cls, &L::move>(t);
  Checked<&C::link_cls, &L::get>(t);
  Tracked<&C::link_cls, &L::specific>(t);
  Settled<&C::link_cls, &L::optional>(t);
  using O = H5VL_object_class_t;
  Own<&C::object_cls, &O::open, ObjectOpen>(t);
  Tracked<&C::object_cls, &O::copy>(t);
  Settled<&C::object_cls, &O::get>(t);
  Tracked<&C::object_cls, &O::specific>(t);
  Settled<&C::object_cls, &O::optional>(t);
}

template <int Slot, Name Which>
void FillServices(Table<Slot> t) {
  using I = H5VL_info_class_t;
  t.connector.info_cls.size = sizeof(Info);
  Own<&C::info_cls, &I::copy, InfoCopy>(t);
  Own<&C::info_cls, &I::cmp, InfoCompare>(t);
  Own<&C::info_cls, &I::free, InfoFree>(t);
  Own<&C::info_cls, &I::to_str, InfoToString>(t);
  Own<&C::info_cls, &I::from_str, InfoFromString>(t);
  using N = H5VL_introspect_class_t;
  Own<&C::introspect_cls, &N::get_conn_cls, GetConnectorClass<Which>>(t);
  Own<&C::introspect_cls, &N::get_cap_flags, GetCapabilities>(t);
  Own<&C::introspect_cls, &N::opt_query, QueryOptional>(t);
  using R = H5VL_request_class_t;
  Own<&C::request_cls, &R::wait, RequestWait>(t);
  Own<&C::request_cls, &R::notify, RequestNotify>(t);
  Own<&C::request_cls, &R::cancel, RequestCancel>(t);
  Own<&C::request_cls, &R::specific, RequestSpecific>(t);
  Own<&C::request_cls, &R::optional, RequestOptional>(t);
  Own<&C::request_cls, &R::free, RequestFree>(t);
  using B = H5VL_blob_class_t;
  Native<&C::blob_cls, &B::put>(t);
  Native<&C::blob_cls, &B::get>(t);
  Native<&C::blob_cls, &B::specific>(t);
  Native<&C::blob_cls, &B::optional>(t);
  using K = H5VL_token_class_t;
  Native<&C::token_cls, &K::cmp>(t);
  Native<&C::token_cls, &K::to_str>(t);
  Native<&C::token_cls, &K::from_str>(t);
}

template <int Slot, Name Which>
void FillClass(H5VL_class_t& connector) {
  const H5VL_class_t& native = LibraryStateOf<Slot>().hdf5().native();
  connector.version = native.version;
  connector.value = kValues[Which];
  connector.conn_version = kConnectorVersion;
  connector.cap_flags = native.cap_flags | H5VL_CAP_FLAG_ASYNC;
  connector.initialize = OwnCallback<Slot, Initialize, decltype(connector.initialize)>::Call;
  connector.terminate = OwnCallback<Slot, Terminate, decltype(connector.terminate)>::Call;
  FillWrap(connector.wrap_cls);
  FillDataModel(Table<Slot>{connector});
  FillServices<Slot, Which>(Table<Slot>{connector});
  connector.optional = native.optional;
  connector.name = kNameText[Which];  // last: it marks the class as filled
}

using Filler = void (*)(H5VL_class_t&);
template <size_t... Slots>
constexpr std::array<std::array<Filler, kNames>, h5::kSlots> Fillers(
    std::index_sequence<Slots...>) {
  return {{{{FillClass<static_cast<int>(Slots), kTidelane>,
             FillClass<static_cast<int>(Slots), kAsync>}}...}};
}
constexpr auto kFillers = Fillers(std::make_index_sequence<h5::kSlots>());

}  // namespace

const H5VL_class_t* PluginInfo(const void* caller, const char* name) {
  std::string why;
  const int slot = h5::SlotOf(caller, why);
  if (slot < 0) {
    std::fprintf(stderr, "tidelane: cannot serve this program: %s\n", why.c_str());
    return nullptr;
  }
  const Name which = std::strcmp(name, kNameText[kAsync]) == 0 ? kAsync : kTidelane;
  H5VL_class_t& connector = classes[slot][which];
  MutexLock lock(classes_mutex);
  if (connector.name == nullptr) kFillers[slot][which](connector);
  return &connector;
}

}  // namespace tidelane::vol
