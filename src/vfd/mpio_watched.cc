// Files that HDF5's mpio driver has open and whose elements we do not capture: those that are only read, and those that stay HDF5's.
// Who reads or writes one finds what other processes of this machine hold of it stored (ranks/dirty_range_table.h).
//
// As for files that are captured the class pointer is replaced by one to our copy of the class (mpio.cc), on each rank for itself:
// nothing here is agreed on.
//
// Thread safety: callbacks run under HDF5's lock.
#include "vfd/mpio_watched.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/activity.h"
#include "extent/test_hooks.h"
#include "model/history_key.h"
#include "ranks/dirty_range_table.h"
#include "vfd/mpio_class.h"

namespace tidelane::vfd {
namespace {

// Lives as long as its file is open; HDF5's class pointer leads here.
struct Watched {
  H5FD_class_t driver;  // first
  const H5FD_class_t* native;
  h5::Library* library;
  std::unique_ptr<DirtyRangeTable> table;
};

Watched& Of(H5FD_t* pub) {
  return *reinterpret_cast<Watched*>(const_cast<H5FD_class_t*>(pub->cls));
}

void Await(Watched& watched, uint64_t begin, uint64_t end) {
  if (!watched.table->OthersHold(begin, end)) return;
  const Waiting waiting(Wait::kRanks);
  watched.table->AwaitOthers(begin, end);
}

// Only elements are held. Of a collective transfer the size is a count of an MPI type, which may reach anywhere.
void AwaitOne(Watched& watched, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size) {
  if (type != H5FD_MEM_DRAW) return;
  H5FD_mpio_xfer_t mode = H5FD_MPIO_COLLECTIVE;
  const bool alone =
      watched.library->Pget(dxpl, "io_xfer_mode", &mode) >= 0 && mode == H5FD_MPIO_INDEPENDENT;
  Await(watched, alone ? address : 0, alone ? address + size : UINT64_MAX);
}

// Here sizes are of bytes, in any transfer. A size of 0 says that it and those after it are as the one before.
void AwaitAll(Watched& watched, uint32_t count, const haddr_t* addresses, const size_t* sizes) {
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  size_t size = 0;
  bool same = false;
  for (uint32_t i = 0; i < count; ++i) {
    same = same || (i > 0 && sizes[i] == 0);
    if (!same) size = sizes[i];
    begin = std::min<uint64_t>(begin, addresses[i]);
    end = std::max<uint64_t>(end, addresses[i] + size);
  }
  if (begin < end) Await(watched, begin, end);
}

herr_t Read(H5FD_t* pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
            void* buffer) noexcept {
  AwaitOne(Of(pub), type, dxpl, address, size);
  return Of(pub).native->read(pub, type, dxpl, address, size, buffer);
}

herr_t Write(H5FD_t* pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
             const void* bytes) noexcept {
  AwaitOne(Of(pub), type, dxpl, address, size);
  return Of(pub).native->write(pub, type, dxpl, address, size, bytes);
}

herr_t ReadVector(H5FD_t* pub, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t addresses[],
                  size_t sizes[], void* buffers[]) noexcept {
  AwaitAll(Of(pub), count, addresses, sizes);
  return Of(pub).native->read_vector(pub, dxpl, count, types, addresses, sizes, buffers);
}

herr_t WriteVector(H5FD_t* pub, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t addresses[],
                   size_t sizes[], const void* buffers[]) noexcept {
  // MPI-IO reads and rewrites what lies between the pieces of all ranks.
  Await(Of(pub), 0, UINT64_MAX);
  return Of(pub).native->write_vector(pub, dxpl, count, types, addresses, sizes, buffers);
}

// Where a selection lies only HDF5 knows.
herr_t ReadSelection(H5FD_t* pub, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t memory_spaces[],
                     hid_t file_spaces[], haddr_t offsets[], size_t element_sizes[],
                     void* buffers[]) noexcept {
  if (type == H5FD_MEM_DRAW) Await(Of(pub), 0, UINT64_MAX);
  return Of(pub).native->read_selection(pub, type, dxpl, count, memory_spaces, file_spaces, offsets,
                                        element_sizes, buffers);
}

herr_t WriteSelection(H5FD_t* pub, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t memory_spaces[],
                      hid_t file_spaces[], haddr_t offsets[], size_t element_sizes[],
                      const void* buffers[]) noexcept {
  if (type == H5FD_MEM_DRAW) Await(Of(pub), 0, UINT64_MAX);
  return Of(pub).native->write_selection(pub, type, dxpl, count, memory_spaces, file_spaces,
                                         offsets, element_sizes, buffers);
}

herr_t Close(H5FD_t* pub) noexcept {
  const std::unique_ptr<Watched> watched(&Of(pub));
  pub->cls = watched->native;
  return watched->native->close(pub);
}

}  // namespace

void WatchMpio(h5::Library& library, hid_t driver, void* vfd_handle, const char* name,
               bool writable) try {
  H5FD_t* const pub = vfd_handle == nullptr ? nullptr : FileOf(vfd_handle, driver);
  const char* const path = PathOf(name);
  struct stat found;
  if (pub == nullptr || !SharedByRanks(path) || stat(path, &found) != 0) return;
  if (MutationEnabled("ranks_board") || MutationEnabled("ranks_outside")) return;
  // Who opens the file for writing later has to be found by who looks. In a job of one rank that is nobody.
  const bool single = model::RanksOfJob() == 1;
  const auto missing = single ? TableFile::Missing::kLeave : TableFile::Missing::kMake;
  // Who keeps what it reads is to know that somebody writes here (h5/parallel_reading.h).
  auto table = writable && !single ? DirtyRangeTable::Join(IdentityIn(found), 0)
                                   : DirtyRangeTable::Watch(IdentityIn(found), missing);
  if (table == nullptr) return;
  auto* const watched = new Watched{*pub->cls, pub->cls, &library, std::move(table)};
  H5FD_class_t& driver_class = watched->driver;
  driver_class.read = Read;
  driver_class.write = Write;
  driver_class.read_vector = ReadVector;
  driver_class.write_vector = WriteVector;
  if (driver_class.read_selection != nullptr) driver_class.read_selection = ReadSelection;
  if (driver_class.write_selection != nullptr) driver_class.write_selection = WriteSelection;
  driver_class.close = Close;
  pub->cls = &driver_class;
} catch (const std::bad_alloc&) {  // then it reads what is stored
}

}  // namespace tidelane::vfd
