#include "h5/library.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/annotations.h"
#include "base/version.h"
#include "h5/driver.h"
#include "h5/error_stack.h"

namespace tidelane::h5 {

namespace internal {
constinit Library libraries[kSlots];
}

namespace {

constinit Mutex slots_mutex;

// A loaded library or the program itself, and where it begins.
struct Image {
  const void* begin = nullptr;
  const char* path = nullptr;
};

// As dladdr, which also looks for the nearest of all symbols: a fifth of what loading us took.
Image ImageOf(const void* code) {
  struct Search {
    uintptr_t address;
    Image found;
  } search{reinterpret_cast<uintptr_t>(code), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* context) {
        Search& wanted = *static_cast<Search*>(context);
        uintptr_t begin = UINTPTR_MAX;
        bool contains = false;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const uintptr_t at = info->dlpi_addr + segment.p_vaddr;
          begin = std::min(begin, at);
          contains = contains || (at <= wanted.address && wanted.address - at < segment.p_memsz);
        }
        if (contains) wanted.found = {reinterpret_cast<const void*>(begin), info->dlpi_name};
        return contains ? 1 : 0;
      },
      &search);
  return search.found;
}

// Its handle, with a reference that we keep for ever.
void* HandleOf(const Image& image) {
  if (*image.path != '\0') {
    if (void* handle = dlopen(image.path, RTLD_LAZY | RTLD_NOLOAD)) return handle;
  }
  return dlopen(nullptr, RTLD_LAZY);  // libhdf5 linked statically into the program
}

}  // namespace

bool Library::Resolve(void* handle, std::string& why) {
  struct Symbol {
    const char* name;
    void** where;
  };
  const Symbol symbols[] = {
#define X(name) {"H5" #name, reinterpret_cast<void**>(&this->name)},
      TL_H5_FUNCTIONS(X)
#undef X
  };
  for (const Symbol& symbol : symbols) {
    *symbol.where = dlsym(handle, symbol.name);
    if (*symbol.where == nullptr) {
      why = std::string("this HDF5 library has no ") + symbol.name + "; 1.14.1 or newer is needed";
      return false;
    }
  }
  handle_ = handle;
  // HDF5 also loads plugins while it looks for a way to open a file: what it could not do stays on the stack (vol/file.cc
  // looks for it).
  const KeepErrorStack keep(*this);
  hbool_t locks = false;
  thread_safe_ = is_library_threadsafe(&locks) >= 0 && locks;
  FindInternals(handle);
  int ignored = 0;  // the callback wants a non-null object and does not look at it
  const hid_t native = AcquireNativeId();
  const bool found = native >= 0 && VLintrospect_get_conn_cls(
                                        &ignored, native, H5VL_GET_CONN_LVL_TERM, &native_) >= 0;
  if (native >= 0) Idec_ref(native);
  if (!found) why = "HDF5's native connector is not available";
  return found;
}

// The functions that are not public, and the lock, which is only there in thread-safe builds. Declarations are the same in
// 1.14.6 and in 2.2; older ones have another H5Z_find. A version that we have not seen keeps what it has.
void Library::FindInternals(void* handle) {
  unsigned major = 0, minor = 0, release = 0;
  if (get_libversion(&major, &minor, &release) < 0) return;
  major_version_ = major;
  const bool known = (major == 1 && minor == 14) || (major == 2 && minor <= 2);
  if (!known) return;
  *reinterpret_cast<void**>(&register_filter_) = dlsym(handle, "H5Z_register");
  *reinterpret_cast<void**>(&find_link_class_) = dlsym(handle, "H5L_find_class");
  *reinterpret_cast<void**>(&prune_chunks_) = dlsym(handle, "H5D__chunk_prune_by_extent");
  *reinterpret_cast<void**>(&get_file_) = dlsym(handle, "H5VL_native_get_file_struct");
  *reinterpret_cast<void**>(&get_serial_) = dlsym(handle, "H5F_get_fileno");
  FindLock(handle);
  FindNoted(handle);
  if (major == 1 && release < 6) return;
  *reinterpret_cast<void**>(&find_filter_) = dlsym(handle, "H5Z_find");
}

