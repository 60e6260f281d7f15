// The mpio driver of an open file, with a few callbacks of our own in the place of its: raw writes that a CallScope lets us
// have are captured, reads see them, and whatever else happens finds them stored.
//
//   1. HDF5 opens the file natively, with its mpio driver.
//   2. The driver's handle lies right behind the public part of its file (the same in every version that we know). What
//      lies there must be a file of this driver's id, with mpio's name and value; otherwise nothing is touched.
//   3. The file's class pointer is replaced by one to our copy of the class. The id, and everything else of HDF5's, stays:
//      HDF5 compares ids, not pointers, where it asks whether a file is mpio's.
//   4. All ranks agree whether they could; if one could not, none captures.
//   5. Close puts the class back, and calls the driver's own.
//
// What HDF5 writes collectively comes here as a count of an MPI type, not as bytes: a write is ours only where the scope says
// that HDF5 was given an independent transfer.
//
// Thread safety: callbacks run under HDF5's lock.
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <linux/magic.h>
#include <new>
#include <string>
#include <utility>

#include "engine/call_scope.h"
#include "engine/engine.h"
#include "extent/broken.h"
#include "h5/error.h"
#include "h5/parallel_file.h"

namespace tidelane::vfd {
namespace {

constexpr H5FD_class_value_t kMpioValue = 7;  // H5_VFD_MPIO
constexpr uint64_t kNotShared[] = {NFS_SUPER_MAGIC, 0xFF534D42 /*CIFS*/, 0xFE534D42 /*SMB2*/};

// Lives as long as its file is open; HDF5's class pointer leads here.
struct Captured {
  H5FD_class_t driver;  // first
  const H5FD_class_t* native;
  h5::Library* library;
  H5FD_t* pub;
  std::shared_ptr<h5::ParallelFile> file;
  Captured* next;
};

constinit Captured* captured_files[h5::kSlots];

Captured& Of(H5FD_t* pub) {
  return *reinterpret_cast<Captured*>(const_cast<H5FD_class_t*>(pub->cls));
}

herr_t Report(const Captured& captured, herr_t result, const Status& status) {
  if (status.ok()) return result;
  h5::PushError(*captured.library, status);
  return -1;
}

// `work()` gives a Status. Nothing may be thrown through HDF5: what there was no memory for has failed.
template <typename Work>
Status Guarded(const h5::ParallelFile& file, const char* operation, Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Status::Failed(ENOMEM, operation).At(file.file()->path(), 0, 0);
  }
}

// A chunk that all ranks put into the file is a success to HDF5 in any case: otherwise this rank's index would be another one
// than the others'. Who called HDF5 looks at what was refused.
herr_t Capture(Captured& captured, haddr_t address, size_t size, const void* bytes,
               bool own_chunk) {
  h5::ParallelFile& file = *captured.file;
  file.NoteCaptured(size);
  Status status =
      Guarded(file, "write to", [&] { return file.file()->Write(address, size, bytes); });
  // Where the system refused threads, nobody would store it while other ranks wait for it.
  if (status.ok() && !Engine::Get().lanes().threaded() && !Broken("ranks_threads"))
    status = file.file()->Drain(Wait::kRanks);
  if (!own_chunk) return Report(captured, 0, status);
  if (!status.ok()) file.NoteRefused(std::move(status));
  return 0;
}

herr_t Write(H5FD_t* pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
             const void* bytes) noexcept {
  Captured& captured = Of(pub);
  h5::ParallelFile& file = *captured.file;
  if (type == H5FD_MEM_DRAW && CallScope::Allows(CallScope::kOtherChunk)) {
    file.NoteCaptured(size);
    return 0;
  }
  const bool own_chunk = CallScope::Allows(CallScope::kOwnChunk);
  const bool together = own_chunk || CallScope::Allows(CallScope::kCaptureTogether);
  if (!together && !file.inside()) file.file()->AwaitOthers(address, size);
  if (type == H5FD_MEM_DRAW && (together || CallScope::Allows(CallScope::kCaptureAlone))) {
    if (file.capturing() || own_chunk) return Capture(captured, address, size, bytes, own_chunk);
    file.NoteNative(size);
  }
  // Two writes of the same byte are stored in program order.
  if (file.file()->HasPending(address, size)) {
    if (const Status status = file.file()->Drain(Wait::kRanks); !status.ok())
      return Report(captured, -1, status);
  }
  return captured.native->write(pub, type, dxpl, address, size, bytes);
}

// Only collective writes come as vectors: of fill values, of filtered chunks, of metadata.
herr_t WriteVector(H5FD_t* pub, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t addresses[],
                   size_t sizes[], const void* buffers[]) noexcept {
  Captured& captured = Of(pub);
  h5::ParallelFile& file = *captured.file;
  const auto native = captured.native->write_vector;
  if (file.inside()) return native(pub, dxpl, count, types, addresses, sizes, buffers);
  // What could not be stored is told by flush and close.
  static_cast<void>(file.Before(h5::Moment::kFill));
  const herr_t result = native(pub, dxpl, count, types, addresses, sizes, buffers);
  file.After();
  return result;
}

herr_t Read(H5FD_t* pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
            void* buffer) noexcept {
  Captured& captured = Of(pub);
  const std::shared_ptr<File>& file = captured.file->file();
  const bool alone = type == H5FD_MEM_DRAW && CallScope::Allows(CallScope::kReadAlone);
  if (alone) file->AwaitOthers(address, size);
  if (!file->drained()) {
    if (alone) {
      return Report(captured, 0, Guarded(*captured.file, "read", [&] {
                      return file->Read(address, size, buffer, true);
                    }));
    }
    static_cast<void>(file->Drain(Wait::kRanks));
  }
  return captured.native->read(pub, type, dxpl, address, size, buffer);
}

herr_t ReadVector(H5FD_t* pub, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t addresses[],
                  size_t sizes[], void* buffers[]) noexcept {
  Captured& captured = Of(pub);
  static_cast<void>(captured.file->file()->Drain(Wait::kRanks));
  return captured.native->read_vector(pub, dxpl, count, types, addresses, sizes, buffers);
}

herr_t Flush(H5FD_t* pub, hid_t dxpl, hbool_t closing) noexcept {
  Captured& captured = Of(pub);
  Status status;
  if (!Broken("ranks_flush"))
    status = captured.file->file()->Drain(closing ? Wait::kClose : Wait::kFlush);
  const herr_t result = captured.native->flush(pub, dxpl, closing);  // by every rank, even so
  return Report(captured, result, status);
}

herr_t Close(H5FD_t* pub) noexcept {
  Captured* const captured = &Of(pub);
  Captured** at = &captured_files[captured->library->slot()];
  while (*at != captured) at = &(*at)->next;
  *at = captured->next;
  const Status status = Engine::Get().Close(captured->file->file());
  pub->cls = captured->native;
  const herr_t result = captured->native->close(pub);
  const herr_t told = Report(*captured, result, status);
  delete captured;
  return told;
}

// Where HDF5 2 and 1.14 have it.
H5FD_t* FileOf(void* vfd_handle, hid_t driver) {
  auto* const pub = reinterpret_cast<H5FD_t*>(static_cast<std::byte*>(vfd_handle) - sizeof(H5FD_t));
  if (pub->driver_id != driver || pub->cls == nullptr) return nullptr;
  const H5FD_class_t& driver_class = *pub->cls;
  const bool known = driver_class.value == kMpioValue && driver_class.name != nullptr &&
                     std::strcmp(driver_class.name, "mpio") == 0 && driver_class.ctl != nullptr &&
                     driver_class.write_vector != nullptr && driver_class.read_vector != nullptr &&
                     driver_class.flush != nullptr;
  return known ? pub : nullptr;
}

template <typename T>
bool Ask(H5FD_t* pub, uint64_t operation, T& answer) {
  void* output = &answer;
  return pub->cls->ctl(pub, operation, H5FD_CTL_FAIL_IF_UNKNOWN_FLAG, nullptr, &output) >= 0;
}

// MPI-IO's name for a file system may stand before the path.
const char* PathOf(const char* name) {
  constexpr const char kUnix[] = "ufs:";
  if (std::strncmp(name, kUnix, sizeof kUnix - 1) == 0) return name + sizeof kUnix - 1;
  const size_t word = std::strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");
  return name[word] == ':' && word > 1 ? nullptr : name;
}

bool SharedByRanks(const char* path) {
  struct statfs found;
  if (path == nullptr || statfs(path, &found) != 0) return false;
  for (const uint64_t kind : kNotShared) {
    if (static_cast<uint64_t>(found.f_type) == kind) return false;
  }
  return true;
}

// HDF5 itself writes only collectively where MPI-IO must be told to sync after each write.
bool HintsForbid(const h5::Mpi& mpi, H5FD_t* pub) {
  hbool_t sync_required = false;
  h5::MpiHandle info;
  if (!Ask(pub, H5FD_CTL_GET_MPI_FILE_SYNC_OPCODE, sync_required)) sync_required = false;
  if (sync_required || !Ask(pub, H5FD_CTL_GET_MPI_INFO_OPCODE, info)) return true;
  return mpi.Hint(info, "direct_write") == "true" || mpi.Hint(info, "romio_no_indep_rw") == "true";
}

// The same file may be captured once: two would not know of each other's bytes.
bool AlreadyCaptured(int slot, const FileIdentity& identity) {
  bool found = false;
  for (Captured* at = captured_files[slot]; at != nullptr; at = at->next) {
    if (at->file->file()->identity() != identity) continue;
    at->file->Stop(Fallback::kMpiTwice);
    at->file->file()->AwaitOthers(0, UINT64_MAX);
    found = true;
  }
  return found;
}

// Tests of what is promised across machines have none.
bool WantsBoard(int ranks) { return ranks > 1 && !Broken("ranks_board"); }

// Where all ranks run on one machine. The first one makes it before they agree, and its name goes with the agreement.
std::unique_ptr<PendingBoard> MakeBoard(int rank, int ranks, PendingBoard::Name& name) {
  if (rank != 0 || !WantsBoard(ranks)) return nullptr;
  name = PendingBoard::Name::New();
  std::unique_ptr<PendingBoard> board = PendingBoard::Create(name, ranks, rank);
  if (board == nullptr) name = {};
  return board;
}

// Collective: by all of them, or by none.
std::unique_ptr<PendingBoard> ShareBoard(h5::ParallelFile& file, const PendingBoard::Name& name,
                                         std::unique_ptr<PendingBoard> board) {
  if (name.empty()) return nullptr;
  try {
    if (file.rank() != 0) board = PendingBoard::Find(name, file.ranks(), file.rank());
  } catch (const std::bad_alloc&) {  // then nobody uses it
  }
  const bool some_missing = file.Any(board == nullptr);
  if (file.rank() == 0) PendingBoard::Forget(name);
  return some_missing ? nullptr : std::move(board);
}

// The ranks that have a file open.
struct Ranks {
  h5::MpiHandle communicator;
  int rank = 0;
  int count = 0;
};

bool AskRanks(H5FD_t* pub, Ranks& ranks) {
  return Ask(pub, H5FD_CTL_GET_MPI_COMMUNICATOR_OPCODE, ranks.communicator) &&
         Ask(pub, H5FD_CTL_GET_MPI_RANK_OPCODE, ranks.rank) &&
         Ask(pub, H5FD_CTL_GET_MPI_SIZE_OPCODE, ranks.count);
}

// All that this rank needs, before the ranks agree.
struct Prepared {
  std::shared_ptr<File> file;
  std::unique_ptr<Captured> captured;
  PendingBoard::Name board_name;
  std::unique_ptr<PendingBoard> board;
};

// What this rank can do by itself.
bool Prepare(h5::Library& library, H5FD_t* pub, const char* name, const Ranks& ranks,
             Prepared& prepared, Fallback& reason) try {
  const char* const path = PathOf(name);
  reason = Fallback::kMpiFileSystem;
  if (!SharedByRanks(path)) return false;
  if (!Engine::Get().OpenShared(path, prepared.file).ok()) return false;
  reason = Fallback::kMpiHints;
  if (HintsForbid(*library.mpi(), pub)) return false;
  reason = Fallback::kMpiTwice;
  if (AlreadyCaptured(library.slot(), prepared.file->identity())) return false;
  reason = Fallback::kMpiRanks;
  auto file = std::make_shared<h5::ParallelFile>(prepared.file, *library.mpi(), ranks.communicator,
                                                 ranks.rank, ranks.count);
  prepared.captured.reset(
      new Captured{*pub->cls, pub->cls, &library, pub, std::move(file), nullptr});
  prepared.board = MakeBoard(ranks.rank, ranks.count, prepared.board_name);
  return true;
} catch (const std::bad_alloc&) {  // the others wait for this rank's answer all the same
  return false;
}

void Swap(Captured* captured) {
  H5FD_class_t& driver = captured->driver;
  driver.write = Write;
  driver.write_vector = WriteVector;
  driver.read = Read;
  driver.read_vector = ReadVector;
  driver.flush = Flush;
  driver.close = Close;
  captured->next = std::exchange(captured_files[captured->library->slot()], captured);
  captured->pub->cls = &captured->driver;
}

}  // namespace
}  // namespace tidelane::vfd

