// The mpio driver of an open file, with a few callbacks of our own in the place of its: raw writes that the call lets us
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
#include "vfd/mpio.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/fresh_file.h"
#include "engine/engine.h"
#include "extent/test_hooks.h"
#include "file/call_scope.h"
#include "h5/error.h"
#include "h5/parallel_file.h"
#include "publish/names.h"
#include "vfd/mpio_class.h"
#include "vfd/mpio_files.h"
#include "vfd/mpio_published.h"
#include "vfd/mpio_read.h"
#include "vfd/mpio_watched.h"

namespace tidelane::vfd {
namespace {

using Captured = MpioFile<h5::ParallelFile>;

constinit MpioFiles<h5::ParallelFile> captured_files;

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
               const CallContext& call) {
  h5::ParallelFile& file = *captured.file;
  file.NoteCaptured(size);
  Status status =
      Guarded(file, "write to", [&] { return file.file()->Write(address, size, bytes, call); });
  // Where the system refused threads, nobody would store it while other ranks wait for it.
  if (status.ok() && !Engine::Get().lanes().threaded() && !MutationEnabled("ranks_threads"))
    status = file.file()->drainer().Drain(Wait::kRanks);
  NoteWritten(captured.library->slot(), captured.pub, address, size, status.ok());
  if (!call.writes_own_chunk()) return Report(captured, 0, status);
  if (!status.ok()) file.NoteRefused(std::move(status));
  return 0;
}

herr_t Write(H5FD_t* pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
             const void* bytes) noexcept {
  Captured& captured = Captured::Of(pub);
  h5::ParallelFile& file = *captured.file;
  const CallContext call = CallContext::Current();
  if (type == H5FD_MEM_DRAW && call.writes_other_chunk()) {
    file.NoteCaptured(size);
    return 0;
  }
  const bool own_chunk = call.writes_own_chunk();
  const bool together = own_chunk || call.captures_together();
  if (!together && !file.inside()) file.file()->AwaitOthers(address, size);
  if (own_chunk || (together && file.outsiders_hold))
    file.file()->AwaitOthers(address, size, DirtyRangeTable::Whose::kOutsiders);
  if (type == H5FD_MEM_DRAW && (together || call.captures_alone())) {
    if (file.capturing() || own_chunk) return Capture(captured, address, size, bytes, call);
    file.NoteNative(size);
  }
  // Two writes of the same byte are stored in program order.
  if (file.file()->drainer().HasPending(address, size)) {
    if (const Status status = file.file()->drainer().Drain(Wait::kRanks); !status.ok())
      return Report(captured, -1, status);
  }
  return captured.native->write(pub, type, dxpl, address, size, bytes);
}

// Only collective writes come as vectors: of fill values, of filtered chunks, of metadata.
herr_t WriteVector(H5FD_t* pub, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t addresses[],
                   size_t sizes[], const void* buffers[]) noexcept {
  Captured& captured = Captured::Of(pub);
  h5::ParallelFile& file = *captured.file;
  const auto native = captured.native->write_vector;
  if (file.inside()) return native(pub, dxpl, count, types, addresses, sizes, buffers);
  // What could not be stored is told by flush and close.
  static_cast<void>(file.Before(h5::SyncPoint::kFill));
  const herr_t result = native(pub, dxpl, count, types, addresses, sizes, buffers);
  file.After();
  return result;
}

herr_t Read(H5FD_t* pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
            void* buffer) noexcept {
  Captured& captured = Captured::Of(pub);
  const std::shared_ptr<File>& file = captured.file->file();
  const CallContext call = CallContext::Current();
  const bool alone = type == H5FD_MEM_DRAW && call.reads_alone();
  if (alone) file->AwaitOthers(address, size);
  if (!file->drainer().drained()) {
    if (alone) {
      return Report(captured, 0, Guarded(*captured.file, "read", [&] {
                      return file->Read(address, size, buffer, true, call);
                    }));
    }
    static_cast<void>(file->drainer().Drain(Wait::kRanks));
  }
  return captured.native->read(pub, type, dxpl, address, size, buffer);
}

herr_t ReadVector(H5FD_t* pub, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t addresses[],
                  size_t sizes[], void* buffers[]) noexcept {
  Captured& captured = Captured::Of(pub);
  static_cast<void>(captured.file->file()->drainer().Drain(Wait::kRanks));
  return captured.native->read_vector(pub, dxpl, count, types, addresses, sizes, buffers);
}

herr_t Flush(H5FD_t* pub, hid_t dxpl, hbool_t closing) noexcept {
  Captured& captured = Captured::Of(pub);
  Status status;
  if (!MutationEnabled("ranks_flush"))
    status = captured.file->file()->drainer().Drain(closing ? Wait::kClose : Wait::kFlush);
  const herr_t result = captured.native->flush(pub, dxpl, closing);  // by every rank, even so
  return Report(captured, result, status);
}

herr_t Close(H5FD_t* pub) noexcept {
  const std::unique_ptr<Captured> captured = captured_files.Take(pub);
  const std::shared_ptr<File>& file = captured->file->file();
  const Status status = Engine::Get().Close(file, CallContext::Current());
  if (!status.ok()) NoteLost(captured->library->slot(), pub);
  // Ranks that open the file again at once, only to read it, are to find nobody who may write it.
  if (file->dirty_ranges() != nullptr && file->drainer().drained()) file->dirty_ranges()->Leave();
  pub->cls = captured->native;
  const herr_t result = captured->native->close(pub);
  return Report(*captured, result, status);
}

// The same file may be captured once: two would not know of each other's bytes.
bool AlreadyCaptured(int slot, const FileIdentity& identity) {
  bool found = false;
  for (Captured* at = captured_files.first[slot]; at != nullptr; at = at->next) {
    if (at->file->file()->identity() != identity) continue;
    at->file->Stop(Fallback::kMpiTwice);
    at->file->file()->AwaitOthers(0, UINT64_MAX);
    found = true;
  }
  return found;
}

// All that this rank needs, before the ranks agree.
struct Prepared {
  std::shared_ptr<File> file;
  std::unique_ptr<Captured> captured;
  std::unique_ptr<DirtyRangeTable> table;  // nullptr: this machine has no memory for it
};

// What this rank can do by itself.
bool Prepare(h5::Library& library, H5FD_t* pub, const char* name, const Ranks& ranks,
             Prepared& prepared, Fallback& reason) try {
  const char* const path = PathOf(name);
  reason = Fallback::kMpiFileSystem;
  if (!SharedByRanks(path)) return false;
  const char* const shown = ShownName(library.slot(), pub, path);
  if (!Engine::Get().OpenShared(path, shown, prepared.file, CallContext::Current()).ok())
    return false;
  reason = Fallback::kMpiHints;
  if (HintsForbid(*library.mpi(), pub)) return false;
  reason = Fallback::kMpiTwice;
  if (AlreadyCaptured(library.slot(), prepared.file->identity())) return false;
  reason = Fallback::kMpiRanks;
  auto file = std::make_shared<h5::ParallelFile>(prepared.file, *library.mpi(), ranks.communicator,
                                                 ranks.rank, ranks.count);
  prepared.captured = std::make_unique<Captured>(pub, library, std::move(file));
  // Tests of what is promised across machines have none.
  if (!MutationEnabled("ranks_board"))
    prepared.table = DirtyRangeTable::Join(prepared.file->identity(), ranks.rank);
  return true;
} catch (const std::bad_alloc&) {  // the others wait for this rank's answer all the same
  return false;
}

void Swap(std::unique_ptr<Captured> captured) {
  H5FD_class_t& driver = captured->driver;
  driver.write = Write;
  driver.write_vector = WriteVector;
  driver.read = Read;
  driver.read_vector = ReadVector;
  driver.flush = Flush;
  driver.close = Close;
  captured_files.Put(std::move(captured));
}

std::shared_ptr<h5::ParallelFile> CaptureMpio(h5::Library& library, hid_t driver, void* vfd_handle,
                                              const char* name, bool wanted, Fallback& reason) {
  const h5::KeepErrorStack keep(library);
  const Fallback unwanted = reason;
  reason = Fallback::kMpiDriver;
  H5FD_t* const pub = vfd_handle == nullptr ? nullptr : FileOf(vfd_handle, driver);
  Ranks ranks;
  if (pub == nullptr || !AskRanks(pub, ranks)) return nullptr;
  const h5::Mpi* const mpi = library.mpi();
  reason = Fallback::kMpiUnknown;
  if (mpi == nullptr || !mpi->running()) return nullptr;
  Prepared prepared;
  const bool able = wanted && Prepare(library, pub, name, ranks, prepared, reason);
  if (!wanted) reason = unwanted;
  const uint64_t table = prepared.table == nullptr ? 0 : prepared.table->id();
  OpeningVote vote{.able = able,
                   .inode = prepared.file == nullptr ? 0 : prepared.file->identity().inode,
                   .table = table,
                   .group = ranks.rank == 0 ? (RandomBits() >> 1) | 1 : 0};
  if (!AgreeOnOpening(*mpi, ranks, vote)) {
    if (able) reason = Fallback::kMpiRanks;
    if (prepared.file != nullptr) static_cast<void>(Engine::Get().Close(prepared.file));
    return nullptr;
  }
  const std::shared_ptr<h5::ParallelFile> file = prepared.captured->file;
  file->waits = vote.waits;
  if (table != 0) {
    prepared.table->SetGroup({.id = vote.group, .complete = vote.same_table});
    file->file()->SetDirtyRanges(std::move(prepared.table));
  }
  Swap(std::move(prepared.captured));
  return file;
}

void NoteOpenedAgain(int slot, const char* name) {
  const char* const path = name == nullptr ? nullptr : PathOf(name);
  if (!captured_files.Any(slot) || path == nullptr) return;
  if (const std::optional<FileIdentity> identity = IdentityBehind(path); identity.has_value())
    static_cast<void>(AlreadyCaptured(slot, *identity));
}

bool HasParallelFiles(int slot) { return captured_files.Any(slot); }

std::shared_ptr<h5::ParallelFile> ParallelFileWithSerial(int slot, unsigned long serial) {
  return captured_files.WithSerial(slot, serial);
}

}  // namespace

constinit const h5::ParallelDriverTable kMpioDriver = {
    .capture = CaptureMpio,
    .watch = WatchMpio,
    .may_hide = MayHideMpio,
    .publish = PublishMpio,
    .name_of = PublishedNameOf,
    .note_opened_again = NoteOpenedAgain,
    .has_files = HasParallelFiles,
    .file_with_serial = ParallelFileWithSerial,
    .capture_reading = CaptureMpioReading,
    .has_readings = HasReadings,
    .reading_with_serial = ReadingWithSerial,
};

}  // namespace tidelane::vfd
