/// \file
/// Puts our driver on files that would use sec2, and hides it again in what the program gets to
/// see.
///
/// Invariants: the program's own access list is never changed, the driver goes on a copy; the error
/// stack stays as it is.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include "h5/owned_id.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// The access list to open a file with: the caller's own, or a copy of it that names our driver.
class AccessList {
 public:
  /// For a file that another driver than sec2 will open, drains what we still hold of `name` and
  /// counts the fallback, unless it is MPI's (vol/ranks.h).
  AccessList(LibraryState& library, const char* name, hid_t fapl);
  ~AccessList();

  hid_t get() const { return copy_.valid() ? copy_.get() : caller_; }
  /// Whether another driver opens the file, and not MPI's.
  bool native() const { return native_; }
  /// The driver of MPI programs that it names; kNoId: another one.
  hid_t mpi_driver() const { return mpi_driver_; }

 private:
  LibraryState& library_;
  h5::OwnedId copy_;
  const hid_t caller_;
  bool native_ = false;
  hid_t mpi_driver_ = h5::kNoId;
};

/// An access list that HDF5 made from an open file: says sec2 again where it says ours.
void ReportSec2(LibraryState& library, hid_t fapl);

}  // namespace tidelane::vol