namespace tidelane::h5 {

std::shared_ptr<ParallelFile> CaptureMpio(Library& library, hid_t driver, void* vfd_handle,
                                          const char* name, bool wanted, Fallback& reason) {
  const KeepErrorStack keep(library);
  const Fallback unwanted = reason;
  reason = Fallback::kMpiDriver;
  H5FD_t* const pub = vfd_handle == nullptr ? nullptr : vfd::FileOf(vfd_handle, driver);
  vfd::Ranks ranks;
  if (pub == nullptr || !vfd::AskRanks(pub, ranks)) return nullptr;
  const Mpi* const mpi = library.mpi();
  reason = Fallback::kMpiUnknown;
  if (mpi == nullptr || !mpi->running()) return nullptr;
  vfd::Prepared prepared;
  const bool able = wanted && vfd::Prepare(library, pub, name, ranks, prepared, reason);
  if (!wanted) reason = unwanted;
  // All ranks must see the same file: another node's /tmp is another one.
  const uint64_t inode = prepared.file == nullptr ? 0 : prepared.file->identity().inode;
  const uint64_t mine[] = {able ? 0u : 1u, inode, ~inode, prepared.board_name.first,
                           prepared.board_name.second};
  uint64_t all[std::size(mine)] = {};
  const bool agreed =
      mpi->Max(ranks.communicator, mine, all, std::size(mine)) && all[0] == 0 && all[1] == ~all[2];
  if (!agreed) {
    if (!prepared.board_name.empty()) PendingBoard::Forget(prepared.board_name);
    if (able) reason = Fallback::kMpiRanks;
    if (prepared.file != nullptr) static_cast<void>(Engine::Get().Close(prepared.file));
    return nullptr;
  }
  const std::shared_ptr<ParallelFile> file = prepared.captured->file;
  file->file()->SetBoard(vfd::ShareBoard(*file, {all[3], all[4]}, std::move(prepared.board)));
  vfd::Swap(prepared.captured.release());
  return file;
}

void NoteOpenedAgain(int slot, const char* name) {
  struct stat status;
  const char* const path = name == nullptr ? nullptr : vfd::PathOf(name);
  if (vfd::captured_files[slot] == nullptr || path == nullptr || stat(path, &status) != 0) return;
  static_cast<void>(vfd::AlreadyCaptured(slot, {status.st_dev, status.st_ino}));
}

bool HasParallelFiles(int slot) { return vfd::captured_files[slot] != nullptr; }

std::shared_ptr<ParallelFile> ParallelFileWithSerial(int slot, unsigned long serial) {
  for (const vfd::Captured* at = vfd::captured_files[slot]; at != nullptr; at = at->next) {
    if (at->pub->fileno == serial) return at->file;
  }
  return nullptr;
}

}  // namespace tidelane::h5
