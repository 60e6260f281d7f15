#include "vol/external_links.h"

#include <array>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "extent/test_hooks.h"
#include "h5/error.h"
#include "h5/owned_id.h"
#include "vol/call_queue.h"
#include "vol/driver_selection.h"
#include "vol/info.h"
#include "vol/selection_io_choice.h"
#include "vol/table.h"

namespace tidelane::vol {

namespace {

// The list to follow one link with: the program's, or a copy of it.
class LinkAccess {
 public:
  LinkAccess(LibraryState& library, hid_t lapl);
  ~LinkAccess();
  LinkAccess(const LinkAccess&) = delete;
  LinkAccess& operator=(const LinkAccess&) = delete;

  hid_t get() const { return copy_.valid() ? copy_.get() : program_; }
  /// Whether another driver opens the file.
  bool native() const { return native_; }

 private:
  static herr_t AskProgram(const char* file, const char* group, const char* linked_file,
                           const char* linked_object, unsigned* flags, hid_t fapl, void* access);
  void ChooseDriver(hid_t fapl);

  LibraryState& library_;
  const hid_t program_;
  h5::OwnedId copy_;
  H5L_elink_traverse_t callback_ = nullptr;  // the program's, which may change the access list
  void* callback_data_ = nullptr;
  bool native_ = false;
};

LinkAccess::LinkAccess(LibraryState& library, hid_t lapl) : library_(library), program_(lapl) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  if (hdf5.Pget_elink_cb(lapl, &callback_, &callback_data_) < 0) callback_ = nullptr;
  const hid_t list = hdf5.Pget_elink_fapl(lapl);
  const h5::OwnedId fapl(hdf5, list == h5::kDefault ? h5::kNoId : list);  // a copy
  if (callback_ == nullptr && !fapl.valid()) return;
  copy_ = h5::OwnedId(hdf5, hdf5.Pcopy(lapl));
  if (!copy_.valid()) return;
  if (callback_ != nullptr) {  // it is asked while HDF5 follows the link
    hdf5.Pset_elink_cb(copy_.get(), AskProgram, this);
    return;
  }
  ChooseDriver(fapl.get());
  hdf5.Pset_elink_fapl(copy_.get(), fapl.get());
}

LinkAccess::~LinkAccess() {
  if (!copy_.valid()) return;
  const h5::KeepErrorStack keep(library_.hdf5());
  copy_.Reset();
}

// `fapl` is a copy that nobody else uses.
void LinkAccess::ChooseDriver(hid_t fapl) {
  h5::Library& hdf5 = library_.hdf5();
  NoteSieveSize(library_, fapl);
  const hid_t driver = hdf5.Pget_driver(fapl);
  const hid_t ours = hdf5.DriverId();
  if (driver < 0 || driver == ours) return;
  if (ours >= 0 && driver == hdf5.Sec2Id(fapl) && hdf5.Pset_driver(fapl, ours, nullptr) >= 0)
    return;
  native_ = true;
  FinishCloses(library_);
  // What is lost is told by the files' own flushes and closes: this driver sees what storage has.
  static_cast<void>(Engine::Get().DrainAll(Wait::kOpen));
}

herr_t LinkAccess::AskProgram(const char* file, const char* group, const char* linked_file,
                              const char* linked_object, unsigned* flags, hid_t fapl,
                              void* access) {
  LinkAccess& self = *static_cast<LinkAccess*>(access);
  h5::Library& hdf5 = self.library_.hdf5();
  return Guarded<herr_t>(self.library_, [&] {
    ReportSec2(self.library_, fapl);
    const herr_t answer = MutationEnabled("link_callback")
                              ? 0
                              : self.callback_(file, group, linked_file, linked_object, flags, fapl,
                                               self.callback_data_);
    const h5::KeepErrorStack keep(hdf5);
    if (answer >= 0) self.ChooseDriver(fapl);
    return answer;
  });
}

// Files that the program opens with another connector are none of our business, and so are their links.
bool IsThroughUs(LibraryState& library, hid_t group) {
  const h5::KeepErrorStack keep(library.hdf5());
  return IsOurConnector(library, {library.hdf5(), library.hdf5().VLget_connector_id(group)});
}

// Another driver has opened the file of `object`: who looks through it sees each write at once, as natively.
void WriteThrough(LibraryState& library, hid_t object) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  const ssize_t length = hdf5.Fget_name(object, nullptr, 0);
  if (length <= 0) return;
  std::string name(static_cast<size_t>(length) + 1, '\0');
  if (hdf5.Fget_name(object, name.data(), name.size()) != length) return;
  for (const std::shared_ptr<File>& file : Engine::Get().FilesAt(name.c_str())) {
    if (file->writable()) static_cast<void>(file->WriteThrough(Fallback::kDriver));
  }
}

hid_t Follow(LibraryState& library, const char* link, hid_t group, const void* value, size_t size,
             hid_t lapl, hid_t dxpl) {
  const auto native = library.own_external_links.trav_func;
  return Guarded<hid_t>(library, [&] {
    if (!IsThroughUs(library, group)) return native(link, group, value, size, lapl, dxpl);
    const LinkAccess access(library, lapl);
    const hid_t object = native(link, group, value, size, access.get(), dxpl);
    if (object >= 0 && access.native()) WriteThrough(library, object);
    return object;
  });
}

template <int Slot>
hid_t FollowOf(const char* link, hid_t group, const void* value, size_t size, hid_t lapl,
               hid_t dxpl) {
  return Follow(LibraryStateOf<Slot>(), link, group, value, size, lapl, dxpl);
}

template <size_t... Slots>
constexpr std::array<H5L_traverse_func_t, h5::kSlots> Followers(std::index_sequence<Slots...>) {
  return {FollowOf<static_cast<int>(Slots)>...};
}
constexpr auto kFollowers = Followers(std::make_index_sequence<h5::kSlots>());

}  // namespace

void ReplaceExternalLinks(LibraryState& library) {
  h5::Library& hdf5 = library.hdf5();
  H5L_class_t links{};
  if (!hdf5.FindLinkClass(H5L_TYPE_EXTERNAL, links)) return;
  if (!hdf5.Contains(reinterpret_cast<const void*>(links.trav_func))) return;  // a program's own
  library.own_external_links = links;
  links.trav_func = kFollowers[static_cast<size_t>(library.slot)];
  hdf5.Lregister(&links);  // HDF5 keeps a copy
}

void RestoreExternalLinks(LibraryState& library) {
  H5L_class_t now{};
  const bool ours = library.hdf5().FindLinkClass(H5L_TYPE_EXTERNAL, now) &&
                    now.trav_func == kFollowers[static_cast<size_t>(library.slot)];
  if (ours) library.hdf5().Lregister(&library.own_external_links);
}

}  // namespace tidelane::vol
