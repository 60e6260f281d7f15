// The serial driver: what HDF5's file layer sees of a File. It behaves as sec2 does, only later.
//
// Each callback is a few lines: arguments in, engine call, failure onto HDF5's error stack. Nothing is decided here.
//
// Invariant: complete without any VOL call. What it may do early, the CallContext of the call in progress says, which each
// callback reads once.
// Thread safety: callbacks run under HDF5's lock, one at a time per libhdf5.
#include "vfd/driver.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "buffer/probe.h"
#include "content/extent_read.h"
#include "engine/engine.h"
#include "file/call_scope.h"
#include "h5/before_open.h"
#include "h5/error.h"
#include "h5/library.h"
#include "publish/names.h"
#include "vfd/open_handles.h"

namespace tidelane::vfd {
namespace {

constexpr H5FD_class_value_t kDriverValue = 5120;
constexpr haddr_t kMaxAddress = static_cast<haddr_t>(INT64_MAX);
constexpr unsigned kSwmrFlags = 0x20 | 0x40;  // H5F_ACC_SWMR_WRITE | H5F_ACC_SWMR_READ

constinit uint64_t single_pieces[h5::kSlots];

void CountPiece(const Handle& handle, H5FD_mem_t type) {
  if (type == H5FD_MEM_DRAW) ++single_pieces[handle.library->slot()];
}

Handle& Of(H5FD_t* file) { return *reinterpret_cast<Handle*>(file); }
const Handle& Of(const H5FD_t* file) { return *reinterpret_cast<const Handle*>(file); }

herr_t Report(const Handle& handle, const Status& status) {
  if (status.ok()) return 0;
  h5::PushError(*handle.library, status);
  return -1;
}

// What follows tells failures as sec2 does, word for word: programs look for "unable to lock file", and h5py's exceptions
// consist of it.
std::string ErrnoText(int code) {
  return "errno = " + std::to_string(code) + ", error message = '" +
         std::generic_category().message(code) + "'";
}

std::string SystemText(const char* words, int code) {
  return std::string(words) + ", " + ErrnoText(code);
}

void PushCannotLock(h5::Library& library, int code) {
  h5::PushNativeError(library, SystemText("unable to lock file", code), "VFL", "CANTLOCKFILE");
}

void PushCannotOpen(h5::Library& library, const char* name, int code, unsigned flags,
                    int system_flags) {
  char tail[64];
  std::snprintf(tail, sizeof tail, ", flags = %x, o_flags = %x", flags,
                static_cast<unsigned>(system_flags));
  const std::string text =
      std::string("unable to open file: name = '") + name + "', " + ErrnoText(code) + tail;
  h5::PushNativeError(library, text, "FILE", "CANTOPENFILE");
}

// Of a piece that could not be read or written in the call in progress; what fails later is told by the call that waits for it,
// in our words.
herr_t ReportPiece(const Handle& handle, bool writes, const Status& status, haddr_t address,
                   size_t size, const void* buffer) {
  const char* const verb = writes ? "write" : "read";
  if (status.operation() != verb) return Report(handle, status);  // sec2 does nothing else
  int* descriptor = nullptr;
  static_cast<void>(handle.file->Descriptor(descriptor, {}));
  const std::time_t now = std::time(nullptr);
  char when[32] = "";
  ctime_r(&now, when);
  char tail[192];
  std::snprintf(tail, sizeof tail,
                ", buf = %p, total %s size = %zu, bytes this sub-%s = %zu, offset = %llu", buffer,
                verb, size, verb, size, static_cast<unsigned long long>(address));
  const std::string text =
      std::string("file ") + verb + " failed: time = " + when + ", filename = '" +
      std::string(handle.file->path()) +
      "', file descriptor = " + std::to_string(descriptor == nullptr ? -1 : *descriptor) + ", " +
      ErrnoText(status.code()) + tail;
  h5::PushNativeError(*handle.library, text, "IO", writes ? "WRITEERROR" : "READERROR");
  return -1;
}

// `work()` gives a Status, or a result whose failure it has told. Nothing may be thrown through HDF5: what there was no memory for has failed.
template <typename Work>
herr_t Guarded(const Handle& handle, const char* operation, Work work) {
  try {
    if constexpr (std::is_same_v<decltype(work()), herr_t>) {
      return work();
    } else {
      return Report(handle, work());
    }
  } catch (const std::bad_alloc&) {
    return Report(handle, Status::Failed(ENOMEM, operation).At(handle.file->path(), 0, 0));
  }
}

// As sec2: the environment's word counts before the list's.
bool IgnoreDisabledLocks(h5::Library& library, hid_t fapl) {
  if (const char* text = std::getenv("HDF5_USE_FILE_LOCKING"); text != nullptr && *text != '\0') {
    if (std::strcmp(text, "BEST_EFFORT") == 0) return true;
    if (std::strcmp(text, "TRUE") == 0 || std::strcmp(text, "1") == 0) return false;
  }
  hbool_t ignore = false;
  const char* const property = "ignore_disabled_file_locks";
  return library.Pexist(fapl, property) > 0 && library.Pget(fapl, property, &ignore) >= 0 && ignore;
}

// h5repart's wish to read a member of a family as a file of its own.
bool FamilyToSingle(h5::Library& library, hid_t fapl) {
  hbool_t single = false;
  return library.Pexist(fapl, "family_to_single") > 0 &&
         library.Pget(fapl, "family_to_single", &single) >= 0 && single;
}

bool HasPageBuffer(h5::Library& library, hid_t fapl) {
  size_t size = 0;
  return library.Pget_page_buffer_size(fapl, &size, nullptr, nullptr) < 0 || size != 0;
}

OpenOptions OptionsFor(unsigned flags, int opener) {
  OpenOptions options;
  options.opener = opener;
  options.flags = (flags & H5F_ACC_RDWR) != 0 ? O_RDWR : O_RDONLY;
  if ((flags & H5F_ACC_TRUNC) != 0) options.flags |= O_TRUNC;
  if ((flags & H5F_ACC_CREAT) != 0) options.flags |= O_CREAT;
  if ((flags & H5F_ACC_EXCL) != 0) options.flags |= O_EXCL;
  options.swmr = (flags & kSwmrFlags) != 0;
  return options;
}

H5FD_t* OpenIn(h5::Library& library, const char* name, unsigned flags, hid_t fapl,
               haddr_t max_address) {
  if (name == nullptr || *name == '\0' || max_address == 0 || max_address == HADDR_UNDEF ||
      max_address > kMaxAddress) {
    h5::PushError(library, Status::Failed(EINVAL, "open").At(name == nullptr ? "" : name, 0, 0));
    return nullptr;
  }
  h5::BeforeOpen(library.slot(), name);
  auto handle = std::make_unique<Handle>();
  handle->library = &library;
  handle->read_only = (flags & H5F_ACC_RDWR) == 0;
  handle->ignore_disabled_locks = IgnoreDisabledLocks(library, fapl);
  handle->family_to_single = FamilyToSingle(library, fapl);
  handle->page_buffer = HasPageBuffer(library, fapl);
  const OpenOptions options = OptionsFor(flags, library.slot());
  const Status status = Engine::Get().Open(name, options, handle->file, CallContext::Current());
  if (!status.ok()) {
    if (status.operation() == "lock") {  // a create that would only have found it locked later
      PushCannotLock(library, status.code());
    } else if (status.operation().starts_with("journal")) {  // no error of the system's
      h5::PushError(library, status);
    } else {
      PushCannotOpen(library, name, status.code(), flags, options.flags);
    }
    return nullptr;
  }
  OpenHandles& open = OpenHandles::In(library.slot());
  // A transfer may open files: of a virtual dataset's sources, or in a callback.
  open.TakeMany();
  open.Add(handle.get());
  return &handle.release()->pub;
}

template <int Slot>
H5FD_t* Open(const char* name, unsigned flags, hid_t fapl, haddr_t max_address) noexcept {
  h5::Library& library = h5::LibraryOf<Slot>();
  try {
    return OpenIn(library, name, flags, fapl, max_address);
  } catch (const std::bad_alloc&) {
    h5::PushError(library, Status::Failed(ENOMEM, "open").At(name, 0, 0));
    return nullptr;
  }
}

herr_t Close(H5FD_t* file) noexcept {
  const std::unique_ptr<Handle> handle(&Of(file));
  if (handle->left_open) return 0;
  OpenHandles::In(handle->library->slot()).Remove(handle.get());
  return Guarded(*handle, "close",
                 [&] { return Engine::Get().Close(handle->file, CallContext::Current()); });
}

void CloseLeftOpen(int slot) {
  OpenHandles& open = OpenHandles::In(slot);
  while (!open.empty()) {
    Handle& handle = *open.all().back();
    open.Remove(&handle);
    handle.left_open = true;
    // What fails is said there: nobody looks at an error stack any more.
    try {
      static_cast<void>(Engine::Get().Close(handle.file));
    } catch (const std::bad_alloc&) {  // it stays as it is after an end without a close
    }
  }
}

// HDF5 compares a file that it opens with each that it has open, and asks only whether they are equal.
int Compare(const H5FD_t* left, const H5FD_t* right) noexcept {
  const auto order = Of(left).file->identity() <=> Of(right).file->identity();
  if (order != 0) return order < 0 ? -1 : 1;
  // What is left of a file that was given up, or closed by CloseLeftOpen, is the file of nobody else.
  if (left != right && (Of(left).file->abandoned() || Of(right).file->abandoned()))
    return left < right ? -1 : 1;
  return 0;
}

herr_t Query(const H5FD_t* file, unsigned long* flags) noexcept {
  if (flags == nullptr) return 0;
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
           H5FD_FEAT_SUPPORTS_SWMR_IO | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  // HDF5's metadata accumulator takes elements in where they lie between metadata that it reads, writes them back with what changes around
  // them, and knows nothing of those that were written meanwhile: they would be lost (docs/decisions/0035).
  if (file == nullptr || Of(file).read_only) *flags |= H5FD_FEAT_ACCUMULATE_METADATA;
  // Where this is said HDF5 looks at what the name leads to, and wants it to be this file.
  if (file == nullptr || Of(file).file->traits().at_its_name)
    *flags |= H5FD_FEAT_POSIX_COMPAT_HANDLE;
  if (file != nullptr && Of(file).family_to_single) *flags |= H5FD_FEAT_IGNORE_DRVRINFO;
  return 0;
}

haddr_t GetEoa(const H5FD_t* file, H5FD_mem_t) noexcept { return Of(file).eoa; }

herr_t SetEoa(H5FD_t* file, H5FD_mem_t, haddr_t address) noexcept {
  Of(file).eoa = address;
  return 0;
}

haddr_t GetEof(const H5FD_t* file, H5FD_mem_t) noexcept { return Of(file).file->eof(); }

herr_t GetHandle(H5FD_t* file, hid_t, void** out) noexcept {
  if (out == nullptr) return Report(Of(file), Status::Failed(EINVAL, "get the descriptor of"));
  int* descriptor = nullptr;
  const herr_t result = Guarded(Of(file), "get the descriptor of", [&] {
    return Of(file).file->Descriptor(descriptor, CallContext::Current());
  });
  *out = descriptor;
  return result;
}

bool Overflows(haddr_t address, size_t size) {
  return address == HADDR_UNDEF || address > kMaxAddress || size > kMaxAddress - address;
}

herr_t ReadPiece(Handle& handle, H5FD_mem_t type, haddr_t address, size_t size, void* buffer,
                 const CallContext& call) {
  if (Overflows(address, size))
    return Report(handle, Status::Failed(EOVERFLOW, "read").At(handle.file->path(), address, size));
  File& file = *handle.file;
  if (Status settled = file.writes().commits().Settle(); !settled.ok())
    return Report(handle, settled);
  // What HDF5's sieve buffer reads it keeps: a block of ours would have nobody to answer.
  const bool sieved =
      type == H5FD_MEM_DRAW && size < ReadPath::kLarge && handle.registered != nullptr;
  const Status status = sieved ? file.reads().ReadAlongside(Reader::kProgram, address, size, buffer)
                               : file.Read(address, size, buffer, type == H5FD_MEM_DRAW, call);
  return status.ok() ? 0 : ReportPiece(handle, false, status, address, size, buffer);
}

// What is there of elements in memory of ours is captured, and lanes begin to store it, while the rest is on its way.
Status WriteHeld(File& file, uint64_t address, uint64_t size, const void* bytes,
                 const CallContext& call) {
  const auto* at = static_cast<const std::byte*>(bytes);
  while (size != 0) {
    const uint64_t piece = call.held()->PieceAt(at, size);
    if (Status status = call.held()->Await(at, piece); !status.ok()) return status;
    if (Status status = file.Write(address, piece, at, call); !status.ok()) return status;
    address += piece, at += piece, size -= piece;
  }
  return {};
}

Status WriteUntold(Handle& handle, haddr_t address, size_t size, const void* buffer,
                   const CallContext& call) {
  // As write(2) to a descriptor for reading. HDF5 writes there where a call that failed has left something in its caches.
  if (handle.read_only || handle.file->abandoned()) return Status::Failed(EBADF, "write");
  if (size >= kLeastProbed && !MayReadFrom(buffer, size)) return Status::Failed(EFAULT, "write");
  if (Status settled = handle.file->writes().commits().Settle(); !settled.ok()) return settled;
  handle.file->writes().superblock().SetBase(handle.pub.base_addr);
  return call.held() != nullptr ? WriteHeld(*handle.file, address, size, buffer, call)
                                : handle.file->Write(address, size, buffer, call);
}

herr_t WritePiece(Handle& handle, haddr_t address, size_t size, const void* buffer,
                  const CallContext& call) {
  if (Overflows(address, size))
    return Report(handle,
                  Status::Failed(EOVERFLOW, "write").At(handle.file->path(), address, size));
  const Status status = WriteUntold(handle, address, size, buffer, call);
  return status.ok() ? 0 : ReportPiece(handle, true, status, address, size, buffer);
}

herr_t Read(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t address, size_t size,
            void* buffer) noexcept {
  CountPiece(Of(file), type);
  return Guarded(Of(file), "read", [&] {
    return ReadPiece(Of(file), type, address, size, buffer, CallContext::Current());
  });
}

CallContext CallFor(H5FD_mem_t type) {
  const CallContext call = CallContext::Current();
  return type == H5FD_MEM_DRAW ? call : call.ForMetadata();
}

herr_t Write(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t address, size_t size,
             const void* buffer) noexcept {
  CountPiece(Of(file), type);
  return Guarded(Of(file), "write",
                 [&] { return WritePiece(Of(file), address, size, buffer, CallFor(type)); });
}

// Vectors may end early: a size of 0 (after the first) or a type of "no list" says that the one before holds for the rest.
class VectorShorthand {
 public:
  VectorShorthand(const H5FD_mem_t* types, const size_t* sizes) : types_(types), sizes_(sizes) {}
  void Advance(uint32_t i) {
    if (sizes_ != nullptr && (i == 0 || sizes_[i] != 0))
      size_ = sizes_[i];
    else
      sizes_ = nullptr;
    if (types_ != nullptr && types_[i] != H5FD_MEM_NOLIST)
      type_ = types_[i];
    else
      types_ = nullptr;
  }
  size_t size() const { return size_; }
  H5FD_mem_t type() const { return type_; }

