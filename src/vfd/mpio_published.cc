// As for files that are captured the class pointer is replaced by one to our copy of the class (mpio.cc), and before it is for that:
// whoever comes later has our callbacks for native ones. So the class pointer does not say where the opening is; a list does.
//
// Invariant: the opening of a file whose class was replaced stays listed until the driver has closed it.
// Thread safety: callbacks run under HDF5's lock.
#include "vfd/mpio_published.h"

#include <new>
#include <utility>

#include "h5/error.h"
#include "vfd/mpio_class.h"

namespace tidelane::vfd {
namespace {

using h5::ParallelOpening;

constinit ParallelOpening* openings[h5::kSlots];

ParallelOpening* Find(int slot, const H5FD_t* pub) {
  ParallelOpening* at = openings[slot];
  while (at != nullptr && at->pub != pub) at = at->next;
  return at;
}

// By a callback, which knows no more: files of several libhdf5 are at different places.
ParallelOpening& Of(const H5FD_t* pub) {
  for (int slot = 0;; ++slot) {
    if (ParallelOpening* const found = Find(slot, pub); found != nullptr) return *found;
  }
}

// Of a collective transfer the size is a count of an MPI type, which may reach anywhere.
bool IsAlone(const ParallelOpening& opening, H5FD_mem_t type, hid_t dxpl) {
  if (type != H5FD_MEM_DRAW) return true;
  H5FD_mpio_xfer_t mode = H5FD_MPIO_COLLECTIVE;
  return opening.library->Pget(dxpl, "io_xfer_mode", &mode) >= 0 && mode == H5FD_MPIO_INDEPENDENT;
}

// What was refused and then written is whole.
void Note(ParallelOpening& opening, haddr_t address, size_t size, bool stored) {
  if (size == 0 || (stored && opening.refused.empty())) return;
  try {
    if (stored)
      opening.refused.Remove(address, address + size);
    else
      opening.refused.Add(address, address + size);
  } catch (const std::bad_alloc&) {
    opening.spoiled = true;
  }
}

// Where a selection of a dataset that begins at `begin` lies, if it is in one piece.
bool FindPlace(h5::Library& library, hid_t space, size_t element_size, haddr_t& begin,
               haddr_t& end) {
  hsize_t extent[H5S_MAX_RANK];
  hsize_t first[H5S_MAX_RANK];
  hsize_t last[H5S_MAX_RANK];
  const int rank = library.Sget_simple_extent_dims(space, extent, nullptr);
  if (rank <= 0 || library.Sget_select_bounds(space, first, last) < 0) return false;
  hsize_t from = 0;
  hsize_t to = 0;
  for (int d = 0; d < rank; ++d) {
    from = from * extent[d] + first[d];
    to = to * extent[d] + last[d];
  }
  const hssize_t selected = library.Sget_select_npoints(space);
  if (selected < 0 || static_cast<hsize_t>(selected) != to - from + 1) return false;
  end = begin + (to + 1) * element_size;
  begin += from * element_size;
  return true;
}

herr_t Write(H5FD_t* pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
             const void* bytes) noexcept {
  ParallelOpening& opening = Of(pub);
  const herr_t result = opening.native->write(pub, type, dxpl, address, size, bytes);
  if (result >= 0 && opening.refused.empty()) return result;
  const h5::KeepErrorStack keep(*opening.library);
  if (IsAlone(opening, type, dxpl))
    Note(opening, address, size, result >= 0);
  else if (result < 0)
    opening.spoiled = true;
  return result;
}

// Here sizes are of bytes, in any transfer. A size of 0 says that it and those after it are as the one before.
herr_t WriteVector(H5FD_t* pub, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t addresses[],
                   size_t sizes[], const void* buffers[]) noexcept {
  ParallelOpening& opening = Of(pub);
  const herr_t result =
      opening.native->write_vector(pub, dxpl, count, types, addresses, sizes, buffers);
  size_t size = 0;
  bool same = false;
  for (uint32_t i = 0; i < count && (result < 0 || !opening.refused.empty()); ++i) {
    same = same || (i > 0 && sizes[i] == 0);
    if (!same) size = sizes[i];
    Note(opening, addresses[i], size, result >= 0);
  }
  // It may have been refused for what another rank writes.
  if (result < 0 && count == 0) opening.spoiled = true;
  return result;
}

herr_t WriteSelection(H5FD_t* pub, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t memory_spaces[],
                      hid_t file_spaces[], haddr_t offsets[], size_t element_sizes[],
                      const void* buffers[]) noexcept {
  ParallelOpening& opening = Of(pub);
  const herr_t result = opening.native->write_selection(
      pub, type, dxpl, count, memory_spaces, file_spaces, offsets, element_sizes, buffers);
  if (result >= 0 && opening.refused.empty()) return result;
  const h5::KeepErrorStack keep(*opening.library);
  size_t element_size = 0;
  bool same = false;
  bool known = IsAlone(opening, type, dxpl);
  for (size_t i = 0; i < count && known; ++i) {
    same = same || (i > 0 && element_sizes[i] == 0);
    if (!same) element_size = element_sizes[i];
    haddr_t begin = offsets[i];
    haddr_t end = 0;
    known = FindPlace(*opening.library, file_spaces[i], element_size, begin, end);
    if (known) Note(opening, begin, end - begin, result >= 0);
  }
  opening.spoiled |= !known && result < 0;
  return result;
}

// The system has forgotten what it could not flush.
herr_t Flush(H5FD_t* pub, hid_t dxpl, hbool_t closing) noexcept {
  ParallelOpening& opening = Of(pub);
  const herr_t result = opening.native->flush(pub, dxpl, closing);
  if (result < 0) opening.spoiled = true;
  return result;
}

herr_t Truncate(H5FD_t* pub, hid_t dxpl, hbool_t closing) noexcept {
  ParallelOpening& opening = Of(pub);
  const herr_t result = opening.native->truncate(pub, dxpl, closing);
  opening.cut_refused = result < 0;
  return result;
}

herr_t Close(H5FD_t* pub) noexcept {
  const std::unique_ptr<ParallelOpening> opening(&Of(pub));
  ParallelOpening** at = &openings[opening->library->slot()];
  while (*at != opening.get()) at = &(*at)->next;
  *at = opening->next;
  pub->cls = opening->native;
  const herr_t result = opening->native->close(pub);
  try {
    const Status status = opening->publication->Leave(*opening, result >= 0);
    if (status.ok()) return result;
    h5::PushError(*opening->library, status);
  } catch (const std::bad_alloc&) {  // there were no words for it
  }
  return -1;
}

}  // namespace

bool PublishMpio(hid_t driver, void* vfd_handle, std::unique_ptr<h5::ParallelOpening>& opening) {
  H5FD_t* const pub = vfd_handle == nullptr ? nullptr : FileOf(vfd_handle, driver);
  if (pub == nullptr || pub->cls->truncate == nullptr) return false;
  int ranks = 0;
  void* output = &ranks;
  if (pub->cls->ctl(pub, H5FD_CTL_GET_MPI_SIZE_OPCODE, H5FD_CTL_FAIL_IF_UNKNOWN_FLAG, nullptr,
                    &output) < 0)
    return false;
  // Only ranks that made the file know of it: as many are all of them.
  opening->together = ranks == opening->publication->ranks();
  opening->pub = pub;
  opening->native = pub->cls;
  H5FD_class_t& driver_class = opening->driver;
  driver_class = *pub->cls;
  driver_class.write = Write;
  driver_class.write_vector = WriteVector;
  if (driver_class.write_selection != nullptr) driver_class.write_selection = WriteSelection;
  driver_class.flush = Flush;
  driver_class.truncate = Truncate;
  driver_class.close = Close;
  pub->cls = &driver_class;
  opening->publication->Join(*opening);
  ParallelOpening*& first = openings[opening->library->slot()];
  opening->next = first;
  first = opening.release();
  return true;
}

const std::string* PublishedNameOf(int slot, unsigned long serial) {
  for (const ParallelOpening* at = openings[slot]; at != nullptr; at = at->next) {
    if (at->pub->fileno == serial) return &at->name;
  }
  return nullptr;
}

const char* ShownName(int slot, const H5FD_t* pub, const char* path) {
  const ParallelOpening* const opening = Find(slot, pub);
  return opening == nullptr ? path : opening->name.c_str();
}

void NoteWritten(int slot, const H5FD_t* pub, haddr_t address, size_t size, bool stored) {
  if (ParallelOpening* const opening = Find(slot, pub); opening != nullptr)
    Note(*opening, address, size, stored);
}

void NoteLost(int slot, const H5FD_t* pub) {
  if (ParallelOpening* const opening = Find(slot, pub); opening != nullptr) opening->spoiled = true;
}

}  // namespace tidelane::vfd