bool Library::FindFilter(H5Z_filter_t id, H5Z_class2_t& found) {
  H5Z_class2_t* known = nullptr;
  if (find_filter_ == nullptr || find_filter_(true, id, &known) < 0 || known == nullptr)
    return false;
  found = *known;
  return true;
}

H5Z_func_t Library::FilterCode(H5Z_filter_t id) {
  const KeepErrorStack keep(*this);
  H5Z_class2_t found{};
  if (find_filter_ == nullptr || Zfilter_avail(id) <= 0 || !FindFilter(id, found)) return nullptr;
  return found.filter;
}

bool Library::FindLinkClass(H5L_type_t type, H5L_class_t& found) {
  const H5L_class_t* const known = find_link_class_ == nullptr ? nullptr : find_link_class_(type);
  if (known == nullptr || known->version != H5L_LINK_CLASS_T_VERS) return false;
  found = *known;
  return true;
}

void Library::FindLock(void* handle) {
  if (!thread_safe_) return;
  *reinterpret_cast<void**>(&try_lock_) = dlsym(handle, "H5TSmutex_acquire");
  *reinterpret_cast<void**>(&unlock_) = dlsym(handle, "H5TSmutex_release");
}

bool Library::FileSerial(void* object, H5I_type_t type, unsigned long& serial) {
  if (get_file_ == nullptr || get_serial_ == nullptr) return false;
  void* file = nullptr;
  return get_file_(object, type, &file) >= 0 && get_serial_(file, &serial) >= 0;
}

void Library::FindNoted(void* handle) {
  *reinterpret_cast<void**>(&get_wish_) = dlsym(handle, "H5CX_get_selection_io_mode");
  *reinterpret_cast<void**>(&get_cause_) = dlsym(handle, "H5CX_get_no_selection_io_cause");
  *reinterpret_cast<void**>(&set_cause_) = dlsym(handle, "H5CX_set_no_selection_io_cause");
  *reinterpret_cast<void**>(&get_mode_) = dlsym(handle, "H5CX_get_actual_selection_io_mode");
  *reinterpret_cast<void**>(&set_mode_) = dlsym(handle, "H5CX_set_actual_selection_io_mode");
}

bool Library::GetNoted(Noted& noted) {
  if (get_wish_ == nullptr || get_cause_ == nullptr || get_mode_ == nullptr) return false;
  return get_wish_(&noted.wish) >= 0 && get_cause_(&noted.cause) >= 0 &&
         get_mode_(&noted.mode) >= 0;
}

void Library::SetNoted(const Noted& noted) {
  if (set_cause_ == nullptr || set_mode_ == nullptr) return;
  set_cause_(noted.cause);
  set_mode_(noted.mode);
}

bool Library::CallInside(void (*work)(void*), void* context) {
  struct Entry {
    void (*work)(void*);
    void* context;
    bool called;
  } entry{work, context, false};
  const auto enter = [](hid_t, void* data) -> herr_t {
    Entry& asked = *static_cast<Entry*>(data);
    asked.called = true;
    asked.work(asked.context);
    return 1;  // once
  };
  static_cast<void>(Iiterate(H5I_ERROR_CLASS, enter, &entry));
  if (!entry
           .called) {  // the first time, and after the library was closed and opened again: there is none yet
    errors_ = ErrorIds{};
    if (Errors().error_class >= 0) static_cast<void>(Iiterate(H5I_ERROR_CLASS, enter, &entry));
  }
  return entry.called;
}

bool Library::TryLock() {
  bool locked = false;
  return try_lock_(1, &locked) >= 0 && locked;
}

void Library::Unlock() {
  unsigned count = 0;
  if (unlock_(&count) < 0 || count <= 1) return;
  bool locked = false;  // what the caller had before
  while (try_lock_(count - 1, &locked) >= 0 && !locked) sched_yield();
}

bool Library::Contains(const void* code) const {
  const Image image = ImageOf(code);
  return image.path != nullptr && image.begin == base_;
}