 private:
  const H5FD_mem_t* types_;
  const size_t* sizes_;
  size_t size_ = 0;
  H5FD_mem_t type_ = H5FD_MEM_DEFAULT;
};

// Of all entries of a vector; H5FD_MEM_DEFAULT where they differ.
H5FD_mem_t OnlyType(uint32_t count, const H5FD_mem_t* types) {
  if (count == 0 || types == nullptr) return H5FD_MEM_DEFAULT;
  for (uint32_t i = 1; i < count && types[i] != H5FD_MEM_NOLIST; ++i) {
    if (types[i] != types[0]) return H5FD_MEM_DEFAULT;
  }
  return types[0];
}

// Many large pieces are one read of the program's thread and lanes, where storage gains from that.
std::shared_ptr<ExtentRead> Shared(Handle& handle, uint32_t count, const H5FD_mem_t* types,
                                   const haddr_t* addresses, const size_t* sizes, void** buffers,
                                   const CallContext& call) {
  if (count < 2 || call.scope() != nullptr) return nullptr;
  uint64_t bytes = 0;
  VectorShorthand entry(types, sizes);
  for (uint32_t i = 0; i < count; ++i) {
    entry.Advance(i);
    if (entry.type() != H5FD_MEM_DRAW || Overflows(addresses[i], entry.size())) return nullptr;
    bytes += entry.size();
  }
  std::shared_ptr<ExtentRead> read =
      handle.file->reads().Share(handle.file->SharedReads(), bytes, count);
  if (read == nullptr) return nullptr;
  VectorShorthand again(types, sizes);
  for (uint32_t i = 0; i < count; ++i) {
    again.Advance(i);
    if (!read->Add(addresses[i], again.size(), static_cast<std::byte*>(buffers[i]))) return nullptr;
  }
  return read;
}

herr_t ReadVector(H5FD_t* file, hid_t, uint32_t count, H5FD_mem_t types[], haddr_t addresses[],
                  size_t sizes[], void* buffers[]) noexcept {
  return Guarded(Of(file), "read", [&] {
    const CallContext call = CallContext::Current();
    if (const auto shared = Shared(Of(file), count, types, addresses, sizes, buffers, call)) {
      return Report(Of(file), shared->ReadNow());
    }
    VectorShorthand entry(types, sizes);
    for (uint32_t i = 0; i < count; ++i) {
      entry.Advance(i);
      if (ReadPiece(Of(file), entry.type(), addresses[i], entry.size(), buffers[i], call) < 0)
        return -1;
    }
    return 0;
  });
}

herr_t WriteVector(H5FD_t* file, hid_t, uint32_t count, H5FD_mem_t types[], haddr_t addresses[],
                   size_t sizes[], const void* buffers[]) noexcept {
  return Guarded(Of(file), "write", [&] {
    const CallContext call = CallFor(OnlyType(count, types));
    VectorShorthand entry(types, sizes);
    for (uint32_t i = 0; i < count; ++i) {
      entry.Advance(i);
      if (WritePiece(Of(file), addresses[i], entry.size(), buffers[i], call) < 0) return -1;
    }
    return 0;
  });
}

herr_t Flush(H5FD_t* file, hid_t, hbool_t closing) noexcept {
  return Guarded(Of(file), "flush", [&] {
    const Handle& handle = Of(file);
    const CallContext call = CallContext::Current();
    Status status = handle.file->Flush(closing, call);
    if (status.ok() && call.scope() != nullptr && handle.file->writes().commits().enabled())
      call.scope()->NoteFlushed(handle.file);
    // Before it comes here HDF5 has flushed what it keeps of files that it opened for this one.
    if (status.ok() && !closing && !call.is_flush_of_open() &&
        !call.MayFlushEarly(handle.file->settings()))
      status = Engine::Get().DrainInside(handle.library->slot(), Wait::kFlush);
    return status;
  });
}

herr_t Truncate(H5FD_t* file, hid_t, hbool_t) noexcept {
  Handle& handle = Of(file);
  if (handle.eoa == handle.file->eof() || handle.file->abandoned()) return 0;
  return Guarded(handle, "truncate", [&] {
    // As ftruncate(2) of a descriptor for reading.
    if (handle.read_only)
      return Status::Failed(EINVAL, "truncate").At(handle.file->path(), handle.eoa, 0);
    return handle.file->Truncate(handle.eoa);
  });
}

herr_t Lock(H5FD_t* file, hbool_t exclusive) noexcept {
  return Guarded(Of(file), exclusive ? "lock for writing" : "lock for reading", [&] {
    const Status status = Of(file).file->Lock(exclusive);
    if (status.ok() || (status.code() == ENOSYS && Of(file).ignore_disabled_locks)) return 0;
    PushCannotLock(*Of(file).library, status.code());
    return -1;
  });
}

herr_t Unlock(H5FD_t* file) noexcept {
  return Guarded(Of(file), "unlock", [&] {
    Status status = Of(file).file->Unlock(CallContext::Current());
    if (status.code() == ENOSYS && Of(file).ignore_disabled_locks) status = Status();
    return status;
  });
}

template <int Slot>
herr_t Delete(const char* name, hid_t) noexcept {
  h5::Library& library = h5::LibraryOf<Slot>();
  try {
    (void)Engine::Get().DrainPath(name);  // what could not be stored is not wanted any more
    const int error = RemoveName(name);
    Engine::Get().refused_closes().DropNameless(Slot);
    (void)Engine::Get().closed_files().DropNameless();
    if (error == 0) return 0;
    h5::PushNativeError(library, SystemText("unable to delete file", error), "VFL",
                        "CANTDELETEFILE");
  } catch (const std::bad_alloc&) {
    h5::PushError(library, Status::Failed(ENOMEM, "delete").At(name, 0, 0));
  }
  return -1;
}

// Pieces: as many as HDF5 likes in a call, or one.
enum class Pieces : bool { kMany, kSingle };

template <int Slot>
constexpr H5FD_class_t MakeClass(Pieces pieces) {
  H5FD_class_t driver{};
  driver.version = H5FD_CLASS_VERSION;
  driver.value = kDriverValue;
  driver.name = "tidelane";
  driver.maxaddr = kMaxAddress;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = Open<Slot>;
  driver.close = Close;
  driver.cmp = Compare;
  driver.query = Query;
  driver.get_eoa = GetEoa;
  driver.set_eoa = SetEoa;
  driver.get_eof = GetEof;
  driver.get_handle = GetHandle;
  driver.read = Read;
  driver.write = Write;
  if (pieces == Pieces::kMany) {
    driver.read_vector = ReadVector;
    driver.write_vector = WriteVector;
  }
  driver.flush = Flush;
  driver.truncate = Truncate;
  driver.lock = Lock;
  driver.unlock = Unlock;
  driver.del = Delete<Slot>;
  constexpr H5FD_mem_t kDichotomy[] = H5FD_FLMAP_DICHOTOMY;
  for (int i = 0; i < H5FD_MEM_NTYPES; ++i) driver.fl_map[i] = kDichotomy[i];
  return driver;
}

template <Pieces P, int... Slots>
const H5FD_class_t* ClassOf(int slot, std::integer_sequence<int, Slots...>) {
  static constexpr H5FD_class_t kClasses[] = {MakeClass<Slots>(P)...};
  return &kClasses[slot];
}

const H5FD_class_t* DriverClass(int slot) {
  return ClassOf<Pieces::kMany>(slot, std::make_integer_sequence<int, h5::kSlots>());
}

const H5FD_class_t* SingleClass(int slot) {
  return ClassOf<Pieces::kSingle>(slot, std::make_integer_sequence<int, h5::kSlots>());
}

bool HasFiles(int slot) { return !OpenHandles::In(slot).empty(); }

std::shared_ptr<File> FileWithSerial(int slot, unsigned long serial) {
  const Handle* const handle = OpenHandles::In(slot).WithSerial(serial);
  return handle == nullptr ? nullptr : handle->file;
}

H5FD_t* OpenWithSerial(int slot, unsigned long serial) {
  Handle* const handle = OpenHandles::In(slot).WithSerial(serial);
  return handle == nullptr ? nullptr : &handle->pub;
}

bool TakeSingly(H5FD_t* open, bool singly) {
  const int slot = Of(open).library->slot();
  return OpenHandles::In(slot).TakeSingly(Of(open), singly ? SingleClass(slot) : nullptr);
}

h5::AboveDriver Above(int slot, const File& file) {
  const Handle* const handle = OpenHandles::In(slot).Of(file);
  if (handle == nullptr) return {.page_buffer = true};  // not known: as if it had everything
  return {.base_address = handle->pub.base_addr,
          .allocated_end = handle->eoa,
          .page_buffer = handle->page_buffer};
}

}  // namespace

constinit const h5::DriverTable kSerialDriver = {
    .driver_class = DriverClass,
    .has_files = HasFiles,
    .file_with_serial = FileWithSerial,
    .above = Above,
    .open_with_serial = OpenWithSerial,
    .take_singly = TakeSingly,
    .close_left_open = CloseLeftOpen,
    .single_pieces = [](int slot) { return single_pieces[slot]; },
};

}  // namespace tidelane::vfd
