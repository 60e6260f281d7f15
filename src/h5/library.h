/// \file
/// The libhdf5 copies of this process: the functions of each (h5/functions.h), and which of its ids we keep.
///
/// One plugin image may be loaded by several libhdf5 copies at once (a C program's, h5py's,
/// netCDF4's). Each gets a *slot*. HDF5's callbacks carry no context, so the faces instantiate
/// their callback tables once per slot
/// (`template <int Slot>`), and a callback knows its library by its own address.
///
/// Invariants:
///  1. A slot belongs to one loaded libhdf5 for the life of the process (we hold a handle, so it is
///     never unloaded).
///  2. Ids are valid between the library's opening and its closing (H5close, exit); after ForgetIds
///     they are asked anew.
/// Thread safety: SlotOf may be called from any thread. Everything else in a Library is protected
/// by that libhdf5's own lock: it is used from inside its callbacks only.
#pragma once

#include <string>

#include "h5/functions.h"
#include "h5/hdf5.h"
#include "h5/mpi.h"

namespace tidelane::h5 {

inline constexpr int kSlots = 8;

class Library : public Functions {
 public:
  constexpr Library() : Functions{} {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  int slot() const { return slot_; }

  /// The native connector's class. Its callbacks are called directly: H5VL* would add a lock, a
  /// look-up and an entry in every error stack, and would print errors twice.
  const H5VL_class_t& native() const { return *native_; }
  /// A new reference to the native connector's id (HDF5 2 makes such ids on demand); kNoId on
  /// failure.
  hid_t AcquireNativeId() { return VLget_connector_id_by_value(kNativeValue); }
  /// Our driver (h5/driver.h), registered with this library on first use; kNoId on failure.
  hid_t DriverId();
  /// The id that a file access list has when it says "sec2"; `fapl` is any file access list.
  hid_t Sec2Id(hid_t fapl);

  /// Puts `filter` in the place of HDF5's own of that number. H5Zregister refuses numbers below 256;
  /// the function inside HDF5 that it calls does not, and every build that we know exports it.
  bool CanReplaceFilters() const { return register_filter_ != nullptr; }
  void ReplaceFilter(const H5Z_class2_t& filter) { register_filter_(&filter); }
  /// A copy of what this HDF5 knows of the filter of that number; false where it lets nobody look (H5Z_find, which is
  /// exported, too).
  bool FindFilter(H5Z_filter_t id, H5Z_class2_t& found);
  /// The function of the filter of that number, loaded where it is a plugin that HDF5 finds; nullptr
  /// where there is none, or where this HDF5 does not let us look.
  H5Z_func_t FilterCode(H5Z_filter_t id);
  /// A copy of what this HDF5 knows of links of that type; false where there are none, or where it lets nobody look
  /// (H5L_find_class, which every build that we know exports).
  bool FindLinkClass(H5L_type_t type, H5L_class_t& found);

  /// The serial number of the file that a native object is in, without a look at the object's header, which may have left
  /// HDF5's cache. False: it is in none, or this HDF5 lacks the two functions (every build that we know exports them).
  bool FileSerial(void* object, H5I_type_t type, unsigned long& serial);

  /// What the call in progress has noted of its transfer, to leave it on its transfer list when it ends; and what that list
  /// asked for. A list that is set meanwhile is overwritten then, and nothing public changes what is noted. HDF5 1.14.3 and
  /// newer have functions for it, which every build that we know exports; they do nothing for the default list.
  struct Noted {
    uint32_t cause = 0;  ///< H5Pget_no_selection_io_cause
    uint32_t mode = 0;   ///< H5Pget_actual_selection_io_mode
    H5D_selection_io_mode_t wish = H5D_SELECTION_IO_MODE_DEFAULT;
  };
  bool GetNoted(Noted& noted);
  void SetNoted(const Noted& noted);

  /// Has HDF5 forget where it last found a chunk of a native dataset: after a direct chunk write it believes that chunk to
  /// be there for ever, and its own collective writes to filtered chunks do not know of that. There is no public call that does
  /// no more; a package function that every build that we know exports gives it up at once for a dataset that had no extent.
  bool CanForgetLastChunk() const { return prune_chunks_ != nullptr; }
  bool ForgetLastChunk(void* dataset) {
    const hsize_t nothing[H5S_MAX_RANK] = {};
    return prune_chunks_(dataset, nothing) >= 0;
  }

  /// Calls `work(context)` once, from within a call of HDF5's own: under its lock, where it has one, and with a call
  /// context that knows nothing of the call in progress. False: it was not called. The error stack is lost.
  ///
  /// HDF5 calls back for a class of errors: there is ours, and it is no matter whose it is, so that a program's own will
  /// do. (HDF5 2 passes over ids that the program has no reference to, as those of connectors are; and a type of ids of
  /// ours would be one less for programs that use them all.)
  /// Any thread may call it; it may be nested.
  [[nodiscard]] bool CallInside(void (*work)(void*), void* context);

  /// The MPI it was built with; nullptr: none, or one that we do not know.
  const Mpi* mpi();
  /// Whether the driver of that id is one for MPI programs.
  bool IsMpiDriver(hid_t driver);

  /// 1 or 2: some argument structures of the native connector differ.
  unsigned major_version() const { return major_version_; }

  /// Whether any thread may call it at any time: it has a lock.
  bool thread_safe() const { return thread_safe_; }
  /// Whether `code`, an address, is in this library.
  bool Contains(const void* code) const;

  /// HDF5's lock, where there is one and we can try it: nobody has to wait for who is inside.
  bool CanTryLock() const { return try_lock_ != nullptr && unlock_ != nullptr; }
  /// Takes it once more; false when another thread has it.
  bool TryLock();
  /// Undoes one TryLock. For a moment others may enter even if the caller had it before that.
  void Unlock();

  /// Our error class and its messages, registered on first use.
  struct ErrorIds {
    hid_t error_class = kNoId;
    hid_t major = kNoId;
    hid_t minor = kNoId;
  };
  const ErrorIds& Errors();
  /// HDF5's own error class with the messages of these names (without H5E_), as its variables say; false where they do
  /// not: a program may have copies of them.
  bool NativeErrors(const char* major, const char* minor, ErrorIds& found);

  /// The library has closed: every id we remember is void.
  void ForgetIds();

 private:
  friend int SlotOf(const void* code, std::string& why);
  bool Resolve(void* handle, std::string& why);
  void FindInternals(void* handle);
  hid_t ErrorVariable(const char* name, bool (*fits)(Library& library, hid_t id));
  void FindLock(void* handle);
  void FindNoted(void* handle);

  int slot_ = -1;
  const void* base_ = nullptr;  // load address: what makes two copies different
  void* handle_ = nullptr;      // dlopen's
  const H5VL_class_t* native_ = nullptr;
  const Mpi* mpi_ = nullptr;
  bool looked_for_mpi_ = false;
  herr_t (*register_filter_)(const H5Z_class2_t*) = nullptr;  // H5Z_register, where we know it
  herr_t (*find_filter_)(bool attempt, H5Z_filter_t id,
                         H5Z_class2_t** found) = nullptr;             // H5Z_find
  const H5L_class_t* (*find_link_class_)(H5L_type_t type) = nullptr;  // H5L_find_class
  herr_t (*prune_chunks_)(void* dataset,
                          const hsize_t* old_extent) = nullptr;  // H5D__chunk_prune_by_extent
  herr_t (*get_file_)(void* object, H5I_type_t type,
                      void** file) = nullptr;  // H5VL_native_get_file_struct
  herr_t (*get_serial_)(const void* file, unsigned long* serial) = nullptr;  // H5F_get_fileno
  herr_t (*get_wish_)(H5D_selection_io_mode_t* wish) = nullptr;  // H5CX_get_selection_io_mode
  herr_t (*get_cause_)(uint32_t* cause) = nullptr;               // H5CX_get_no_selection_io_cause
  void (*set_cause_)(uint32_t cause) = nullptr;                  // H5CX_set_no_selection_io_cause
  herr_t (*get_mode_)(uint32_t* mode) = nullptr;                // H5CX_get_actual_selection_io_mode
  void (*set_mode_)(uint32_t mode) = nullptr;                   // H5CX_set_actual_selection_io_mode
  herr_t (*try_lock_)(unsigned count, bool* locked) = nullptr;  // H5TSmutex_acquire
  herr_t (*unlock_)(unsigned* count) = nullptr;                 // H5TSmutex_release: all of it
  unsigned major_version_ = 1;
  bool thread_safe_ = false;
  hid_t driver_id_ = kNoId;
  hid_t sec2_id_ = kNoId;
  ErrorIds errors_;
};

namespace internal {
extern Library libraries[kSlots];
}

template <int Slot>
Library& LibraryOf() {
  static_assert(Slot >= 0 && Slot < kSlots);
  return internal::libraries[Slot];
}
inline Library& LibraryAt(int slot) { return internal::libraries[slot]; }

/// The slot of the libhdf5 that contains the address `code` (assigned when it is new); -1 with the
/// reason in `why` when it is too old, unknown to the dynamic linker, or one too many.
int SlotOf(const void* code, std::string& why);

}  // namespace tidelane::h5