const Mpi* Library::mpi() {
  if (!looked_for_mpi_) mpi_ = Mpi::FoundIn(handle_);
  looked_for_mpi_ = true;
  return mpi_;
}

bool Library::IsMpiDriver(hid_t driver) {
  unsigned long features = 0;
  return FDdriver_query(driver, &features) >= 0 && (features & H5FD_FEAT_HAS_MPI) != 0;
}

hid_t Library::DriverId() {
  if (driver_id_ >= 0) return driver_id_;
  const H5FD_class_t* const driver_class = Driver().driver_class(slot_);
  if (driver_class != nullptr) driver_id_ = FDregister(driver_class);
  return driver_id_;
}

hid_t Library::Sec2Id(hid_t fapl) {
  if (sec2_id_ >= 0) return sec2_id_;
  // A new list of its class, not a copy: copying a list of MPI's duplicates its communicator, which takes all ranks.
  const hid_t list_class = Pget_class(fapl);
  const hid_t list = list_class < 0 ? kNoId : Pcreate(list_class);
  if (list >= 0 && Pset_fapl_sec2(list) >= 0) sec2_id_ = Pget_driver(list);
  if (list >= 0) Pclose(list);
  if (list_class >= 0) Pclose_class(list_class);
  return sec2_id_;
}

const Library::ErrorIds& Library::Errors() {
  if (errors_.error_class < 0) {
    errors_.error_class = Eregister_class("Tidelane", "tidelane", TIDELANE_VERSION);
    errors_.major = Ecreate_msg(errors_.error_class, H5E_MAJOR, "Asynchronous I/O");
    errors_.minor = Ecreate_msg(errors_.error_class, H5E_MINOR, "Storage failed");
  }
  return errors_;
}

// Where a program was linked to copies of the library's variables, the library uses those, and its own say nothing.
hid_t Library::ErrorVariable(const char* name, bool (*fits)(Library& library, hid_t id)) {
  const std::string symbol = std::string("H5E_") + name + "_g";
  for (void* const where : {handle_, static_cast<void*>(RTLD_DEFAULT)}) {
    const auto* const id = static_cast<const hid_t*>(dlsym(where, symbol.c_str()));
    if (id != nullptr && *id > 0 && fits(*this, *id)) return *id;
  }
  return kNoId;
}

bool Library::NativeErrors(const char* major, const char* minor, ErrorIds& found) {
  found.error_class = ErrorVariable("ERR_CLS", [](Library& library, hid_t id) {
    char text[8];
    return library.Eget_class_name(id, text, sizeof text) > 0 && std::strcmp(text, "HDF5") == 0;
  });
  found.major = ErrorVariable(major, [](Library& library, hid_t id) {
    H5E_type_t type = H5E_MINOR;
    return library.Eget_msg(id, &type, nullptr, 0) > 0 && type == H5E_MAJOR;
  });
  found.minor = ErrorVariable(minor, [](Library& library, hid_t id) {
    H5E_type_t type = H5E_MAJOR;
    return library.Eget_msg(id, &type, nullptr, 0) > 0 && type == H5E_MINOR;
  });
  return found.error_class >= 0 && found.major >= 0 && found.minor >= 0;
}

void Library::ForgetIds() {
  driver_id_ = sec2_id_ = kNoId;
  errors_ = ErrorIds{};
}

int SlotOf(const void* code, std::string& why) {
  const Image image = ImageOf(code);
  if (image.path == nullptr) {
    why = "the calling HDF5 library is unknown to the dynamic linker";
    return -1;
  }
  MutexLock lock(slots_mutex);
  for (int slot = 0; slot < kSlots; ++slot) {
    Library& library = internal::libraries[slot];
    if (library.base_ == image.begin) return slot;
    if (library.base_ != nullptr) continue;
    void* handle = HandleOf(image);
    if (handle == nullptr || !library.Resolve(handle, why)) {
      if (handle == nullptr) why = dlerror();
      library.ForgetIds();
      return -1;
    }
    library.slot_ = slot;
    library.base_ = image.begin;
    return slot;
  }
  why = "more than " + std::to_string(kSlots) + " HDF5 libraries in one process";
  return -1;
}

}  // namespace tidelane::h5
