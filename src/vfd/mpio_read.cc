// The mpio driver of a file that all ranks have opened for reading only: elements that HDF5 reads as an independent transfer, and metadata,
// which it reads so in any case, come from a File of ours. What MPI-IO reads collectively stays its own.
//
// As in mpio.cc the class pointer is replaced by one to our copy of the class, on all ranks or on none.
//
// Thread safety: callbacks run under HDF5's lock.
#include "vfd/mpio_read.h"

#include <cerrno>
#include <cstdint>
#include <new>
#include <utility>

#include "base/fresh_file.h"
#include "engine/engine.h"
#include "extent/test_hooks.h"
#include "file/call_scope.h"
#include "h5/error.h"
#include "model/history_key.h"
#include "ranks/dirty_range_table.h"
#include "vfd/mpio_class.h"
#include "vfd/mpio_files.h"
#include "vfd/mpio_published.h"

namespace tidelane::vfd {
namespace {

using Reading = MpioFile<h5::ParallelReading>;

constinit MpioFiles<h5::ParallelReading> open_readings;

// Nothing may be thrown through HDF5: what there was no memory for has failed.
Status ReadPiece(Reading& reading, haddr_t address, size_t size, void* buffer, bool raw,
                 const CallContext& call) {
  File& file = *reading.file->file();
  try {
    if (raw) reading.file->AwaitOthers(address, address + size);
    return file.Read(address, size, buffer, raw, call);
  } catch (const std::bad_alloc&) {
    return Status::Failed(ENOMEM, "read").At(file.path(), address, size);
  }
}

herr_t ReadAlone(Reading& reading, haddr_t address, size_t size, void* buffer,
                 const CallContext& call) {
  const Status status = ReadPiece(reading, address, size, buffer, true, call);
  if (status.ok()) return 0;
  h5::PushError(*reading.library, status);
  return -1;
}

// HDF5 reads a piece when it needs it, of which it may have been told a moment ago that somebody changed it. What fails is tried
// natively, so that MPI-IO says what the program is told.
bool ReadMetadata(Reading& reading, haddr_t address, size_t size, void* buffer,
                  const CallContext& call) {
  reading.file->Look();
  return ReadPiece(reading, address, size, buffer, false, call).ok();
}

// Of a collective transfer the size is a count of an MPI type, which may reach anywhere.
herr_t Read(H5FD_t* pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
            void* buffer) noexcept {
  Reading& reading = Reading::Of(pub);
  const CallContext call = CallContext::Current();
  if (type == H5FD_MEM_DRAW && call.reads_alone())
    return ReadAlone(reading, address, size, buffer, call);
  if (type == H5FD_MEM_DRAW) {
    reading.file->AwaitOthers(0, UINT64_MAX);
  } else if (ReadMetadata(reading, address, size, buffer, call)) {
    return 0;
  }
  return reading.native->read(pub, type, dxpl, address, size, buffer);
}

// A size of 0 says that it and those after it are as the one before; a type of "no list" likewise.
herr_t ReadVector(H5FD_t* pub, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t addresses[],
                  size_t sizes[], void* buffers[]) noexcept {
  Reading& reading = Reading::Of(pub);
  const CallContext call = CallContext::Current();
  if (count == 0 || types[0] != H5FD_MEM_DRAW || !call.reads_alone()) {
    reading.file->AwaitOthers(0, UINT64_MAX);
    return reading.native->read_vector(pub, dxpl, count, types, addresses, sizes, buffers);
  }
  size_t size = sizes[0];
  bool same_size = false;
  bool same_type = false;
  for (uint32_t i = 0; i < count; ++i) {
    same_size = same_size || (i > 0 && sizes[i] == 0);
    same_type = same_type || types[i] == H5FD_MEM_NOLIST;
    if (!same_size) size = sizes[i];
    const herr_t result =
        same_type || types[i] == H5FD_MEM_DRAW
            ? ReadAlone(reading, addresses[i], size, buffers[i], call)
            : reading.native->read(pub, types[i], dxpl, addresses[i], size, buffers[i]);
    if (result < 0) return -1;
  }
  return 0;
}

// The driver's own makes pieces of an independent transfer, and comes to Read with each.
herr_t ReadSelection(H5FD_t* pub, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t memory_spaces[],
                     hid_t file_spaces[], haddr_t offsets[], size_t element_sizes[],
                     void* buffers[]) noexcept {
  Reading& reading = Reading::Of(pub);
  if (type == H5FD_MEM_DRAW && !CallContext::Current().reads_alone())
    reading.file->AwaitOthers(0, UINT64_MAX);
  return reading.native->read_selection(pub, type, dxpl, count, memory_spaces, file_spaces, offsets,
                                        element_sizes, buffers);
}

// What lanes still read for the program is waited for; what they fetch ahead is given up.
herr_t Close(H5FD_t* pub) noexcept {
  const std::unique_ptr<Reading> reading = open_readings.Take(pub);
  const std::shared_ptr<File>& file = reading->file->file();
  file->reads().deferred_reads().AwaitAll();
  const Status status = Engine::Get().Close(file, CallContext::Current());
  pub->cls = reading->native;
  const herr_t result = reading->native->close(pub);
  if (status.ok()) return result;
  h5::PushError(*reading->library, status);
  return -1;
}

// All that this rank needs, before the ranks agree.
struct Prepared {
  std::shared_ptr<File> file;
  std::unique_ptr<Reading> reading;
};

// Who opens the file for writing later has to be found by who looks. In a job of one rank that is nobody.
std::unique_ptr<DirtyRangeTable> TableOf(const FileIdentity& identity) {
  if (MutationEnabled("ranks_board") || MutationEnabled("ranks_outside")) return nullptr;
  const bool single = model::RanksOfJob() == 1;
  return DirtyRangeTable::Watch(identity,
                                single ? TableFile::Missing::kLeave : TableFile::Missing::kMake);
}

// What this rank can do by itself.
bool Prepare(h5::Library& library, H5FD_t* pub, const char* name, const Ranks& ranks,
             Prepared& prepared, Fallback& reason) try {
  const char* const path = PathOf(name);
  reason = Fallback::kMpiFileSystem;
  if (!SharedByRanks(path)) return false;
  reason = Fallback::kMpiHints;
  if (HintsForbid(*library.mpi(), pub)) return false;
  const char* const shown = ShownName(library.slot(), pub, path);
  const Status opened =
      Engine::Get().OpenForRanksToRead(path, shown, prepared.file, CallContext::Current());
  reason = opened.code() == EBUSY ? Fallback::kMpiWritten : Fallback::kMpiFileSystem;
  if (!opened.ok()) return false;
  reason = Fallback::kMpiWritten;
  std::unique_ptr<DirtyRangeTable> table = TableOf(prepared.file->identity());
  const uint32_t joined = table == nullptr ? 0 : table->joined();
  if (table != nullptr && table->Written() && !MutationEnabled("reads_written")) return false;
  reason = Fallback::kMpiRanks;
  auto file = std::make_shared<h5::ParallelReading>(
      prepared.file, *library.mpi(), ranks.communicator, pub->base_addr, std::move(table), joined);
  prepared.reading = std::make_unique<Reading>(pub, library, std::move(file));
  return true;
} catch (const std::bad_alloc&) {  // the others wait for this rank's answer all the same
  return false;
}

void Swap(std::unique_ptr<Reading> reading) {
  H5FD_class_t& driver = reading->driver;
  driver.read = Read;
  driver.read_vector = ReadVector;
  if (driver.read_selection != nullptr) driver.read_selection = ReadSelection;
  driver.close = Close;
  open_readings.Put(std::move(reading));
}

}  // namespace

std::shared_ptr<h5::ParallelReading> CaptureMpioReading(h5::Library& library, hid_t driver,
                                                        void* vfd_handle, const char* name,
                                                        bool wanted, Fallback& reason) {
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
  const uint64_t inode = prepared.file == nullptr ? 0 : prepared.file->identity().inode;
  OpeningVote vote{.able = able,
                   .reads = true,
                   .inode = inode,
                   .group = ranks.rank == 0 ? (RandomBits() >> 1) | 1 : 0};
  const bool agreed = MutationEnabled("reads_agree") ? able : AgreeOnOpening(*mpi, ranks, vote);
  if (!agreed) {
    if (able) reason = Fallback::kMpiRanks;
    prepared.reading = nullptr;
    if (prepared.file != nullptr) static_cast<void>(Engine::Get().Close(prepared.file));
    return nullptr;
  }
  const std::shared_ptr<h5::ParallelReading> file = prepared.reading->file;
  file->waits = vote.waits;
  file->SetJob({.id = vote.group, .processes = static_cast<uint32_t>(ranks.count)});
  Swap(std::move(prepared.reading));
  return file;
}

bool HasReadings(int slot) { return open_readings.Any(slot); }

std::shared_ptr<h5::ParallelReading> ReadingWithSerial(int slot, unsigned long serial) {
  return open_readings.WithSerial(slot, serial);
}

}  // namespace tidelane::vfd
